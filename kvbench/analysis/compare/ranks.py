"""How far head's launches lie above base's: the exact test of Mann and Whitney, and the shift of Hodges and Lehmann.

Both rest on the order of the values alone. Where labels "base" and "head" could be exchanged between launches without
changing what is likely, the test is exact for any noise, also of launches that lie in two groups or far out.
"""

import math
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

COVERAGE = 0.95  # of the intervals
_DRAWS, _AT_ONCE, _SEED = 20_000, 4_000_000, 1
_Array = Any  # a number, or an array of them: of one comparison, or of many at once


class Shift(NamedTuple):
    """Of logarithms of time: positive where head takes longer. `slower`, `faster`: one-sided chances of this or more if
    both sides were alike. NaN for the interval where launches are too few for COVERAGE. `launches`: of base, of head."""

    estimate: _Array
    low: _Array
    high: _Array
    slower: _Array
    faster: _Array
    launches: tuple[int, int]

    @property
    def error(self) -> _Array:
        """The estimate's standard error, were it normal: from the width of the interval, which no outlier moves far."""
        return (self.high - self.low) / (2 * NormalDist().inv_cdf((1 + COVERAGE) / 2))

    def detectable(self, chance: float, power: float) -> _Array:
        """The true shift that gives a `slower` of `chance` or less with this power: NaN where none does."""
        return (self.high - self.low) * _needed(*self.launches, chance, power)

    def mirrored(self) -> "Shift":
        """With time run backwards: faster is slower."""
        return Shift(-self.estimate, -self.high, -self.low, self.faster, self.slower, self.launches)


def shift(base: np.ndarray, head: np.ndarray) -> Shift:
    """Launches on the last axis, one or more on each side; axes before it are comparisons of their own."""
    launches = base.shape[-1], head.shape[-1]
    apart = _apart(base, head)
    chances = _chances(*launches)
    slower, faster = chances[(apart > 0).sum(-1)], chances[(apart < 0).sum(-1)]  # a tie speaks for neither
    return Shift(np.median(apart, axis=-1), *around(apart, _outside(launches)), slower, faster, launches)


def around(estimates: np.ndarray, outside: int) -> tuple[np.ndarray, np.ndarray]:
    """What a test does not reject of sorted estimates: `outside`, as many as it takes to reject, are left out at each
    end. NaN where none are so many."""
    if not outside:
        return (nothing := np.full(estimates.shape[:-1], math.nan)), nothing
    return estimates[..., outside - 1], estimates[..., -outside]


def _apart(base: np.ndarray, head: np.ndarray) -> np.ndarray:
    """Every launch of head from every launch of base, sorted: on the last axis."""
    apart = head[..., None, :] - base[..., :, None]
    return np.sort(apart.reshape(*apart.shape[:-2], -1), axis=-1)


def _outside(launches: tuple[int, int]) -> int:
    return int((_chances(*launches) <= (1 - COVERAGE) / 2).sum())


@cache
def _needed(base: int, head: int, chance: float, power: float) -> float:
    """The shift that is seen with this power against the usual width of the interval, of launches that are normal.

    By drawing them: a draw is seen once its shift has carried so many pairs above that the test says so, which is as
    far as the pair lies that comes last of these.
    """
    enough = np.flatnonzero(_chances(base, head) <= chance)
    draws = min(_DRAWS, _AT_ONCE // (base * head))
    rng = np.random.default_rng(_SEED)
    apart = _apart(rng.normal(size=(draws, head)), rng.normal(size=(draws, base)))
    low, high = around(apart, _outside((base, head)))
    if not len(enough) or np.isnan(low).any():
        return math.nan
    return float(np.quantile(apart[:, enough[0] - 1], power) / np.median(high - low))


@cache
def _chances(base: int, head: int) -> np.ndarray:
    """By u, the chance that u or more of all pairs of launches have head above base, if both sides are alike.

    scipy has it for samples, so there is one made up for each u: `whole` of head's values lie above all of base's, one
    above just `rest` of these, and the others below all.
    """
    from scipy.stats import mannwhitneyu  # slow to load

    whole, rest = np.divmod(np.arange(base * head + 1), base)
    place, whole, rest = np.arange(head), whole[:, None], rest[:, None]
    heads = np.where(place < whole, base + 1 + place, np.where(place == whole, rest + 0.5, -place))
    bases = np.broadcast_to(np.arange(1, base + 1), (len(heads), base))
    return np.minimum(mannwhitneyu(heads, bases, alternative="greater", method="exact", axis=1).pvalue, 1.0)
