"""Decide whether a point exceeds a roof. A roof is itself a measurement, of another walk and often
with another footprint. If that does not explain the excess, the point is suspect.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kvbench.analysis.limits.bounds import PARITY, Chance, by_chance
from kvbench.analysis.measured.ceilings import REACH, Peak
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import Ceiling, Fact, Traffic, program
from kvbench.regime import NO_LEVEL, Regime
from kvbench.units import GB

_OTHER_PAGES = 0.5  # share of memory that lies on huge pages for the point but not for the roof
_MOST = 2.0  # times the roof: nothing explains a larger excess
_WALK = 1.25  # times the window walk, which loses up to this at the ends of a small window
_HALF = 0.45  # share of stores in the bytes; that of a copy is one half


@dataclass(frozen=True, slots=True)
class Against:
    """A point and what it is compared with. `traffic`: of a pass, by program. `huge`: share of its
    memory on huge pages.
    """

    found: PointRates
    traffic: Mapping[str, Traffic]
    stores: bool
    regime: Regime
    footprint: float
    ceiling: Ceiling | None = None
    computed: Peak | None = None
    peak: Fact | None = None
    huge: float | None = None
    core_level: str = ""
    appends: bool = False

    @property
    def rate(self) -> Estimate:
        return self.found.rates["point"]

    @property
    def above_ceiling(self) -> bool:
        return self.ceiling is not None and self.rate.low > self.ceiling.high


class Roof(StrEnum):
    """The roofs that a point may exceed."""

    PEAK = "the theoretical peak of memory"
    INSTRUCTIONS = "the peak of its instructions"
    CORE = "its core speed"
    ROWS = "reads of its own rows"
    COPY = "copies of as many bytes"
    READS = "the read ceiling"
    COPIES = "the copy ceiling"


class Cause(StrEnum):
    """Why a point exceeds a roof, as far as is known."""

    LEVEL = str(Chance.LEVEL)
    FEW = str(Chance.FEW)
    READS_TOO = "reads exceed it too"  # reads of memory also exceed the peak
    DOUBT = "the peak is in doubt"
    AS_NEAR = "its data lies as near"  # as near as the data of the window walk
    WALK = "its window walk is slower"
    ALLOWED = "its ceiling allows it"  # the witness walks more slowly than its ceiling
    PAGES = "more of it is on huge pages"
    BETWEEN = "between levels"  # where a smaller footprint is faster
    STORES = "stores are dearer"  # and a narrow dtype stores less than a copy
    CACHED = "it stores from a cache"
    WITNESS_TOO = "its own reads exceed it too"
    MEMORY_TOO = "plain reads beside it exceed it too"
    # causes that explain nothing
    CACHES = "caches hold more than thought"
    SLOWER = "what does less is slower"
    NEARER = "it may lie nearer than memory"
    UNSTABLE = "the ceiling is unstable"


_NOTHING = frozenset({Cause.CACHES, Cause.SLOWER, Cause.NEARER, Cause.UNSTABLE})


@dataclass(frozen=True, slots=True)
class Above:
    """The roof that a point exceeds and that is hardest to explain, and the other roofs that it
    exceeds.
    """

    roof: Roof
    cause: Cause
    explained: bool
    also: tuple[Roof, ...] = ()


def above(point: Against) -> Above | None:
    """The roof that the point exceeds; None if it exceeds none."""
    found = [
        (roof, cause, cause not in _NOTHING and times <= _MOST)
        for roof, cause, times in _exceeded(point)
    ]
    if not found:
        return None
    (roof, cause, explained), *others = sorted(found, key=lambda each: each[-1])
    return Above(roof, cause, explained, tuple(other for other, *_ in others))


def _exceeded(point: Against) -> Iterator[tuple[Roof, Cause, float]]:
    """The roofs whose intervals lie below the point's, with the cause and the ratio of the nearest
    ends.
    """
    shares, rate, fact = point.found.shares, point.rate, point.peak
    peak = fact.value if fact and isinstance(fact.value, int | float) else 0
    if fact and point.regime.word == "DRAM" and 0 < peak < rate.low:
        reads = point.ceiling.high if point.ceiling else 0.0
        yield Roof.PEAK, _over_peak(point, fact, peak), rate.low / max(peak, reads)
    gflops = point.traffic["point"].flops / GB / point.found.seconds["point"].high
    if point.computed and (times := gflops / point.computed.high) > 1:
        yield Roof.INSTRUCTIONS, _unexplained(point, times), times
    if (core := point.found.core) and (times := shares[core].low) > 1:
        yield Roof.CORE, _over_core(point, times), times
    witness = point.found.witness
    # plain reads are not a roof: other forms may be faster
    if witness and witness != program.MEMORY and (times := shares[witness].low) > 1:
        roof = Roof.COPY if point.stores else Roof.ROWS
        yield roof, _over_witness(point, times), times
    if point.ceiling and point.above_ceiling:
        roof = Roof.COPIES if point.stores else Roof.READS
        yield roof, _over_ceiling(point, point.ceiling), rate.low / point.ceiling.high


def _over_peak(point: Against, fact: Fact, peak: float) -> Cause:
    if point.ceiling and point.ceiling.low > peak:
        return Cause.READS_TOO
    return Cause.DOUBT if fact.confidence != "high" else Cause.CACHES


def _over_core(point: Against, times: float) -> Cause:
    if point.regime.word in ("L1", "L2") and point.regime.word <= (point.core_level or "L2"):
        return Cause.AS_NEAR
    cause = _unexplained(point, times)
    return Cause.WALK if cause == Cause.SLOWER and times <= _WALK else cause


def _over_witness(point: Against, times: float) -> Cause:
    if few := _few_stores(point, times):
        return few
    if point.ceiling and not point.above_ceiling and times > 1 + PARITY:
        return Cause.ALLOWED
    return _unexplained(point, times)


def _over_ceiling(point: Against, ceiling: Ceiling) -> Cause:
    walked, witness, times = ceiling.probe.bytes, point.found.witness, point.rate.low / ceiling.high
    if (point.huge or 0.0) - (1.0 if ceiling.huge is None else ceiling.huge) > _OTHER_PAGES:
        return Cause.PAGES
    if point.regime.word in NO_LEVEL and walked > point.footprint:
        return Cause.BETWEEN
    if few := _few_stores(point, times):
        return few
    if point.regime.word == "DRAM" and walked > REACH * point.footprint:
        return Cause.NEARER
    if witness:
        own = point.found.rates[witness].median
        if own > ceiling.high and point.found.shares[witness].low <= 1:
            return Cause.MEMORY_TOO if witness == program.MEMORY else Cause.WITNESS_TOO
    if len(ceiling.samples) > 1 and not ceiling.stable:
        return Cause.UNSTABLE
    return _unexplained(point, times)


def _few_stores(point: Against, times: float) -> Cause | None:
    """The cause if the point is faster than a copy because it stores less.

    A copy reads and stores as much; a narrow dtype stores less than it reads. If loads cost
    nothing, the point would be faster in proportion to its stores, and no more than that. An append
    reads from caches. A copy moves each line three times: it fetches the line to read and the line
    to store to, and writes that line back. An append spares the first.
    """
    own = point.traffic["point"]
    stored = (
        (own.bytes_kv + own.bytes_scales) / own.bytes_compulsory if own.bytes_compulsory else 1.0
    )
    if point.stores and stored < _HALF and times * stored <= 0.5:
        return Cause.STORES
    return Cause.CACHED if point.appends and times * stored <= 0.75 else None


def _unexplained(point: Against, times: float) -> Cause:
    """Chance if that explains the excess, else SLOWER. `times`: the low end of the point's interval
    over the roof.
    """
    chance = by_chance(times, point.rate.launches)
    return Cause(chance) if chance else Cause.SLOWER
