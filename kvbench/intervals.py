"""Intervals that hold a median, and the noise of a series, by the order of the values alone."""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from statistics import NormalDist, median

MAD = NormalDist().inv_cdf(0.75)  # the median distance from the middle, in standard deviations


def interval(values: Sequence[float], coverage: float) -> tuple[float, float]:
    """Two of the values: the narrowest symmetric pair that holds the true median with probability
    `coverage`.

    Where there are too few for that, their whole range: held() says with what probability it does.
    """
    ordered = sorted(values)
    outside, _ = _left_out(len(ordered), coverage)
    return ordered[outside], ordered[-1 - outside]


def held(count: int, coverage: float) -> float:
    """The probability with which the interval of `count` values holds the true median: 0 for a
    single one.
    """
    _, probability = _left_out(count, coverage)
    return probability


@cache
def _left_out(count: int, coverage: float) -> tuple[int, float]:
    """How many values at each end, and the probability with which the others still hold the median.

    It is missed where no more than those lie on one side of it: for each value that is a coin's
    toss.
    """
    outside, missed = 0, 2 / (1 << count)
    while (more := missed + 2 * math.comb(count, outside + 1) / (1 << count)) <= 1 - coverage:
        outside, missed = outside + 1, more
    return outside, 1 - missed


def scatter(series: Iterable[float]) -> float:
    """The standard deviation about steps, from the differences of neighbours: of which few see a
    step.
    """
    steps = [abs(other - one) for one, other in pairwise(series)]
    return float(median(steps)) / (MAD * math.sqrt(2)) if steps else 0.0
