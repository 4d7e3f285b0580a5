"""The verdict on one point or family, from its evidence in every view.

REGRESSION needs all of these, IMPROVEMENT the same mirrored:
  1. slower beside its witness, as the judge has it: significant beside all other points, or
      families, and by no less than the smallest effect that is called a change;
  2. by as much in every other view that there is: in seconds, in cycles of the core's clock, and
      against its FMA rate. What only one view shows can be the machine's doing: a memory that got
      faster makes a core-bound kernel look slower beside its twin, and a slower clock does so to
      all that is core-bound. These views are too noisy to be tested;
  3. by more than the machine changed meanwhile: LIMITS.told of how far its own witness moved from
      run to run, or all on these CPUs did, whichever is more, either way; or, without witnesses,
      the run's own ceiling. Else the word is CONTAMINATED.
EQUIVALENT: the interval lies within the judge's bounds, and the seconds do not say otherwise, or
    the run's own ceiling moved with them. All else is INCONCLUSIVE.
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
    """Where nothing else is said, shares of base's time. They are judgement."""

    # one-sided chance below which a further view agrees: seconds are too noisy to be tested
    agree: float = 0.5
    # least effect of a point, as a share of how far witnesses moved from run to run: in another
    told: float = 1.0
    # state of the machine a point and its witness need not change alike
    # and of a family of several points: most of its points change nearly as their witnesses
    told_family: float = 0.5
    several: int = 3
    # smallest effect of a point in a private cache: placement alone moves it by some percent
    cached: float = 0.05
    # of any point, as long as no runs of one build have shown what noise does between runs
    unlearned: float = 0.05
    unlearned_family: float = 0.03
    above_noise: float = 1.5  # times what hardly any point of such runs exceeds
    hardly: float = 0.99  # share of the points that do not


LIMITS = CompareLimits()


@dataclass(frozen=True, slots=True)
class Effects:
    """The smallest effects that are called a change: of a point in a private cache, beyond those,
    and of a family. Whether they were `asked` for; and the noise that they are at least.
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
    """What comparisons of one build with itself found, though there was nothing to find."""

    points: float
    families: float
    pairs: int  # of runs


def effects(asked: float | None, learned: Floor | None) -> Effects:
    """`asked`: in place of what is usual, for points and families alike; noise that was `learned`
    still raises it.
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
    """`views`: the evidence in each, that which is tested among them. `told`: see LIMITS."""

    views: Mapping[str, Difference]
    told: float

    @property
    def primary(self) -> str:
        return _tested(self.views)

    @property
    def others(self) -> dict[str, Difference]:
        """What must agree."""
        return {
            view: each
            for view, each in self.views.items()
            if view not in (self.primary, *OF_MACHINE, CEILING)
        }

    @property
    def moved(self) -> tuple[str, float]:
        """What tells of the machine, and how far that has moved from base to head at most."""
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
    """`views`: one of PRIMARY at least."""
    looked = {view: between(*both) for view, both in views.items()}
    return Viewed(name, family, looked[_tested(looked)], smallest, views=looked, told=told)


def between(base: Mapping[int, float], head: Mapping[int, float]) -> Difference:
    return apart(*(np.array(list(side.values())) for side in (base, head)))


def judged(rows: Sequence[Viewed]) -> list[Judged]:
    """All of one level, corrected together."""
    return [
        row.judged(*_verdict(row), _detectable(row, JUDGED.rate / len(rows)))
        for row in together(rows)
    ]


def _tested(views: Mapping[str, object]) -> str:
    return next(view for view in PRIMARY if view in views)


def _verdict(row: Viewed) -> tuple[str, str]:
    """The word, and what spoke against a change that the tested view shows."""
    if not (way := row.changed(JUDGED.rate)):
        return _same(row)
    if doubts := [
        view for view, each in row.others.items() if not each.shows(way, LIMITS.agree, row.smallest)
    ]:
        return INCONCLUSIVE, f"{way} {row.primary}, which is not seen {' nor '.join(doubts)}"
    view, moved = row.moved
    if (away := row.told * abs(moved)) > abs(row.found.estimate):
        machine = f"the machine changed: {view} took {math.expm1(moved):+.1%} of base's time"
        return (
            CONTAMINATED,
            (
                f"{way} {row.primary}, but {machine}: less than {as_share(away):.1%} is not told"
                " from it"
            ),
        )
    alone = (
        ""
        if row.primary != SECONDS
        else "no witness was measured beside it: judged on its seconds alone"
    )
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
    return INCONCLUSIVE, f"{took}, and the run's own ceilings do not say that the machine changed"


def _signed(found: Difference) -> str:
    return f"{math.expm1(found.estimate):+.1%}"


def _detectable(row: Viewed, chance: float) -> float:
    """The smallest slowdown, alone among its like, that would have been called a regression."""
    least = math.log1p(row.smallest)
    needed = (
        row.found.detectable(chance, max(least, row.told * abs(row.moved[1]))),
        *(each.detectable(LIMITS.agree, least) for each in row.others.values()),
    )
    return math.nan if any(map(math.isnan, needed)) else max(needed)
