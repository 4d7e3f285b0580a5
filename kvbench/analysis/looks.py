"""Bounds for tests that are repeated after every launch, because launches are added until questions
are decided (--until-decided).

Each repeated look at the data adds to the chance of a false yes. So each number of launches has a
bound of its own, and the chances of all looks add up to the chance of a single look: alpha spending
by Lan and DeMets, over the most launches that the run can have. The times of the looks need not be
fixed in advance. A claim about a point spends LIMITS.rate in each direction. A difference that is
corrected over others has as its chance the smallest rate whose bounds it crosses.

The bounds are exact. If both sides are equal, either sign of a launch is equally likely, and a new
launch takes any rank among the earlier ones with equal chance. So every pattern of signs by rank is
followed from launch to launch, without the patterns that an earlier look has stopped.

Signed ranks of n launches reach no chance below 2**-n. At 1 % at least seven launches are needed,
all on one side, and they spend 0.0078 of the 0.01. So spending grows early, with the cube root of
the launches: 0.0079 by the seventh of 14. The rest allows a chance of 0.0012 at the 14th. The
bounds of O'Brien and Fleming would decide nothing before the tenth.
"""

import math
from functools import cache

import numpy as np

from kvbench.analysis.judge import LIMITS, OUTSIDE

# share of the rate that may be spent = (share of the launches) ** _EARLY
_EARLY = 1 / 3
_ROUNDING = 1 + 1e-9
# steps of rates, of both directions together: fine from 0.05 to 0.005, then coarse to 0.0001
_STEPS = (-15, -10, -5, *range(13), *range(16, 33, 4))
RATES = tuple(2 * OUTSIDE * 10 ** (-step / 12) for step in _STEPS)
_FEWEST = math.ceil(-math.log2(LIMITS.rate))  # the fewest launches that can show a difference


def chance(launches: int, most: int = 0) -> float:
    """The largest one-sided chance that counts as a difference with this many launches.

    most: launches that the run can have, if launches are added until questions are decided; 0: none
    are added, so there is a single look.
    """
    return _at(LIMITS.rate, launches, most) if most else LIMITS.rate


def outside(launches: int, most: int = 0) -> float:
    """The chance on each side of an interval. Arguments as in chance()."""
    return _at(OUTSIDE, launches, most) if most else OUTSIDE


def adjusted(chance: float, launches: int, most: int = 0) -> float:
    """The chance that accounts for repeated looks: the smallest rate, of both directions together,
    whose bounds are crossed now.

    chance: the two-sided chance of a single look. The result is rounded up to one of RATES.
    """
    if not most:
        return chance
    crossed = 1.0
    for rate in RATES:
        if chance / 2 > _at(rate / 2, launches, most):
            break
        crossed = rate
    return crossed


def _at(rate: float, launches: int, most: int) -> float:
    return _bounds(most, rate)[min(launches, most)] * _ROUNDING


def needs(ratio: float, low: float, high: float, launches: int) -> int | None:
    """A rough number of launches with this noise that would show either that a ratio is not 1, or
    that the difference does not matter; None if it is known not to matter.

    An interval shrinks with the root of the number of launches. It must exclude 1, or lie within
    the limits of the same.
    """
    if launches >= _FEWEST and -LIMITS.same < low - 1 and high - 1 < LIMITS.same:
        return None
    far, half = abs(math.log(ratio)), math.log(high / low) / 2
    shown = far if far >= math.log1p(LIMITS.point) else 0.0
    rest = half / max(shown, math.log1p(LIMITS.same) - far)
    return max(launches + 1, _FEWEST, math.ceil(launches * rest**2))


@cache
def _bounds(most: int, rate: float) -> tuple[float, ...]:
    """The bound for each number of launches, from 0 on, at this rate in each direction. A pattern
    has one bit for each launch, that of the smallest value first.
    """
    # by pattern: its chance if no look has stopped it; the sum of its positive ranks
    left, ranks = np.ones(1), np.zeros(1, int)
    spent, found = 0.0, [0.0]
    for count in range(1, most + 1):
        grown = np.zeros(2 * len(left))
        for place in range(count):  # the rank of the new launch, with either sign
            grown.reshape(-1, 2, 1 << place)[...] += left.reshape(-1, 1, 1 << place) / (2 * count)
        left, ranks = grown, np.concatenate((ranks, ranks + count))
        # by sum of ranks: the chance of this sum or more
        tail = np.cumsum(np.bincount(ranks, left)[::-1])[::-1]
        stops = ranks >= int((tail > rate * (count / most) ** _EARLY - spent).sum())
        spent += float(left[stops].sum())
        found.append(float(stops.mean()))
        left = np.where(stops, 0.0, left)
    return tuple(found)
