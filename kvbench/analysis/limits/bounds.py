"""Decide what limits a decode, from its shares of the programs in the same rounds, each with an
interval.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from kvbench.analysis.measured.estimates import SPREAD, Estimate, enough
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import Point

CLOSE = 0.90  # share of a limit from which on a point has reached it
SKEW = 0.10  # the slowest thread works longer than the mean by this share: the others wait

# Excess up to which a point may be level with a limit: among many level points, chance lifts some
# this far above it.
PARITY = 0.02


# ---- what limits a point -------------------------------------------------------------------------


class Limit(StrEnum):
    """What limits a decode. The point has a share of each of the first three limits."""

    MEMORY = "memory"  # plain reads of memory
    ROWS = "rows"  # reads of its own rows: the faster form of its twin
    CORE = "core"  # its core speed
    BOTH = "both"  # reads and the core
    NEITHER = "neither"
    NOT_CLEAR = "not clear"
    UNKNOWN = "unknown"


class Why(StrEnum):
    """Why this limit is given, from the shares in `by`."""

    REACHED = "reached"  # the low ends of these shares are 90 % or more
    ROWS_ALONE = "memory not timed"  # reads of its rows limit it; memory was not read beside it
    MEMORY_OPEN = "memory not clear"  # reads of its rows limit it; the share of memory crosses 90 %
    CROSSES = "interval crosses"  # the intervals of these shares cross 90 %
    TOO_FEW = "too few launches"  # for these shares
    BELOW = "all below"  # all shares are below 90 %
    WAITING = "threads wait"  # all shares are below 90 %, and the slowest thread works longer
    BEATEN = "faster than its limit"  # surely faster than these; no other share decides
    NOT_TIMED = "not timed"  # these were not timed beside it
    NO_DECODE = "no decode"
    DISPLACED = "other bytes are read between"  # the point's passes, but not its witnesses'


READS = (Limit.MEMORY, Limit.ROWS)
FAR = frozenset({"DRAM", "unknown"})  # regimes in which plain reads of memory are a limit
Shares = Mapping[Limit, Estimate]


@dataclass(frozen=True, slots=True)
class Limited:
    """What limits a point. `by`: the limits that the reason is about: memory, rows or core. `skew`:
    how much longer the slowest thread works than the mean, as a share.
    """

    word: Limit
    why: Why
    by: tuple[Limit, ...] = ()
    skew: float = 0.0


def limit(shares: Shares, skew: float, far: bool) -> Limited:
    """What limits a decode, from shares of the same rounds only. `far`: the data comes from memory;
    only then plain reads of memory are a limit.
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
    """Where the interval of a share lies relative to 90 %, or to 100 %."""

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
    """For each class with points that surely beat their window walk: the point that beats it by
    most, and by how much.

    The core is at least as fast as that point, so the other points of the class are compared with
    that speed.
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
    """Whether a point is surely faster than a program that does less work."""
    return not by_chance(share.low, share.launches)


class Chance(StrEnum):
    """How chance can put a point above a limit."""

    LEVEL = "level with it"  # at most 2 % above: among many points, chance lifts some so far
    FEW = "too few launches"


def by_chance(times: float, launches: int) -> Chance | None:
    """How chance explains the excess; None if it does not. `times`: the low end of the point's
    interval over the limit.
    """
    if times <= 1 + PARITY:
        return Chance.LEVEL
    return Chance.FEW if not enough(launches) and times <= 1 + SPREAD else None


def of_core(share: Estimate, faster: Estimate) -> Estimate:
    """Convert a share of the window walk to a share of the core speed, which is `faster` than that
    walk.

    The interval is the worst case: it combines the opposite ends of both intervals.
    """
    return Estimate(
        share.median / faster.median,
        share.low / faster.high,
        share.high / faster.low,
        tuple(value / faster.median for value in share.values),
    )
