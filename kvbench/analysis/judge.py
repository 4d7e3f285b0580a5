"""Whether two things differ, and by how much: what a gate, a comparison of runs, a contrast, the
claim about L3 and a history all ask.

launches of both sides → evidence, by ranks alone → corrected beside all that is asked with it → the
word

Ranks assume nothing of the noise. Where both sides were measured in one launch its value is their
ratio, and a coin decides the sign if they are alike: Wilcoxon's signed ranks. Where they come from
launches of their own, labels could be
exchanged: Mann and Whitney's test. Both count how many estimates of the shift lie above nothing:
    means of two ratios, or differences of two launches. The middle one is Hodges and Lehmann's
    estimate, and the interval holds what the test, moved there, does not reject.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from statistics import median
from typing import Any, NamedTuple

import numpy as np

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

COVERAGE = 0.95  # of the intervals
OUTSIDE = (1 - COVERAGE) / 2  # chance on each side
SLOWER, FASTER = "slower", "faster"
_DRAWS, _AT_ONCE, _SEED = 20_000, 2_000_000, 1
_Array = Any  # a number, or an array of them: of one question, or of many at once


@dataclass(frozen=True, slots=True)
class JudgeLimits:
    """What counts as a change, and what as the same: judgement. Effects are shares of base's
    time.
    """

    rate: float = 0.01  # of the changes that are reported, how many may be none
    page: float = 0.05  # of the differences that a page states, how many may be none
    # smallest effect of a point that is called a change: where code lies moves it by 1 or 2 %
    point: float = 0.03
    family: float = 0.02  # and of a family
    same: float = 0.05  # an interval within this on both sides is the same
    power: float = 0.9  # with which the smallest change that would have been seen is seen
    members: int = 3  # points of a wider family: no one of them moves its median


LIMITS = JudgeLimits()


class Difference(NamedTuple):
    """Logarithms of time: positive where head takes longer. `slower`, `faster`: one-sided chances
    of this or more if both sides were alike. NaN for the interval where launches are too few for
    COVERAGE, or whatever chance on each side was asked for, `outside`. `counts`: launches of base
    and of head; or of both, where each has both.
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
        """The effect either way, of base's time."""
        return abs(math.expm1(self.estimate))

    @property
    def enclosed(self) -> bool:
        return not math.isnan(self.low)

    @property
    def confidence(self) -> float:
        """The probability with which the interval, or all estimates where there is none, hold the
        true shift.
        """
        chances = _chances(*self.counts)
        return 1 - 2 * float(max(chances[chances <= self.outside], default=chances[-1]))

    @property
    def way(self) -> str:
        """Which way the whole interval lies; "" where it holds nothing."""
        return SLOWER if self.low > 0 else FASTER if self.high < 0 else ""

    @property
    def same(self) -> bool:
        return bool(-LIMITS.same < math.expm1(self.low) and math.expm1(self.high) < LIMITS.same)

    def shows(self, way: str, chance: float, smallest: float) -> bool:
        """A change this way, by so small a chance and by no less than so much."""
        right = self.estimate > 0 if way == SLOWER else self.estimate < 0
        return bool(right and getattr(self, way) <= chance and self.share >= smallest)

    def detectable(
        self,
        chance: float,
        least: float = 0.0,
        launches: int | None = None,
        power: float = LIMITS.power,
    ) -> float:
        """The true shift that so many launches as noisy as these, or as many, show with this power,
        were they normal: a `slower` of `chance` or less, and an estimate of `least` or more. NaN
        where none does.
        """
        noise = (self.high - self.low) / _width(self.counts)
        missing, estimates = _drawn((launches,) if launches else self.counts, chance)
        return float(np.quantile(np.maximum(noise * missing, least - noise * estimates), power))


def paired(values: np.ndarray, outside: float = OUTSIDE) -> Difference:
    """From launches that hold both sides: logarithms of head's time over base's, on the last
    axis.
    """
    return _difference(_estimates(values), (values.shape[-1],), outside)


def apart(base: np.ndarray, head: np.ndarray) -> Difference:
    """From launches that hold one side: logarithms, on the last axis."""
    return _difference(_estimates(base, head), (base.shape[-1], head.shape[-1]))


def as_share(log: float) -> float | None:
    """A ratio's logarithm as the share by which it is above 1; None where it is not known."""
    return None if math.isnan(log) else math.expm1(float(log))


# ---- what is asked together ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a point or a family changed. `smallest`: effect that is called a change. `q`: of the
    two ways, after Benjamini and Hochberg over all that is asked with it.
    """

    name: str
    family: str
    found: Difference
    smallest: float
    gbps: tuple[float, float] | None = None
    seconds: tuple[float, float] | None = None
    q: Mapping[str, float] = field(default_factory=dict)

    def changed(self, rate: float) -> str:
        """Which way, at this rate of false discoveries; "" if none."""
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
    """Launches of each side, at least, for a change of one among so many to be called one, however
    large it is.
    """
    return next(
        count
        for count in itertools.count(2)
        if 1 / math.comb(2 * count, count) <= LIMITS.rate / questions
    )


def together(questions: Sequence[Any]) -> list[Any]:
    """Questions of one level, corrected beside each other."""
    q = {
        way: discoveries([float(getattr(each.found, way)) for each in questions])
        for way in (SLOWER, FASTER)
    }
    return [
        replace(each, q={way: own[place] for way, own in q.items()})
        for place, each in enumerate(questions)
    ]


def discoveries(chances: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's: valid too where the tests lean the same way, as those of one launch
    do.
    """
    from scipy.stats import false_discovery_control  # slow to load

    return [float(chance) for chance in false_discovery_control(chances)] if chances else []


def any_error(chances: Mapping[str, float]) -> dict[str, float]:
    """Hochberg's, by name: each times the number of those that are no smaller, and none above one
    behind it.

    As the other it holds where the tests lean the same way. (Holm's would confirm nothing of 42
    candidates that 12 launches all show.)
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
    """A kernel on any tier, where its data is: a change to one of these is likely to be one to all
    its points.
    """
    kernel = ".".join(point.words[:-1])
    return f"{kernel} {regime}" if regime in ("DRAM", "unknown") else f"{kernel} caches"


def groups(point: Point) -> tuple[str, ...]:
    """Wider families, as patterns of kernels: what a change to an algorithm, a number format or a
    layout moves.
    """
    kernel = ".".join(point.words[:2])
    return f"{kernel}.*", f"{kernel}.*.{point.dtype}.*", f"{kernel}.{point.layout}.*"


def of_family(members: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The median over members in each launch that most of them have."""
    launches = grouped(each for series in members for each in series.items())
    return {
        launch: median(values)
        for launch, values in launches.items()
        if 2 * len(values) > len(members)
    }


def whole(points: Sequence[Judged], families: Sequence[Judged]) -> str:
    """Any change counts, of a point or of a family. What is the same, or not clear, families say:
    there noise of single points is gone. A point that head lost is not clear whatever the others
    say.
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
    return tuple(
        sorted(rows, key=lambda row: (WORDS.index(row.verdict), -(row.effect or 0.0), row.name))
    )


# ---- ranks ---------------------------------------------------------------------------------------


def _estimates(*sides: np.ndarray) -> np.ndarray:
    """Estimates of the shift, sorted on the last axis: each launch of head less each of base; or
    means of any two.
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
    chances = _chances(*counts)
    # a tie speaks for neither
    slower, faster = chances[(estimates > 0).sum(-1)], chances[(estimates < 0).sum(-1)]
    middle, ends = np.median(estimates, axis=-1), _ends(estimates, chances, outside)
    return Difference(middle, *ends, slower, faster, counts, outside)


def _ends(
    estimates: np.ndarray, chances: np.ndarray, outside: float = OUTSIDE
) -> tuple[np.ndarray, np.ndarray]:
    """As many as it takes to reject are left out at each end."""
    ends = int((chances <= outside).sum())
    if not ends:
        return (nothing := np.full(estimates.shape[:-1], math.nan)), nothing
    return estimates[..., ends - 1], estimates[..., -ends]


@cache
def _normal(counts: tuple[int, ...]) -> np.ndarray:
    """Estimates of draws of so many normal launches of deviation 1."""
    rng = np.random.default_rng(_SEED)
    draws = min(_DRAWS, _AT_ONCE // math.prod(counts))
    return _estimates(*(rng.normal(size=(draws, count)) for count in counts))


@cache
def _drawn(counts: tuple[int, ...], chance: float) -> tuple[np.ndarray, np.ndarray]:
    """How far each such draw must be shifted until the test says `chance`, which is so far that
    enough of its estimates lie above nothing; and its estimate.
    """
    found, enough = _normal(counts), np.flatnonzero(_chances(*counts) <= chance)
    missing = -found[:, -enough[0]] if len(enough) else np.full(len(found), math.nan)
    return missing, np.median(found, axis=-1)


@cache
def _width(counts: tuple[int, ...]) -> float:
    """How wide the interval of such draws usually is. NaN where they are too few for one."""
    low, high = _ends(_normal(counts), _chances(*counts))
    return float(np.median(high - low))


@cache
def _chances(*counts: int) -> np.ndarray:
    """By w, the chance that w or more of the estimates lie above nothing, if both sides are alike.

    scipy has it for samples, so there is one made up for each w."""
    from scipy.stats import mannwhitneyu, wilcoxon  # slow to load

    if len(counts) == 1:
        found = wilcoxon(_signed(*counts), axis=1, alternative="greater", method="exact")
    else:
        found = mannwhitneyu(*_dealt(*counts), axis=1, alternative="greater", method="exact")
    return np.asarray(np.minimum(found.pvalue, 1.0))


def _signed(count: int) -> np.ndarray:
    """Values whose positive ranks sum to w: the largest ranks that fit into it."""
    left = np.arange(count * (count + 1) // 2 + 1)
    samples = np.empty((len(left), count))
    for rank in range(count, 0, -1):
        positive = left >= rank
        samples[:, rank - 1] = np.where(positive, rank, -rank)
        left = left - rank * positive
    return samples


def _dealt(base: int, head: int) -> tuple[np.ndarray, np.ndarray]:
    """Sides, head first: `full` of head's values lie above all of base's, one above just `rest`,
    the others below.
    """
    full, rest = (each[:, None] for each in np.divmod(np.arange(base * head + 1), base))
    place = np.arange(head)
    heads = np.where(place < full, base + 1 + place, np.where(place == full, rest + 0.5, -place))
    return heads, np.broadcast_to(np.arange(1, base + 1), (len(heads), base))
