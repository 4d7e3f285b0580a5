"""Intervals that hold a median, and the noise of a series. They use only the order of the values,
not their distribution.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from statistics import NormalDist, median

MAD = NormalDist().inv_cdf(0.75)  # median absolute deviation of a normal, in standard deviations


def interval(values: Sequence[float], coverage: float) -> tuple[float, float]:
    """The narrowest symmetric pair of the values that holds the true median with probability
    `coverage`.

    With too few values it is their full range: held() gives the probability that this range has.
    """
    ordered = sorted(values)
    outside, _ = _left_out(len(ordered), coverage)
    return ordered[outside], ordered[-1 - outside]


def held(count: int, coverage: float) -> float:
    """The probability with which the interval of `count` values holds the true median; 0 for one
    value.
    """
    _, probability = _left_out(count, coverage)
    return probability


@cache
def _left_out(count: int, coverage: float) -> tuple[int, float]:
    """How many values may be left out at each end, and the probability with which the others hold
    the median.

    Each value lies above the median with probability 1/2. The others miss the median if at most the
    left-out number of values lies on one side of it.
    """
    outside, missed = 0, 2 / (1 << count)
    while (more := missed + 2 * math.comb(count, outside + 1) / (1 << count)) <= 1 - coverage:
        outside, missed = outside + 1, more
    return outside, 1 - missed


def scatter(series: Iterable[float]) -> float:
    """The standard deviation of a series apart from its steps. It uses differences of neighbours,
    few of which contain a step.
    """
    steps = [abs(other - one) for one, other in pairwise(series)]
    return float(median(steps)) / (MAD * math.sqrt(2)) if steps else 0.0
