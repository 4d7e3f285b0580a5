"""Find the steps in a point's history: where its efficiency changed for good, and which runs the
latest run is compared with.

ruptures proposes the places of possible steps. Each place must pass three tests:
  1. The exact test of Mann and Whitney between the runs before and after it: up to LIMITS.window
      runs on each side, and no further than the next step. Its chance is multiplied by the number
      of runs, because any run could have been the place. It is raised if the runs are correlated
      with their predecessors, which that test does not take into account.
  2. A false-discovery rate of LIMITS.rate (Benjamini and Hochberg) over all places of all points. A
      point without a place counts as a test that found nothing.
  3. The smallest effect that counts: LIMITS.effect for a point, LIMITS.family for a family.
Places that fail are dropped, the least certain first. Then their neighbours are judged again, with
more runs on each side. A step that somebody accepted is not tested: the series is searched on both
sides of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import count, pairwise
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np

from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.analysis.judge import apart, groups
from kvbench.analysis.ranks import discoveries
from kvbench.errors import Unsupported
from kvbench.intervals import MAD, scatter
from kvbench.model import Point
from kvbench.model.annotated import about
from kvbench.model.tuning import rescheduled

OPEN, ACCEPTED = "open", "accepted"  # states of a step
_SMOOTH = 7  # runs of the running median
_CLIP = 2.0  # deviations from it; outliers are cut to this, so that a single run makes no step
_STILL = 1e-4  # of the efficiency: the least noise that is assumed


@dataclass(frozen=True, slots=True)
class StepLimits:
    """The limits of what counts as a step. They are judgement."""

    least: int = 3  # runs on each side of a step
    window: int = 30  # the most runs on each side, because machines drift
    # smallest step of a point's efficiency: as between two runs
    effect: float = JUDGED.point
    family: float = JUDGED.family  # smallest step of a family
    shared: float = 0.8  # the least share of a family's points that must make its step
    rate: float = JUDGED.rate  # the share of reported steps that may be false
    # price of a further break, in variances times the logarithm of the number of runs
    penalty: float = 3.0


LIMITS = StepLimits()


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of a history. `environment` and `build` are digests of what may have changed between
    two runs.
    """

    run: Annotated[str, about("its name")]
    created: Annotated[str, about("when it began, ISO 8601")]  # with its zone
    suite: Annotated[str, about("its suite")]
    build: Annotated[str, about("digest of kvbench and its library")]
    environment: Annotated[str, about("digest of the settings that an administrator can change")]
    path: Annotated[str, about("path below the root of the history")] = ""
    commit: Annotated[str, about("commit of the sources at its start; empty if unknown")] = ""
    branch: Annotated[str, about("branch of that commit; empty if unknown")] = ""
    message: Annotated[str, about("first line of that commit's message; empty if unknown")] = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A step that somebody accepted: from `run` on, these points are compared with their own new
    level.
    """

    run: str
    points: tuple[str, ...]
    reason: str
    who: str
    when: str  # ISO


@dataclass(frozen=True, slots=True)
class Series:
    """The history of one point or family on one machine, in the order of time.

    runs: the runs that have it, as indices into `runs` of its machine. efficiency: in each of these
    runs. accepted: the first runs after steps that somebody has accepted, also as indices.
    smallest: the smallest effect that counts. members: the points of a family; most must make the
    family's step, or else it belongs to another family.
    """

    point: str
    runs: tuple[int, ...]
    efficiency: tuple[float, ...]
    accepted: frozenset[int] = frozenset()
    schedules: tuple[str, ...] = ()  # the schedule that ran in each run
    smallest: float = LIMITS.effect
    members: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the efficiency.

    run: the first run after it. effect, low, high: shares of the efficiency before: −0.05 is 5 %
    less; low and high are a 95 % interval, None if there are too few runs. q: None for an accepted
    step.
    """

    run: int  # as in Series
    effect: float
    low: float | None
    high: float | None
    q: float | None
    state: str


@dataclass(frozen=True, slots=True)
class Trend:
    """A series with its steps.

    baseline: the first and last of the runs that the latest run is compared with, as in Series. It
    begins at the latest accepted step, or at the first run. It ends before the first open step
    after that, so that a step that nobody accepts is still reported at its full size.
    """

    series: Series
    steps: tuple[Step, ...]
    baseline: tuple[int, int]
    level: float  # median efficiency of the baseline
    needs: int  # further runs until any step since the last accepted one could be seen

    @property
    def few(self) -> bool:
        return self.needs > 0

    @property
    def latest(self) -> float:
        return self.series.efficiency[-1]

    @property
    def change(self) -> float:
        """By how much the latest run lies above the baseline, as a share of its level."""
        return self.latest / self.level - 1

    def open(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.state == OPEN)

    def worst(self) -> float:
        """The effect of the open step that lowers the efficiency most; 0 if there is none."""
        return min([0.0, *(step.effect for step in self.open())])


@dataclass(frozen=True, slots=True)
class Past:
    """The history of one machine. `names`: short names of points, and names of families, by the
    name of the series. `points`: by name, without families.
    """

    fingerprint: str
    machine: str
    runs: tuple[Ran, ...]  # in the order of time
    trends: tuple[Trend, ...]
    names: dict[str, str]
    points: dict[str, Point]
    accepted: tuple[Accepted, ...] = ()
    families: tuple[Trend, ...] = ()

    @property
    def every(self) -> tuple[Trend, ...]:
        return (*self.families, *self.trends)

    def only(self, pattern: str) -> Past:
        """The history of the points and families that match a pattern. A point matches by its full
        name, by its short name in tables, or by the name of one of its families.
        """

        def fits(trend: Trend) -> bool:
            name = trend.series.point
            wider = groups(self.points[name]) if name in self.points else (name,)
            return (
                any(fnmatchcase(each, pattern) for each in (name, self.names[name]))
                or pattern in wider
            )

        kept = (tuple(filter(fits, each)) for each in (self.trends, self.families))
        trends, families = kept
        return replace(self, trends=trends, families=families)

    def before(self, trend: Trend, step: Step) -> Ran | None:
        """The point's last run before a step; None if there is none."""
        place = trend.series.runs.index(step.run)
        return self.runs[trend.series.runs[place - 1]] if place else None

    def beside(self, trend: Trend, step: Step) -> tuple[str, ...]:
        """What else changed between the last run before the step and the first run after it."""
        if not (before := self.before(trend, step)):
            return ()
        place, after = trend.series.runs.index(step.run), self.runs[step.run]
        found = [
            what
            for what in ("build", "environment")
            if getattr(before, what) != getattr(after, what)
        ]
        return (
            *found,
            *filter(None, [rescheduled(*trend.series.schedules[place - 1 : place + 1])]),
        )


def trends(series: Sequence[Series]) -> list[Trend]:
    """The trends of all series. They are judged together, because the correction is over all of
    them.
    """
    found = [_Search(each) for each in series]
    chances = [place.chance for search in found for place in search.places] + [
        1.0 for s in found if not s.places
    ]
    corrected = iter(discoveries(chances))
    return [search.trend([next(corrected) for _ in search.places], len(series)) for search in found]


# ---- one series ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """A place where a series may step. `at`: the index of the first value after it."""

    at: int
    runs: tuple[int, int]  # numbers of runs before and after it that are compared
    effect: float
    low: float
    high: float
    chance: float  # of such a difference at any place of the series if there were no step
    smallest: float  # effect that counts

    @property
    def weak(self) -> bool:
        return self.chance > LIMITS.rate or abs(self.effect) < self.smallest


class _Search:
    """The search for the steps of one series. `places`: the possible steps, without the accepted
    ones.
    """

    def __init__(self, series: Series) -> None:
        self._series = series
        self._logs = np.log(np.array(series.efficiency, dtype=float))
        self._calm = _calmed(self._logs)
        # the same stretches recur while places are dropped
        self._judge = cache(self._judged)
        accepted = (
            place for place, run in enumerate(series.runs) if place and run in series.accepted
        )
        self._ends = [0, *accepted, len(self._logs)]
        found = [place for ends in pairwise(self._ends) for place in self._within(*ends)]
        wander = _wander(self._logs, [*self._ends, *(place.at for place in found)])
        self.places = []
        # the chance of such a difference if it came only from correlated runs
        for place in found:
            reach = abs(math.log1p(place.effect)) / (
                wander * math.sqrt(sum(1 / runs for runs in place.runs))
            )
            strayed = min(1.0, 2 * NormalDist().cdf(-reach) * len(self._logs))
            surer = replace(place, chance=max(place.chance, strayed))
            if not surer.weak and self._shared(place):
                self.places.append(surer)

    def _within(self, first: int, end: int) -> list[_Place]:
        """The places between two fixed ends."""
        if end - first < 2 * LIMITS.least:
            return []
        noise = max(scatter(self._calm[first:end]), _STILL)
        price = LIMITS.penalty * noise**2 * math.log(end - first)
        places = self._strong(
            [first, *(first + at for at in _breaks(self._calm[first:end], pen=price)), end]
        )
        ends = [first, *(place.at for place in places), end]
        moved = [a + _breaks(self._calm[a:c], n_bkps=1)[0] for a, _, c in _threes(ends)]
        return self._strong([first, *sorted(set(moved)), end])

    def _strong(self, ends: list[int]) -> list[_Place]:
        """Drop the weak places, the least certain first, and judge the neighbours of each again."""
        while weak := [
            place for place in (self._judge(*three) for three in _threes(ends)) if place.weak
        ]:
            ends.remove(max(weak, key=lambda place: (place.chance, -abs(place.effect))).at)
        return [self._judge(*three) for three in _threes(ends)]

    def _judged(self, before: int, at: int, after: int) -> _Place:
        """Judge a place by the runs on both sides of it."""
        sides = (
            self._logs[max(before, at - LIMITS.window) : at],
            self._logs[at : min(after, at + LIMITS.window)],
        )
        found = apart(*sides)
        chance = min(1.0, 2 * float(min(found.slower, found.faster)) * len(self._logs))
        effect, low, high = (math.expm1(float(each)) for each in found[:3])
        return _Place(at, found.launches, effect, low, high, chance, self._series.smallest)

    def _shared(self, place: _Place) -> bool:
        """Whether most members of a family also step there, each by at least half as much."""
        run, first = self._series.runs[place.at], self._series.runs[place.at - place.runs[0]]
        end = 1 + self._series.runs[place.at + place.runs[1] - 1]
        moved = []
        for each in self._series.members:
            runs, values = np.array(each.runs), np.array(each.efficiency)
            before, after = (
                values[(a <= runs) & (runs < b)] for a, b in ((first, run), (run, end))
            )
            if len(before) and len(after):
                moved.append((np.median(after) / np.median(before) - 1) / place.effect >= 0.5)
        return not moved or float(np.mean(moved)) >= LIMITS.shared

    def trend(self, corrected: Sequence[float], points: int) -> Trend:
        """The trend with its steps. `corrected`: the corrected chances of its places. `points`: the
        number of series.
        """
        open_ = [
            (place, q) for place, q in zip(self.places, corrected, strict=True) if q <= LIMITS.rate
        ]
        ends = sorted({*self._ends, *(place.at for place, _ in open_)})
        accepted = [
            (self._judge(*three), None) for three in _threes(ends) if three[1] in self._ends
        ]
        steps, first = [], self._ends[-2]
        for place, q in (*open_, *accepted):
            low, high = (None if math.isnan(end) else end for end in (place.low, place.high))
            state = ACCEPTED if q is None else OPEN
            steps.append(Step(self._series.runs[place.at], place.effect, low, high, q, state))
        last = (
            min((place.at for place, _ in open_ if place.at > first), default=len(self._logs)) - 1
        )
        baseline = self._series.runs[first], self._series.runs[last]
        level = float(np.exp(np.median(self._logs[first : last + 1])))
        steps.sort(key=lambda step: step.run)
        needs = next(
            more for more in count() if self._clearest(more, first) * points <= LIMITS.rate
        )
        return Trend(self._series, tuple(steps), baseline, level, needs)

    def _clearest(self, more: int, first: int) -> float:
        """The chance of the clearest possible step in the middle of the runs from `first` on, after
        `more` further runs.
        """
        half = min((len(self._logs) + more - first) // 2, LIMITS.window)
        return 2 * (len(self._logs) + more) / math.comb(2 * half, half)


def _threes(ends: Sequence[int]) -> list[tuple[int, int, int]]:
    """Each place with its two neighbours."""
    return list(zip(ends, ends[1:], ends[2:], strict=False))


def _calmed(logs: np.ndarray) -> np.ndarray:
    """The series with outliers moved close to the running median."""
    from scipy.ndimage import median_filter  # slow to load

    ordinary = median_filter(logs, _SMOOTH, mode="nearest")
    reach = _CLIP * max(scatter(logs), _STILL)
    return np.asarray(np.clip(logs, ordinary - reach, ordinary + reach))


def _wander(logs: np.ndarray, ends: Sequence[int]) -> float:
    """How far a mean of n runs strays if runs are correlated with their predecessors: a deviation
    times the root of n. Computed around the medians of all stretches.
    """
    rest = np.concatenate([logs[a:b] - np.median(logs[a:b]) for a, b in pairwise(sorted(ends))])
    deviation = max(float(np.median(np.abs(rest))) / MAD, _STILL)
    rest = np.clip(rest, -_CLIP * deviation, _CLIP * deviation)
    follows = float(np.dot(rest[:-1], rest[1:])) / max(float(np.dot(rest, rest)), _STILL**2)
    # subtracting a median hides a part of the correlation (Kendall)
    follows += (1 + 3 * max(follows, 0.0)) * len(ends) / len(rest)
    follows = min(0.9, max(0.0, follows))
    return deviation * math.sqrt((1 + follows) / (1 - follows))


def _breaks(logs: np.ndarray, **wanted: float) -> list[int]:
    """The places where ruptures breaks a series. `pen`: the price of a further break; `n_bkps`: the
    number of breaks.
    """
    fitted = _ruptures()(kernel="linear", min_size=LIMITS.least).fit(logs.reshape(-1, 1))
    return list(map(int, fitted.predict(**wanted)))[:-1]


def refuse_without_ruptures() -> None:
    """Refuse early if ruptures is missing: reading many runs takes long."""
    _ruptures()


def _ruptures() -> Any:
    try:
        from ruptures import KernelCPD  # slow to load, and not always there
    except ImportError:
        raise Unsupported(
            "ruptures, which finds the steps of a history, is not installed",
            "pip install 'kvbench[history]', or pip install ruptures",
        ) from None
    return KernelCPD
