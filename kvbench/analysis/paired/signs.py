"""How far launches lie from nothing: the exact test of signed ranks by Wilcoxon, and the middle of Hodges and Lehmann.

Each value is one launch's, and a coin decided there which side came first in everything: so if both sides are alike a
value is as likely to stand with either sign, whatever the noise. That is all that the test rests on.
"""

import math
from functools import cache

import numpy as np

from kvbench.analysis.compare.ranks import COVERAGE, Shift, around

_DRAWS, _SEED = 8_000, 1


class Middle(Shift):
    """Of values of launches that hold both sides."""

    def detectable(self, chance: float, power: float, least: float = 0.0, launches: int | None = None) -> float:
        """The true shift that so many launches as noisy as these, or as many, show with this power: a `slower` of
        `chance` or less, and an estimate of `least` or more. NaN where none does."""
        count = self.launches[0]
        noise = (self.high - self.low) / _width(count)
        missing, estimates = _drawn(launches or count, chance)
        return float(np.quantile(np.maximum(noise * missing, least - noise * estimates), power))

    def mirrored(self) -> "Middle":
        return Middle(*super().mirrored())


def middle(values: np.ndarray) -> Middle:
    """Launches on the last axis, one or more; axes before it are points of their own."""
    count = values.shape[-1]
    means = _means(values)
    chances = _chances(count)
    slower, faster = chances[(means > 0).sum(-1)], chances[(means < 0).sum(-1)]  # a tie speaks for neither
    ends = around(means, int((chances <= (1 - COVERAGE) / 2).sum()))
    return Middle(np.median(means, axis=-1), *ends, slower, faster, (count, count))


def _means(values: np.ndarray) -> np.ndarray:
    """Of every two values, and of each with itself, sorted. As many are positive as the positive ranks sum to."""
    one, other = np.triu_indices(values.shape[-1])
    return np.sort((values[..., one] + values[..., other]) / 2, axis=-1)


@cache
def _chances(count: int) -> np.ndarray:
    """By w, the chance that the ranks of positive values sum to w or more, if every sign is a coin's.

    scipy has it for samples, so there is one made up for each w: the largest ranks that fit into it are positive.
    """
    from scipy.stats import wilcoxon  # slow to load

    sums = np.arange(count * (count + 1) // 2 + 1)
    left, samples = sums.copy(), np.empty((len(sums), count))
    for rank in range(count, 0, -1):
        positive = left >= rank
        samples[:, rank - 1] = np.where(positive, rank, -rank)
        left -= rank * positive
    return wilcoxon(samples, axis=1, alternative="greater", method="exact").pvalue


@cache
def _drawn(count: int, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Of draws of so many normal launches of deviation 1: how far each must be shifted until the test says `chance`,
    which is so far that enough of its means lie above nothing; and its estimate."""
    means = _means(np.random.default_rng(_SEED).normal(size=(_DRAWS, count)))
    enough = np.flatnonzero(_chances(count) <= chance)
    missing = -means[:, -enough[0]] if len(enough) else np.full(len(means), math.nan)
    return missing, np.median(means, axis=-1)


@cache
def _width(count: int) -> float:
    """Of the interval as it usually is, of normal launches of deviation 1. NaN where they are too few for one."""
    means = _means(np.random.default_rng(_SEED).normal(size=(_DRAWS, count)))
    low, high = around(means, int((_chances(count) <= (1 - COVERAGE) / 2).sum()))
    return float(np.median(high - low))
