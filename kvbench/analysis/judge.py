"""Decide whether two things differ, and by how much. A gate, a comparison of runs, a contrast, the
claim about L3 and a history all use this module.

launches of both sides → evidence from ranks → correction over all questions asked together → word

Ranks assume nothing about the distribution of the noise. If each launch measured both sides, its
value is their ratio; if the sides are equal, either sign is equally likely: Wilcoxon's signed-rank
test. If the sides have launches of their own and are equal, their labels could be exchanged: the
test of Mann and Whitney. Both tests count the estimates of the shift that are above 0: means of two
ratios, or differences of two launches. The median of these is the estimate of Hodges and Lehmann.
The interval holds the shifts that the test does not reject.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from kvbench.analysis.ranks import discoveries, tails
from kvbench.grouping import grouped
from kvbench.model import Judged, Point
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    IMPROVEMENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
    WORDS,
)

COVERAGE = 0.95  # of intervals
OUTSIDE = (1 - COVERAGE) / 2  # chance on each side of an interval
SLOWER, FASTER = "slower", "faster"
_DRAWS, _AT_ONCE, _SEED = 20_000, 2_000_000, 1
_Array = Any  # a number for one question, or an array for many at once


@dataclass(frozen=True, slots=True)
class JudgeLimits:
    """The limits of what counts as a change, and as the same. They are judgement. Effects are
    shares of base's time.
    """

    rate: float = 0.01  # the share of reported changes that may be false
    page: float = 0.05  # the share of the differences on a page that may be false
    # smallest change of a point: the address of code alone may move its time by 1 or 2 %
    point: float = 0.03
    family: float = 0.02  # smallest change of a family
    same: float = 0.05  # an interval within ± this counts as the same
    power: float = 0.9  # the probability of seeing a change that counts as detectable
    members: int = 3  # the least points of a wider family: a single point cannot move its median


LIMITS = JudgeLimits()


class Difference(NamedTuple):
    """The difference of two sides, as logarithms of time: positive if head takes longer.

    slower, faster: one-sided chances of this difference or more if both sides were equal. low,
    high: NaN if there are too few launches for an interval with the chance `outside` on each side.
    counts: launches of base and of head; one number if each launch has both sides.
    """

    estimate: _Array
    low: _Array
    high: _Array
    slower: _Array
    faster: _Array
    counts: tuple[int, ...]
    outside: float = OUTSIDE

    @property
    def launches(self) -> tuple[int, int]:
        return self.counts[0], self.counts[-1]

    @property
    def share(self) -> float:
        """The size of the effect in either direction, as a share of base's time."""
        return abs(math.expm1(self.estimate))

    @property
    def enclosed(self) -> bool:
        return not math.isnan(self.low)

    @property
    def confidence(self) -> float:
        """The probability with which the interval holds the true shift; without an interval, that
        of the range of all estimates.
        """
        chances = tails(*self.counts)
        return 1 - 2 * float(max(chances[chances <= self.outside], default=chances[-1]))

    @property
    def way(self) -> str:
        """The direction in which the whole interval lies; "" if it includes 0 or is unknown."""
        return SLOWER if self.low > 0 else FASTER if self.high < 0 else ""

    @property
    def same(self) -> bool:
        return bool(-LIMITS.same < math.expm1(self.low) and math.expm1(self.high) < LIMITS.same)

    def shows(self, way: str, chance: float, smallest: float) -> bool:
        """Whether there is a change in this direction, with a chance of at most `chance` and an
        effect of at least `smallest`.
        """
        right = self.estimate > 0 if way == SLOWER else self.estimate < 0
        return bool(right and getattr(self, way) <= chance and self.share >= smallest)

    def detectable(
        self,
        chance: float,
        least: float = 0.0,
        launches: int | None = None,
        power: float = LIMITS.power,
    ) -> float:
        """The true shift that launches with this noise would show with this power, if the noise
        were normal.

        It is shown if `slower` is at most `chance` and the estimate is at least `least`. launches:
        how many; None: as many as there are. NaN if no shift can be shown.
        """
        noise = (self.high - self.low) / _width(self.counts)
        missing, estimates = _drawn((launches,) if launches else self.counts, chance)
        return float(np.quantile(np.maximum(noise * missing, least - noise * estimates), power))


def paired(values: np.ndarray, outside: float = OUTSIDE) -> Difference:
    """The difference from launches that hold both sides. values: logarithms of head's time over
    base's, on the last axis.
    """
    return _difference(_estimates(values), (values.shape[-1],), outside)


def apart(base: np.ndarray, head: np.ndarray) -> Difference:
    """The difference from launches that each hold one side. base, head: logarithms of time, on the
    last axis.
    """
    return _difference(_estimates(base, head), (base.shape[-1], head.shape[-1]))


def as_share(log: float) -> float | None:
    """The share by which a ratio is above 1, from its logarithm; None if unknown."""
    return None if math.isnan(log) else math.expm1(float(log))


# ---- questions that are asked together -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a point or a family changed.

    smallest: the smallest effect that is called a change. q: the chance of each direction,
    corrected by Benjamini and Hochberg over all questions asked together.
    """

    name: str
    family: str
    found: Difference
    smallest: float
    gbps: tuple[float, float] | None = None
    seconds: tuple[float, float] | None = None
    q: Mapping[str, float] = field(default_factory=dict)

    def changed(self, rate: float) -> str:
        """The direction of the change at this rate of false discoveries; "" if there is no
        change.
        """
        ways = (
            way
            for way in (SLOWER, FASTER)
            if self.q[way] <= rate and self.found.shows(way, 1.0, self.smallest)
        )
        return next(ways, "")

    def judged(self, verdict: str, note: str, detectable: float) -> Judged:
        found = self.found
        way = SLOWER if found.estimate >= 0 else FASTER
        gbps, seconds = self.gbps or (None, None), self.seconds or (None, None)
        return Judged(
            name=self.name,
            family=self.family,
            verdict=verdict,
            effect=as_share(found.estimate),
            low=as_share(found.low),
            high=as_share(found.high),
            p=float(getattr(found, way)),
            q=self.q[way],
            detectable=as_share(detectable),
            base_gbps=gbps[0],
            head_gbps=gbps[1],
            base_seconds=seconds[0],
            head_seconds=seconds[1],
            launches=found.launches,
            note=note,
        )


def fewest(questions: int) -> int:
    """The fewest launches of each side that can confirm any change, however large, if this many
    questions are tested.
    """
    return next(
        count
        for count in itertools.count(2)
        if 1 / math.comb(2 * count, count) <= LIMITS.rate / questions
    )


def together(questions: Sequence[Any]) -> list[Any]:
    """The questions of one level, each corrected over all of them."""
    q = {
        way: discoveries([float(getattr(each.found, way)) for each in questions])
        for way in (SLOWER, FASTER)
    }
    return [
        replace(each, q={way: own[place] for way, own in q.items()})
        for place, each in enumerate(questions)
    ]


def any_error(chances: Mapping[str, float]) -> dict[str, float]:
    """The chances by name, corrected by Hochberg: each is multiplied by the number of chances that
    are at least as large, and is at most the next larger corrected one.

    Like discoveries(), it also holds for positively correlated tests. (Holm's correction would
    confirm none of 42 candidates that 12 launches all show.)
    """
    adjusted, least = dict[str, float](), 1.0
    for passed, name in enumerate(sorted(chances, key=chances.__getitem__, reverse=True)):
        adjusted[name] = least = min(least, chances[name] * (passed + 1))
    return adjusted


def incomparable(name: str, family: str, why: str, verdict: str = NOT_COMPARABLE) -> Judged:
    unknown: dict[str, Any] = dict.fromkeys(each.name for each in fields(Judged))
    own = {"name": name, "family": family, "verdict": verdict, "launches": (0, 0), "note": why}
    return Judged(**unknown | own)


def family(point: Point, regime: str) -> str:
    """The family of a point: its kernel on any tier, and whether its data lie in caches or in
    memory. A code change is likely to change all points of a family.
    """
    kernel = ".".join(point.words[:-1])
    return f"{kernel} {regime}" if regime in ("DRAM", "unknown") else f"{kernel} caches"


def groups(point: Point) -> tuple[str, ...]:
    """Wider families of a point, as patterns of kernels: points that share an algorithm, a number
    format or a layout.
    """
    kernel = ".".join(point.words[:2])
    return f"{kernel}.*", f"{kernel}.*.{point.dtype}.*", f"{kernel}.{point.layout}.*"


def of_family(members: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """For each launch that more than half of the members have, the median over these members."""
    launches = grouped(each for series in members for each in series.items())
    return {
        launch: median(values)
        for launch, values in launches.items()
        if 2 * len(values) > len(members)
    }


def whole(points: Sequence[Judged], families: Sequence[Judged]) -> str:
    """The overall verdict.

    Any change of a point or of a family counts. Whether all is the same, or not clear, is decided
    by families, in which the noise of single points cancels. A point that head lost makes the
    verdict not clear.
    """
    words = {each.verdict for each in (*points, *families)}
    for word in (REGRESSION, CONTAMINATED):
        if word in words:
            return word
    own = {each.verdict for each in families}
    if not own <= {EQUIVALENT, IMPROVEMENT} or NOT_COMPARABLE in words:
        return INCONCLUSIVE
    return IMPROVEMENT if IMPROVEMENT in words else EQUIVALENT


def worst_first(rows: Sequence[Judged]) -> tuple[Judged, ...]:
    """The rows from the worst verdict on; of equal verdicts the largest effect first."""
    return tuple(
        sorted(rows, key=lambda row: (WORDS.index(row.verdict), -(row.effect or 0.0), row.name))
    )


# ---- ranks ---------------------------------------------------------------------------------------


def _estimates(*sides: np.ndarray) -> np.ndarray:
    """Estimates of the shift, sorted on the last axis: each launch of head minus each of base; or,
    with one side, the means of every two values.
    """
    if len(sides) == 1:
        one, other = np.triu_indices(sides[0].shape[-1])
        return np.sort((sides[0][..., one] + sides[0][..., other]) / 2, axis=-1)
    base, head = sides
    differences = head[..., None, :] - base[..., :, None]
    return np.sort(differences.reshape(*differences.shape[:-2], -1), axis=-1)


def _difference(
    estimates: np.ndarray, counts: tuple[int, ...], outside: float = OUTSIDE
) -> Difference:
    chances = tails(*counts)
    # a tie counts for neither direction
    slower, faster = chances[(estimates > 0).sum(-1)], chances[(estimates < 0).sum(-1)]
    middle, ends = np.median(estimates, axis=-1), _ends(estimates, chances, outside)
    return Difference(middle, *ends, slower, faster, counts, outside)


def _ends(
    estimates: np.ndarray, chances: np.ndarray, outside: float = OUTSIDE
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the interval: at each end, the estimates that the test would reject are left
    out.
    """
    ends = int((chances <= outside).sum())
    if not ends:
        return (nothing := np.full(estimates.shape[:-1], math.nan)), nothing
    return estimates[..., ends - 1], estimates[..., -ends]


@cache
def _normal(counts: tuple[int, ...]) -> np.ndarray:
    """Sorted estimates from draws of normal launches with deviation 1."""
    rng = np.random.default_rng(_SEED)
    draws = min(_DRAWS, _AT_ONCE // math.prod(counts))
    return _estimates(*(rng.normal(size=(draws, count)) for count in counts))


@cache
def _drawn(counts: tuple[int, ...], chance: float) -> tuple[np.ndarray, np.ndarray]:
    """For each draw of _normal(): the shift at which the test just reaches `chance`, and the draw's
    estimate.

    The test reaches it when enough estimates are above 0.
    """
    found, enough = _normal(counts), np.flatnonzero(tails(*counts) <= chance)
    missing = -found[:, -enough[0]] if len(enough) else np.full(len(found), math.nan)
    return missing, np.median(found, axis=-1)


@cache
def _width(counts: tuple[int, ...]) -> float:
    """The median width of the intervals of _normal()'s draws. NaN if launches are too few."""
    low, high = _ends(_normal(counts), tails(*counts))
    return float(np.median(high - low))
