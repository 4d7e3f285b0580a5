"""Evaluate the launches of a stage: which rows are candidates for a change, and whether fresh
launches confirm them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from kvbench.analysis.judge import (
    LIMITS,
    Difference,
    Question,
    any_error,
    family,
    groups,
    of_family,
    paired,
    together,
)
from kvbench.gate.duels import Duel
from kvbench.model import OWN
from kvbench.units import gbps

SCREEN = 0.05  # rate of false discoveries among candidates; fresh launches must confirm them
SHARED = 0.8  # of the members of a wide family: so many must show its change
AGAIN = 0.5  # share of the smallest effect that the confirming launches must show


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow(Question):
    """A point or a family in one stage. `beside`: the same for the witnesses, which no build
    touches.
    """

    members: tuple[Duel, ...]
    beside: Difference

    @property
    def candidate(self) -> str:
        """The direction in which it seems to have changed; "" if none."""
        return self.changed(SCREEN)

    @property
    def shared(self) -> bool:
        """Whether nearly all members show at least half of the change; if not, the change belongs
        to a narrower family.
        """
        like = [
            median(duel.values.values()) / self.found.estimate >= AGAIN for duel in self.members
        ]
        return sum(like) >= SHARED * len(like)

    @property
    def again(self) -> float:
        """The least effect with which fresh launches confirm a change."""
        return AGAIN * self.smallest


@dataclass(frozen=True, slots=True)
class Screened:
    """The judged points and families of a stage; `lost`: the points that cannot be judged."""

    points: tuple[StageRow, ...]
    families: tuple[StageRow, ...]
    lost: tuple[Duel, ...]

    @property
    def rows(self) -> tuple[StageRow, ...]:
        return (*self.points, *self.families)

    @property
    def candidates(self) -> tuple[StageRow, ...]:
        return tuple(row for row in self.rows if row.candidate)

    def again(self, candidate: StageRow) -> StageRow | None:
        """The candidate's row in these launches. A family that lost a member is not the same."""
        key = candidate.name, len(candidate.members)
        return next((row for row in self.rows if (row.name, len(row.members)) == key), None)


def screened(found: Iterable[Duel]) -> Screened:
    points = []
    lost = []
    members = dict[str, list[Duel]]()
    wider = dict[str, dict[str, list[Duel]]]()
    for duel in found:
        if duel.fault or duel.few:
            lost.append(duel)
            continue
        point, name = duel.point, "schedules as each side chooses its own"
        if point.schedule != OWN:
            name = family(point, duel.level)
            for wide in groups(point):
                wider.setdefault(wide, {}).setdefault(name, []).append(duel)
        members.setdefault(name, []).append(duel)
        points.append(_point(duel, name))
    for name, each in wider.items():
        if (
            len(own := [duel for inner in each.values() for duel in inner]) >= LIMITS.members
            and len(each) > 1
        ):
            members[name] = own
    families = [_row(name, name, tuple(own)) for name, own in members.items()]
    judged = (
        row
        for row in together(families)
        if not row.name.endswith(".*") or row.shared or not row.changed(SCREEN)
    )
    return Screened(tuple(together(points)), tuple(judged), tuple(lost))


def _point(duel: Duel, own_family: str) -> StageRow:
    """The row of a point. Head's time is base's times the pairs' ratio: medians of each side alone
    could contradict the ratio.
    """
    row = _row(duel.point.name, own_family, (duel,))
    seconds = duel.seconds[0], duel.seconds[0] * math.exp(row.found.estimate)
    base, head = (gbps(duel.bytes_compulsory, each) for each in seconds)
    return replace(row, gbps=(base, head), seconds=seconds)


def _row(name: str, own_family: str, members: tuple[Duel, ...]) -> StageRow:
    found, beside = (
        paired(np.array(list(of_family([getattr(duel, what) for duel in members]).values())))
        for what in ("values", "beside")
    )
    smallest = LIMITS.family if len(members) > 1 else LIMITS.point
    return StageRow(name, own_family, found, smallest, members=members, beside=beside)


def confirmed(candidates: Sequence[StageRow], fresh: Screened) -> dict[str, bool]:
    """Whether each candidate is confirmed, by name, with candidates of all levels together. A
    candidate that the fresh launches could not measure is not confirmed.
    """
    found = {row.name: (row.candidate, again) for row in candidates if (again := fresh.again(row))}
    chances = any_error(
        {name: float(getattr(row.found, way)) for name, (way, row) in found.items()}
    )
    sure = {
        name
        for name, (_, row) in found.items()
        if chances[name] <= LIMITS.rate and row.found.share >= row.again
    }
    return {row.name: row.name in sure for row in candidates}


def alarmed(controls: Screened) -> list[str]:
    """Names of controls that seem to have changed in either direction, although both sides are
    base.
    """
    own = {row.name: row for row in controls.points}
    chances = any_error(
        {name: 2 * float(min(row.found.slower, row.found.faster)) for name, row in own.items()}
    )
    return [
        name
        for name, row in own.items()
        if chances[name] <= LIMITS.rate and row.found.share >= row.again
    ]


def moved(row: StageRow) -> float:
    """How far the witnesses moved in the same direction, if that is neither chance nor small beside
    the effect; else 0.
    """
    least = abs(math.expm1(AGAIN * row.found.estimate))
    return (
        math.expm1(row.beside.estimate)
        if row.beside.shows(row.candidate, LIMITS.rate, least)
        else 0.0
    )


def detectable(row: StageRow, tests: int, launches: int) -> float:
    """The smallest slowdown of one row that would have been confirmed as a regression with a
    probability of LIMITS.power: found by the screening launches, and again by as many fresh ones.
    """
    power = math.sqrt(LIMITS.power)
    screen = row.found.detectable(SCREEN / tests, math.log1p(row.smallest), power=power)
    confirm = row.found.detectable(LIMITS.rate, math.log1p(row.again), launches, power)
    return float(np.maximum(screen, confirm))  # NaN if either is
