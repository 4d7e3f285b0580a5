"""Whether a point exceeds a roof. A roof is a measurement too, of another walk and often of another
footprint: where that explains nothing, the point is suspect.
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

_OTHER_PAGES = 0.5  # of the memory, that lies on huge pages here and not there
_MOST = 2.0  # times a roof: beyond it nothing explains an excess
_WALK = 1.25  # times its window walk: what the ends of a small window may cost
_HALF = 0.45  # of the bytes are stores: a copy's share is a half


@dataclass(frozen=True, slots=True)
class Against:
    """A point and what it is held against. `traffic`: of a pass, by program. `huge`: share of its
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
    """What a point may exceed."""

    PEAK = "the theoretical peak of memory"
    INSTRUCTIONS = "the peak of its instructions"
    CORE = "its core speed"
    ROWS = "reads of its own rows"
    COPY = "copies of as many bytes"
    READS = "the read ceiling"
    COPIES = "the copy ceiling"


class Cause(StrEnum):
    """Why a point exceeds a roof, as far as that is known."""

    LEVEL = str(Chance.LEVEL)
    FEW = str(Chance.FEW)
    READS_TOO = "reads exceed it too"  # of memory, the peak
    DOUBT = "the peak is in doubt"
    AS_NEAR = "its data lies as near"  # as the window of the walk
    WALK = "its window walk is slower"
    ALLOWED = "its ceiling allows it"  # what stands beside it walks more slowly
    PAGES = "more of it is on huge pages"
    BETWEEN = "between levels"  # where less is faster
    STORES = "stores are dearer"  # a narrow dtype stores less than a copy does
    CACHED = "it stores from a cache"
    WITNESS_TOO = "its own reads exceed it too"
    MEMORY_TOO = "plain reads beside it exceed it too"
    # what follows explains nothing
    CACHES = "caches hold more than thought"
    SLOWER = "what does less is slower"
    NEARER = "it may lie nearer than memory"
    UNSTABLE = "the ceiling is unstable"


_NOTHING = frozenset({Cause.CACHES, Cause.SLOWER, Cause.NEARER, Cause.UNSTABLE})


@dataclass(frozen=True, slots=True)
class Above:
    """A roof that a point exceeds: the one that is hardest to explain, and the others."""

    roof: Roof
    cause: Cause
    explained: bool
    also: tuple[Roof, ...] = ()


def above(point: Against) -> Above | None:
    """None where it exceeds none."""
    found = [
        (roof, cause, cause not in _NOTHING and times <= _MOST)
        for roof, cause, times in _exceeded(point)
    ]
    if not found:
        return None
    (roof, cause, explained), *others = sorted(found, key=lambda each: each[-1])
    return Above(roof, cause, explained, tuple(other for other, *_ in others))


def _exceeded(point: Against) -> Iterator[tuple[Roof, Cause, float]]:
    """Those that lie, with the high end of their interval, below the low end of the point's: so
    many times.
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
    # plain reads are no roof: others may be faster
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
    """A narrow dtype stores less than it reads, where a copy does both alike. If loads cost
    nothing, it would be faster by as much as it stores less; no more than that. What an append
    reads lies in caches: where a copy fetches a line that it reads, fetches the one that it stores
    to, and writes that back, an append spares the first.
    """
    own = point.traffic["point"]
    stored = (
        (own.bytes_kv + own.bytes_scales) / own.bytes_compulsory if own.bytes_compulsory else 1.0
    )
    if point.stores and stored < _HALF and times * stored <= 0.5:
        return Cause.STORES
    return Cause.CACHED if point.appends and times * stored <= 0.75 else None


def _unexplained(point: Against, times: float) -> Cause:
    """Suspect, unless chance can do it: `times` is the low end of the point's interval over the
    roof.
    """
    chance = by_chance(times, point.rate.launches)
    return Cause(chance) if chance else Cause.SLOWER
