"""The verdict on one point or family, from its evidence in every view.

REGRESSION needs all three of these; IMPROVEMENT needs the same in the other direction:
  1. The point is slower beside its witness: significant after correction over all points (or
      families), and by at least the smallest effect that is called a change.
  2. It is slower by as much in every other view that exists: in seconds, in cycles of the core's
      clock, and relative to its FMA rate. An effect in only one view can come from the machine. If
      memory gets faster, a core-bound kernel looks slower beside its twin; if the clock gets
      slower, everything core-bound does. These views are too noisy to be tested.
  3. The effect is larger than the change of the machine: LIMITS.told times how far its own witness,
      or all witnesses on these CPUs, moved from run to run, whichever is more, in either direction.
      Without witnesses the run's own ceiling is used. If the effect is smaller: CONTAMINATED.
EQUIVALENT: the interval lies within the judge's limits. In addition, the seconds must not
    contradict it, or the run's own ceiling must have moved with them. All else is INCONCLUSIVE.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kvbench.analysis.differs.compare.views import CEILING, OF_MACHINE, PRIMARY, SECONDS, Views
from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.analysis.judge import SLOWER, Difference, Question, apart, as_share, together
from kvbench.model import Judged
from kvbench.model.verdict import CONTAMINATED, EQUIVALENT, IMPROVEMENT, INCONCLUSIVE, REGRESSION


@dataclass(frozen=True, slots=True)
class CompareLimits:
    """The limits of a comparison. Shares are shares of base's time unless a comment says otherwise.
    They are judgement.
    """

    # a further view agrees if its one-sided chance is below this: it is too noisy to be tested
    agree: float = 0.5
    # smallest effect of a point, as a multiple of how far witnesses moved from run to run: if the
    # state of the machine changes, a point and its witness need not change alike
    told: float = 1.0
    # the same for a family of `several` points or more: most points change almost as their
    # witnesses do
    told_family: float = 0.5
    several: int = 3
    # smallest effect of a point in a private cache: placement alone moves it by some percent
    cached: float = 0.05
    # smallest effects of points and families until A/A runs have shown the noise between runs
    unlearned: float = 0.05
    unlearned_family: float = 0.03
    above_noise: float = 1.5  # margin over the shift that hardly any point of A/A runs exceeds
    hardly: float = 0.99  # share of the points that do not exceed it


LIMITS = CompareLimits()


@dataclass(frozen=True, slots=True)
class Effects:
    """The smallest effects that are called a change: of a point in a private cache, of a point
    beyond private caches, and of a family.

    asked: whether the user gave them. learned: the noise that they are at least.
    """

    cached: float
    beyond: float
    family: float
    asked: bool
    learned: "Floor | None"

    def of(self, regime: str) -> float:
        return self.cached if regime in ("L1", "L2") else self.beyond


@dataclass(frozen=True, slots=True)
class Floor:
    """The differences that comparisons of one build with itself seemed to find."""

    points: float
    families: float
    pairs: int  # pairs of runs that were compared


def effects(asked: float | None, learned: Floor | None) -> Effects:
    """The smallest effects to use. `asked`: replaces the usual effects of points and families;
    `learned` noise can still raise it.
    """
    usual = (LIMITS.unlearned, LIMITS.unlearned, LIMITS.unlearned_family)
    if learned:
        usual = (LIMITS.cached, JUDGED.point, JUDGED.family)
    cached, beyond, family = usual if asked is None else (asked,) * 3
    least = learned or Floor(0.0, 0.0, 0)
    smallest = max(cached, least.points), max(beyond, least.points), max(family, least.families)
    return Effects(*smallest, asked is not None, learned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewed(Question):
    """A point or family with its evidence in each view, the tested one included. `told`: see
    LIMITS.
    """

    views: Mapping[str, Difference]
    told: float

    @property
    def primary(self) -> str:
        return _tested(self.views)

    @property
    def others(self) -> dict[str, Difference]:
        """The views that must agree with the tested one."""
        return {
            view: each
            for view, each in self.views.items()
            if view not in (self.primary, *OF_MACHINE, CEILING)
        }

    @property
    def moved(self) -> tuple[str, float]:
        """The view of the machine that changed most from base to head, and by how much."""
        there = {
            view: float(self.views[view].estimate)
            for view in (*OF_MACHINE, CEILING)
            if view in self.views
        }
        found = {view: moved for view, moved in there.items() if view in OF_MACHINE} or there
        return max(found.items(), key=lambda each: abs(each[1]), default=("", 0.0))


def viewed(
    name: str,
    family: str,
    views: Views,
    smallest: float,
    told: float = LIMITS.told,
) -> Viewed:
    """The evidence on a point or family. `views` must have at least one of PRIMARY."""
    looked = {view: between(*both) for view, both in views.items()}
    return Viewed(name, family, looked[_tested(looked)], smallest, views=looked, told=told)


def between(base: Mapping[int, float], head: Mapping[int, float]) -> Difference:
    """The difference of two series of launches."""
    return apart(*(np.array(list(side.values())) for side in (base, head)))


def judged(rows: Sequence[Viewed]) -> list[Judged]:
    """The verdicts on all rows of one level, corrected together."""
    return [
        row.judged(*_verdict(row), _detectable(row, JUDGED.rate / len(rows)))
        for row in together(rows)
    ]


def _tested(views: Mapping[str, object]) -> str:
    return next(view for view in PRIMARY if view in views)


def _verdict(row: Viewed) -> tuple[str, str]:
    """The verdict; and the reason if evidence speaks against the change that the tested view
    shows.
    """
    if not (way := row.changed(JUDGED.rate)):
        return _same(row)
    if doubts := [
        view for view, each in row.others.items() if not each.shows(way, LIMITS.agree, row.smallest)
    ]:
        return INCONCLUSIVE, f"{way} {row.primary}, but not {' nor '.join(doubts)}"
    view, moved = row.moved
    if (away := row.told * abs(moved)) > abs(row.found.estimate):
        machine = f"the machine changed: {view} took {math.expm1(moved):+.1%} of base's time"
        return (
            CONTAMINATED,
            (
                f"{way} {row.primary}, but {machine}: a change below {as_share(away):.1%} cannot be"
                " told from that"
            ),
        )
    alone = "" if row.primary != SECONDS else "it has no witness: judged by its seconds alone"
    return REGRESSION if way == SLOWER else IMPROVEMENT, alone


def _same(row: Viewed) -> tuple[str, str]:
    seconds, ceiling = row.others.get(SECONDS), row.views.get(CEILING)
    if not row.found.same:
        return INCONCLUSIVE, ""
    if not seconds or not (
        math.expm1(seconds.low) > JUDGED.same or math.expm1(seconds.high) < -JUDGED.same
    ):
        return EQUIVALENT, ""
    took = f"its seconds moved by {_signed(seconds)} of base's, as its witness's did"
    if ceiling and ceiling.way and ceiling.estimate * seconds.estimate > 0:
        return (
            EQUIVALENT,
            f"{took}, and the run's own ceiling moved by {_signed(ceiling)} of base's time",
        )
    return INCONCLUSIVE, f"{took}, but the run's own ceilings do not show that the machine changed"


def _signed(found: Difference) -> str:
    return f"{math.expm1(found.estimate):+.1%}"


def _detectable(row: Viewed, chance: float) -> float:
    """The smallest slowdown of this point or family alone that would have been called a
    regression.
    """
    least = math.log1p(row.smallest)
    needed = (
        row.found.detectable(chance, max(least, row.told * abs(row.moved[1]))),
        *(each.detectable(LIMITS.agree, least) for each in row.others.values()),
    )
    return math.nan if any(map(math.isnan, needed)) else max(needed)
