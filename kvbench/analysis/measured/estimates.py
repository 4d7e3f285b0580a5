"""A value that launches gave: their median, an interval over them, and how far they lie apart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Self

import numpy as np

from kvbench.analysis.judge import COVERAGE, paired
from kvbench.intervals import held, interval
from kvbench.units import GB

# of the median, by the middle half of the launches: beyond it, most of them met another machine
SPREAD = 1 / 3
FAR_OUT = 3.0  # widths of the middle half, beyond it: what no ordinary scatter reaches


@dataclass(frozen=True, slots=True)
class Estimate:
    """The median of the launches' values, and what encloses the true one, with COVERAGE where it
    can: two of the values.
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
        """The interval is the judge's, of signed ranks, where launches are enough for it: as sure,
        and narrower. `median` is then the estimate that belongs to it, of Hodges and Lehmann: the
        median of the means of two launches.
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
        """Width of the interval against the median; None of a single launch."""
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
        """The GB/s of `count` bytes, where this is of seconds."""
        own = (self.median, self.high, self.low)
        middle, low, high = (count / GB / seconds for seconds in own)
        return type(self)(middle, low, high, tuple(count / GB / seconds for seconds in self.values))


def enclosed(name: str, found: Estimate) -> dict[str, float]:
    """As columns of a table."""
    return {name: found.median, f"{name}_low": found.low, f"{name}_high": found.high}


def enough(launches: int) -> bool:
    """For an interval of COVERAGE."""
    return held(launches, COVERAGE) >= COVERAGE


def steady(values: Sequence[float]) -> bool:
    """Whether the middle half of the values lies within SPREAD of their median. A single value
    shows nothing: False.
    """
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return len(ordered) > 1 and ordered[-1 - quarter] - ordered[quarter] <= SPREAD * median(ordered)


def outliers(values: Sequence[float]) -> int:
    """How many lie beyond the quartiles by more than FAR_OUT times the distance between these
    (Tukey's far out).
    """
    if len(values) < 2:
        return 0
    low, _, high = quantiles(values, n=4, method="inclusive")
    fence = FAR_OUT * (high - low)
    return sum(value < low - fence or value > high + fence for value in values)
