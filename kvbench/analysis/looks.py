"""How sure a verdict must be where launches are added until questions are decided
(--until-decided), by launches.

Who looks again after every launch, and stops where the test says yes, errs as often as all the
looks together. So each number of launches has a bound of its own, and all that these spend adds up
to what a single look may spend (Lan and DeMets), over all launches that a run can have. Nobody need
say when it is looked. A claim of a point spends LIMITS.rate each way. A difference that is
corrected beside others has a chance of its own: the least rate whose bounds it crosses.

The bounds are exact. Where both sides are alike a coin decides the sign of a launch, and a new one
takes any place among the sizes of those before it. So each pattern of signs by size is followed
from launch to launch, without those that an earlier look has stopped.

Signed ranks of n launches show nothing below a chance of 2**-n: at 1 % seven are the fewest, all on
one side, and they spend 0.0078 of the 0.01. So spending grows early, with the cube root of the
launches: 0.0079 by the seventh of 14. What is left buys a chance of 0.0012 at 14. O'Brien and
Fleming's bounds would decide nothing before the tenth.
"""

import math
from functools import cache

import numpy as np

from kvbench.analysis.judge import LIMITS, OUTSIDE

# power of the share of the launches, that the share of the rate is which they may spend
_EARLY = 1 / 3
_ROUNDING = 1 + 1e-9
# both ways together: close to each other where it matters, down to where a page asks for no smaller
_STEPS = (-15, -10, -5, *range(13), *range(16, 33, 4))
RATES = tuple(2 * OUTSIDE * 10 ** (-step / 12) for step in _STEPS)
_FEWEST = math.ceil(-math.log2(LIMITS.rate))  # launches, that show anything


def chance(launches: int, most: int = 0) -> float:
    """One-sided: so much or less shows a difference in so many launches. `most`: that the run can
    have, where some are added until questions are decided; 0: none are, and it is looked once.
    """
    return _at(LIMITS.rate, launches, most) if most else LIMITS.rate


def outside(launches: int, most: int = 0) -> float:
    """The chance on each side of an interval."""
    return _at(OUTSIDE, launches, most) if most else OUTSIDE


def adjusted(chance: float, launches: int, most: int = 0) -> float:
    """The least rate, both ways together, from which on the bounds are crossed now: a chance that
    holds however often it was looked before. `chance`: the two-sided one of a single look. It is
    rounded up to one of RATES.
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
    """About how many launches as noisy as these show that a ratio is not 1, or that it is no
    matter; None where it is known to be none.

    An interval shrinks with the root of the launches, and must leave 1 outside or lie within what
    counts as the same.
    """
    if launches >= _FEWEST and -LIMITS.same < low - 1 and high - 1 < LIMITS.same:
        return None
    far, half = abs(math.log(ratio)), math.log(high / low) / 2
    shown = far if far >= math.log1p(LIMITS.point) else 0.0
    rest = half / max(shown, math.log1p(LIMITS.same) - far)
    return max(launches + 1, _FEWEST, math.ceil(launches * rest**2))


@cache
def _bounds(most: int, rate: float) -> tuple[float, ...]:
    """By the number of launches, from none on, at this rate each way. A pattern has a bit for each
    launch, that of the smallest first.
    """
    # by pattern: its chance without what was stopped; of its positive ones
    left, ranks = np.ones(1), np.zeros(1, int)
    spent, found = 0.0, [0.0]
    for count in range(1, most + 1):
        grown = np.zeros(2 * len(left))
        for place in range(count):  # that the new one takes, with either sign
            grown.reshape(-1, 2, 1 << place)[...] += left.reshape(-1, 1, 1 << place) / (2 * count)
        left, ranks = grown, np.concatenate((ranks, ranks + count))
        # by sum of ranks: the chance of that or more
        tail = np.cumsum(np.bincount(ranks, left)[::-1])[::-1]
        stops = ranks >= int((tail > rate * (count / most) ** _EARLY - spent).sum())
        spent += float(left[stops].sum())
        found.append(float(stops.mean()))
        left = np.where(stops, 0.0, left)
    return tuple(found)
