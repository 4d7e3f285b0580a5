"""A value that was measured in several launches: its median, its interval, and its spread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Self

import numpy as np

from kvbench.analysis.judge import COVERAGE, paired
from kvbench.intervals import held, interval
from kvbench.units import GB

# largest width of the middle half of the launches, as a share of the median: a wider one means that
# the machine changed
SPREAD = 1 / 3
FAR_OUT = 3.0  # an outlier lies beyond the middle half by this many of its widths


@dataclass(frozen=True, slots=True)
class Estimate:
    """The median of the launches' values with an interval: two of the values, which enclose the
    true median with COVERAGE if there are enough.
    """

    median: float
    low: float
    high: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(median(values), *interval(values, COVERAGE), tuple(values))

    @classmethod
    def of_ratios(cls, values: Sequence[float]) -> Self:
        """An estimate with the judge's interval, from signed ranks, if there are enough launches:
        it is as sure and narrower.

        `median` is then the estimate of Hodges and Lehmann that belongs to it: the median of the
        means of every two launches.
        """
        found, whole = paired(np.log(values)), cls.of(values)
        if not found.enclosed:
            return whole
        middle, low, high = map(math.exp, (found.estimate, found.low, found.high))
        return replace(whole, median=middle, low=low, high=high)

    @property
    def launches(self) -> int:
        return len(self.values)

    @property
    def spread(self) -> float | None:
        """Width of the interval over the median; None for one launch."""
        return (self.high - self.low) / self.median if self.launches > 1 else None

    @property
    def confidence(self) -> float:
        """The probability with which the interval holds the true median."""
        return held(self.launches, COVERAGE)

    def times(self, factor: float) -> Self:
        return type(self)(
            factor * self.median,
            factor * self.low,
            factor * self.high,
            tuple(factor * value for value in self.values),
        )

    def of_bytes(self, count: float) -> Self:
        """The estimate in GB/s of `count` bytes, from an estimate in seconds."""
        own = (self.median, self.high, self.low)
        middle, low, high = (count / GB / seconds for seconds in own)
        return type(self)(middle, low, high, tuple(count / GB / seconds for seconds in self.values))


def enclosed(name: str, found: Estimate) -> dict[str, float]:
    """The median and its interval as columns of a table."""
    return {name: found.median, f"{name}_low": found.low, f"{name}_high": found.high}


def enough(launches: int) -> bool:
    """Whether there are enough launches for an interval of COVERAGE."""
    return held(launches, COVERAGE) >= COVERAGE


def steady(values: Sequence[float]) -> bool:
    """Whether the middle half of the values lies within SPREAD of their median. False for a single
    value, which shows nothing.
    """
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return len(ordered) > 1 and ordered[-1 - quarter] - ordered[quarter] <= SPREAD * median(ordered)


def outliers(values: Sequence[float]) -> int:
    """How many values lie outside the quartiles by more than FAR_OUT times their distance (Tukey's
    far out).
    """
    if len(values) < 2:
        return 0
    low, _, high = quantiles(values, n=4, method="inclusive")
    fence = FAR_OUT * (high - low)
    return sum(value < low - fence or value > high + fence for value in values)
