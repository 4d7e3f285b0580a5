"""What limits a decode: shares of what was timed in the same rounds, each with an interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from kvbench.analysis.measured.estimates import SPREAD, Estimate, enough
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import Point

CLOSE = 0.90  # of what a limit allows: at it
SKEW = 0.10  # the slowest thread's lead over the mean: waiting, not working

# of an excess over what the point may well be level with: of many such points chance lifts some so
# far
PARITY = 0.02


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
    DISPLACED = "other bytes are read between"  # its passes, and not those of its witnesses


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

Class = tuple[str, int, int, int, int]  # of points that share a core speed
CoreSpeeds = dict[Class, tuple[Point, Estimate]]


def core_class(point: Point) -> Class:
    shape = point.shape
    return point.kernel, shape.group, shape.head_dim, shape.q_len, point.threads


def core_speeds(found: Mapping[Point, PointRates]) -> CoreSpeeds:
    """How fast a kernel is against its window walk, where some point surely beats that: the point
    that does so by most, and by how much. So fast is the core at least, and other points of its
    class are held against it.
    """
    best: CoreSpeeds = {}
    for point, rates in found.items():
        share = rates.shares[rates.core] if rates.core else None
        if share and point.op == "decode" and beats(share):
            key = core_class(point)
            if key not in best or share.low > best[key][1].low:
                best[key] = point, share
    return best


def beats(share: Estimate) -> bool:
    """Whether a point is surely faster than what does less."""
    return not by_chance(share.low, share.launches)


class Chance(StrEnum):
    """How a point may come to lie above what it does not exceed."""

    LEVEL = "level with it"  # less than 2 % above: of many points some are, by chance
    FEW = "too few launches"


def by_chance(times: float, launches: int) -> Chance | None:
    """`times`: the low end of the point's interval over what it is held against."""
    if times <= 1 + PARITY:
        return Chance.LEVEL
    return Chance.FEW if not enough(launches) and times <= 1 + SPREAD else None


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
