"""What a point's rate says beside what it is held against: what limits it, whether L3 feeds it
faster than memory would, and whether it exceeds a roof. That is a measurement too, of another walk
and often of another footprint: where that explains nothing, the point is suspect.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

import numpy as np

from kvbench.analysis.judge import FASTER, LIMITS, SLOWER, paired
from kvbench.analysis.looks import chance, needs
from kvbench.analysis.measured.ceilings import REACH
from kvbench.analysis.measured.estimates import SPREAD, Estimate, enough
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import Ceiling, Fact, Point, Traffic, program
from kvbench.regime import NO_LEVEL, Regime
from kvbench.units import GB, counted, size

CLOSE = 0.90  # of what a limit allows: at it
SKEW = 0.10  # the slowest thread's lead over the mean: waiting, not working

SUSPECT = "suspect: "  # how a reason begins that explains nothing
# of an excess over what the point may well be level with: of many such points chance lifts some so
# far
PARITY = 0.02
_OTHER_PAGES = 0.5  # of the memory, that lies on huge pages here and not there
_MOST = 2.0  # times a roof: beyond it nothing explains an excess
_HALF = 0.45  # of the bytes are stores: a copy's share is a half

CONFIRMED, REFUTED, CORE, PRIVATE = "confirmed", "refuted", "core-bound", "private-cache"
NOT_TESTABLE, UNSTABLE = "not testable", "unstable"


@dataclass(frozen=True, slots=True)
class Against:
    """A point and what it is held against. `traffic`: of a pass, by program. `huge`: share of its
    memory on huge pages.
    `most`: launches that the run can have where some are added until questions are decided, else 0.
    """

    found: PointRates
    traffic: Mapping[str, Traffic]
    stores: bool
    regime: Regime
    footprint: float
    ceiling: Ceiling | None = None
    computed: Ceiling | None = None
    peak: Fact | None = None
    huge: float | None = None
    core_level: str = ""
    most: int = 0
    appends: bool = False

    @property
    def rate(self) -> Estimate:
        return self.found.rates["point"]

    @property
    def above_ceiling(self) -> bool:
        return self.ceiling is not None and self.rate.low > self.ceiling.high


# ---- what limits it ------------------------------------------------------------------------------


class Limit(StrEnum):
    """What limits a decode. The first three have a share each, of what they would allow."""

    MEMORY = "memory"  # plain reads of memory
    ROWS = "rows"  # reads of its own rows: the faster form of the twin
    CORE = "core"  # its core speed
    BOTH = "both"  # reads and the core
    NEITHER = "neither"
    NOT_CLEAR = "not clear"
    UNKNOWN = "unknown"


class Why(StrEnum):
    """Why the word is what it is. The shares that it rests on stand beside it."""

    REACHED = "reached"  # the low ends of these shares are at 90 % or more
    ROWS_ALONE = "memory not timed"  # reads of its rows reach it; memory was not read beside them
    MEMORY_OPEN = "memory not clear"  # reads of its rows reach it; memory crosses 90 %
    CROSSES = "interval crosses"  # the intervals of these shares do
    TOO_FEW = "too few launches"  # behind these shares
    BELOW = "all below"  # shares of 90 %
    WAITING = "threads wait"  # all shares are below, and the slowest thread works longer
    BEATEN = "faster than its limit"  # it is surely faster than these; no other share tells
    NOT_TIMED = "not timed"  # beside it, these
    NO_DECODE = "no decode"


READS = (Limit.MEMORY, Limit.ROWS)
FAR = frozenset({"DRAM", "unknown"})  # regimes in which plain reads of memory are a limit
Shares = Mapping[Limit, Estimate]


@dataclass(frozen=True, slots=True)
class Limited:
    """`by`: what the reason is about, of memory, rows and core. `skew`: share of the mean, by which
    the slowest thread works longer.
    """

    word: Limit
    why: Why
    by: tuple[Limit, ...] = ()
    skew: float = 0.0


def limit(shares: Shares, skew: float, far: bool) -> Limited:
    """From shares of the same rounds alone. `far`: the data comes from memory, so that plain reads
    of memory are a limit; else the others are.
    """
    timed = {name: share for name, share in shares.items() if far or name != Limit.MEMORY}
    states = {name: _state(share) for name, share in timed.items()}
    in_state = {state: tuple(name for name in timed if states[name] == state) for state in _State}
    reached, across = in_state[_State.REACHED], in_state[_State.ACROSS]
    reads = next((name for name in READS if name in reached), None)
    if reads and Limit.CORE in reached and _meet(timed[reads], timed[Limit.CORE]):
        return Limited(Limit.BOTH, Why.REACHED, (reads, Limit.CORE), skew)
    if reads == Limit.ROWS and far and Limit.MEMORY not in timed:
        return Limited(reads, Why.ROWS_ALONE, (reads,), skew)
    if reads == Limit.ROWS and Limit.MEMORY in across:
        return Limited(reads, Why.MEMORY_OPEN, (reads,), skew)
    if reads or reached:
        word = reads or Limit.CORE
        return Limited(word, Why.REACHED, (word,), skew)
    if across:
        few = tuple(name for name in across if not enough(timed[name].launches))
        why = Why.TOO_FEW if few else Why.CROSSES
        return Limited(Limit.NOT_CLEAR, why, few or across, skew)
    if lacking := tuple(name for name in (Limit.ROWS, Limit.CORE) if name not in timed):
        return Limited(Limit.UNKNOWN, Why.NOT_TIMED, lacking, skew)
    if beaten := in_state[_State.BEATEN]:
        return Limited(Limit.UNKNOWN, Why.BEATEN, beaten, skew)
    why = Why.WAITING if skew > SKEW else Why.BELOW
    return Limited(Limit.NEITHER, why, tuple(timed), skew)


class _State(Enum):
    """Where the interval of a share lies."""

    REACHED = auto()
    ACROSS = auto()
    BELOW = auto()
    BEATEN = auto()


def _state(share: Estimate) -> _State:
    if not enough(share.launches):
        return _State.ACROSS
    if share.low > 1 + PARITY:
        return _State.BEATEN
    if share.low >= CLOSE:
        return _State.REACHED
    return _State.BELOW if share.high < CLOSE else _State.ACROSS


def _meet(one: Estimate, other: Estimate) -> bool:
    return one.low <= other.high and other.low <= one.high


# ---- the core's speed ----------------------------------------------------------------------------

Class = tuple[str, int, int, int]  # of points that share a core speed


def core_class(point: Point) -> Class:
    return point.kernel, point.shape.group, point.shape.head_dim, point.threads


def core_speeds(found: Mapping[Point, PointRates]) -> dict[Class, tuple[Point, Estimate]]:
    """How fast a kernel is against its window walk, where some point surely beats that: the point
    that does so by most, and by how much. So fast is the core at least, and other points of its
    class are held against it.
    """
    best: dict[Class, tuple[Point, Estimate]] = {}
    for point, rates in found.items():
        share = rates.shares.get(program.CORE)
        if share and point.op == "decode" and beats(share):
            key = core_class(point)
            if key not in best or share.low > best[key][1].low:
                best[key] = point, share
    return best


def beats(share: Estimate) -> bool:
    """Whether a point is surely faster than what does less."""
    return not _chance(share.low, share.launches)


def of_core(share: Estimate, faster: Estimate) -> Estimate:
    """A share of the window walk as one of the core's speed, which is `faster` than that walk. The
    interval is that of the worst case: both lie at the ends that are farthest from each other.
    """
    return Estimate(
        share.median / faster.median,
        share.low / faster.high,
        share.high / faster.low,
        tuple(value / faster.median for value in share.values),
    )


# ---- above a roof --------------------------------------------------------------------------------


def above(point: Against) -> tuple[str, str]:
    """The roof exceeded that is hardest to explain, and the reason, which begins with SUSPECT where
    nothing explains it and names the others; both empty where the point exceeds none.
    """
    found = []
    for roof, reason, times in _exceeded(point):
        if times > _MOST and not reason.startswith(SUSPECT):
            reason = f"{SUSPECT}more than this, which explains no {times:.1f} times: {reason}"
        found.append((roof, reason))
    if not found:
        return "", ""
    (roof, reason), *others = sorted(found, key=lambda above: not above[1].startswith(SUSPECT))
    also = ", ".join(f"its {other}" for other, _ in others)
    return roof, reason + (f"; also above {also}" if also else "")


def _exceeded(point: Against) -> Iterator[tuple[str, str, float]]:
    """Those that lie, with the high end of their interval, below the low end of the point's: so
    many times.
    """
    shares, rate, fact = point.found.shares, point.rate, point.peak
    peak = fact.value if fact and isinstance(fact.value, int | float) else 0
    if fact and point.regime.word == "DRAM" and 0 < peak < rate.low:
        reads = point.ceiling.high if point.ceiling else 0.0
        yield "theoretical DRAM peak", _over_peak(point, fact, peak), rate.low / max(peak, reads)
    gflops = point.traffic["point"].flops / GB / point.found.seconds["point"].high
    if point.computed and (times := gflops / point.computed.high) > 1:
        op = point.computed.probe.op
        name = "FMA" if op == "flops" else op
        yield f"{name} peak", _unexplained(point, times, "its instructions alone are slower"), times
    if program.CORE in shares and (times := shares[program.CORE].low) > 1:
        why = _unexplained(
            point, times, "the same kernel walks a window in a private cache more slowly"
        )
        if point.regime.word in ("L1", "L2") and point.regime.word <= (point.core_level or "L2"):
            why = (
                f"its data lies in {point.regime.word}, as near as the window that the core roof"
                " walks"
            )
        yield "core roof", why, times
    if point.found.witness and (times := shares[point.found.witness].low) > 1:
        yield "copy" if point.stores else "twin", _over_witness(point, point.found.witness), times
    if point.ceiling and point.above_ceiling:
        times = rate.low / point.ceiling.high
        yield f"{point.ceiling.probe.op} ceiling", _over_ceiling(point, point.ceiling), times


def _over_peak(point: Against, fact: Fact, peak: float) -> str:
    if point.ceiling and point.ceiling.low > peak:
        walked = size(point.ceiling.probe.bytes)
        return (
            f"reads of {walked} exceed it too: the memory runs faster than its modules are"
            " declared to"
        )
    if fact.confidence != "high":
        return f"the peak is in doubt: {fact.note or fact.source}"
    held = f"caches hold more of its {size(point.footprint)} than thought"
    return f"{SUSPECT}{held}, or the modules are faster than declared"


def _over_witness(point: Against, witness: str) -> str:
    share = point.found.shares[witness].low
    if few := _few_stores(point, share):
        return few
    if point.ceiling and not point.above_ceiling and share > 1 + PARITY:
        what = "copy of the same rounds" if point.stores else "twin"
        return (
            f"the {point.ceiling.probe.op} ceiling of its footprint allows it: its {what} walks"
            " more slowly"
        )
    return _unexplained(
        point, share, f"{'copies' if point.stores else 'its reads'} alone are slower"
    )


def _over_ceiling(point: Against, ceiling: Ceiling) -> str:
    walked, witness = ceiling.probe.bytes, point.found.witness
    if (
        point.huge is not None
        and ceiling.huge is not None
        and point.huge - ceiling.huge > _OTHER_PAGES
    ):
        return (
            f"{point.huge:.0%} of its memory is on huge pages, but {ceiling.huge:.0%} of the"
            " ceiling's"
        )
    own = size(point.footprint)
    if point.regime.word in NO_LEVEL and walked > point.footprint:
        return (
            f"between levels, where less is faster: it walks {own}, the ceiling's probe"
            f" {size(walked)}"
        )
    if few := _few_stores(point, point.rate.low / ceiling.high):
        return few
    if point.regime.word == "DRAM" and walked > REACH * point.footprint:
        return (
            f"{SUSPECT}its {own} may lie nearer than DRAM: the ceiling's probe walks {size(walked)}"
        )
    if (
        witness
        and point.found.rates[witness].median > ceiling.high
        and point.found.shares[witness].low <= 1
    ):
        same = (
            "a copy of the same rounds"
            if point.stores
            else "its twin, the same reads and nothing else,"
        )
        return f"{same} exceeds it too: the ceiling's probe walks more slowly"
    if len(ceiling.samples) > 1 and not ceiling.stable:
        return f"{SUSPECT}the launches of the ceiling itself disagree"
    return _unexplained(
        point, point.rate.low / ceiling.high, f"its {own} may be nearer than thought"
    )


def _few_stores(point: Against, times: float) -> str:
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
        return f"{stored:.0%} of its bytes are stores, but 50% of a copy's: stores are dearer"
    if point.appends and times * stored <= 0.75:
        return "what it stores comes from a cache, what a copy stores from as far as it goes"
    return ""


def _unexplained(point: Against, times: float, what: str) -> str:
    """Suspect, unless chance can do it: `times` is the low end of the point's interval over the
    roof.
    """
    return _chance(times, point.rate.launches) or f"{SUSPECT}{what}"


def _chance(times: float, launches: int) -> str:
    if times <= 1 + PARITY:
        return (
            f"less than {PARITY:.0%} over the roof: level with it, as chance has it among many"
            " points"
        )
    if not enough(launches) and times <= 1 + SPREAD:
        return f"too few launches ({launches}) to tell it from chance"
    return ""


# ---- the claim that a slice which fits L3 is read faster than memory -----------------------------


def claim(point: Against) -> tuple[str, str]:
    """The word and the reason; both empty where the point does not bear upon the claim. All ratios
    are of times of the same rounds: of the machine, plain reads of the slice over those of memory;
    of the kernel, its own.
    """
    found, regime = point.found, point.regime
    if regime.word in ("L1", "L2"):
        return PRIVATE, regime.reason
    if regime.word == "unknown":
        return NOT_TESTABLE, regime.reason
    if regime.word != "L3":
        return "", ""
    if found.near is None or not found.shares.keys() >= {program.MEMORY, program.CORE}:
        return NOT_TESTABLE, "no reads of its slice and of memory were timed beside it"
    launches = found.near.launches
    if 0.5**launches > chance(launches, point.most):  # so often all lie on one side by chance
        return NOT_TESTABLE, f"the point has {counted(launches, 'launch')}, too few to tell"
    if not _way(found.near, point.most):
        said = (
            f"plain reads of its {size(point.footprint)} run at {_times(found.near)} those of"
            " memory"
        )
        return (
            NOT_TESTABLE,
            f"{said}: the L3 serves less than it declares, or strangers share it ({regime.reason})",
        )
    return _judged(found, found.near, point.most)


def decided_by(point: Against) -> int | None:
    """About how many launches the claim takes, where more of them may decide it."""
    found, (word, _) = point.found, claim(point)
    if point.regime.word != "L3" or found.near is None or program.MEMORY not in found.shares:
        return None
    ratio = found.shares[program.MEMORY] if word == UNSTABLE else found.near
    settled = (
        word not in (UNSTABLE, NOT_TESTABLE) or word == NOT_TESTABLE and _way(ratio, point.most)
    )
    return None if settled else needs(ratio.median, ratio.low, ratio.high, ratio.launches)


def _judged(found: PointRates, near: Estimate, most: int) -> tuple[str, str]:
    reads, core = found.shares[program.MEMORY], found.shares[program.CORE]
    rotated = found.shares.get(program.ROTATED)
    own = f"{_times(rotated)} as fast, " if rotated else ""
    said = f"plain reads run {_times(near)} as fast from L3 as from memory; "
    said += f"the decode {own}at {_times(reads)} plain reads of memory"
    way, allowed = _way(reads, most), reads.median / core.median
    if way == FASTER:
        return CONFIRMED, said
    if beats(core):
        return (
            NOT_TESTABLE,
            f"{said}; the point itself beats its core roof: whether the core limits it is unknown",
        )
    if allowed <= 1 or core.median >= CLOSE:
        return CORE, f"{said}; the core alone allows {allowed:.2f} times plain reads of memory"
    return REFUTED if way == SLOWER else UNSTABLE, said


def _way(ratio: Estimate, most: int) -> str:
    """Which way launches differ from 1: FASTER above it; "" where nothing shows. Also reads that
    are slower are reads of a cache: some memory is faster than the cache before it.
    """
    found = paired(-np.log(ratio.values))
    rate = chance(ratio.launches, most)
    return next((way for way in (FASTER, SLOWER) if found.shows(way, rate, LIMITS.point)), "")


def _times(ratio: Estimate) -> str:
    return f"{ratio.median:.2f} times ({ratio.low:.2f}..{ratio.high:.2f})"
