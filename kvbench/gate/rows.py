"""What the launches of a stage say: who is a candidate for a change, and whether fresh launches
confirm it.
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

SCREEN = 0.05  # rate of false discoveries among candidates, which fresh launches must confirm
SHARED = 0.8  # of the members of a wide family, for its change to be one
AGAIN = 0.5  # share of the smallest effect that the confirming launches must show


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow(Question):
    """A point or a family in one stage. `beside`: the same of the witnesses that no build has
    touched.
    """

    members: tuple[Duel, ...]
    beside: Difference

    @property
    def candidate(self) -> str:
        """Which way it seems to have changed; "" if none."""
        return self.changed(SCREEN)

    @property
    def shared(self) -> bool:
        """Whether nearly all members show it, by half as much or more; else it is a narrower
        family's.
        """
        like = [
            median(duel.values.values()) / self.found.estimate >= AGAIN for duel in self.members
        ]
        return sum(like) >= SHARED * len(like)

    @property
    def again(self) -> float:
        """The least effect by which fresh launches show a change again."""
        return AGAIN * self.smallest


@dataclass(frozen=True, slots=True)
class Screened:
    """All points and families of a stage that something can be said of, and the points of which
    nothing can: `lost`.
    """

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
        """The same in these launches. A family that lost a member is not the same."""
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
    """Its times are base's, and what its pairs make of that: medians of each side alone may say the
    contrary.
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
    """By name, of candidates of all levels together. What the fresh launches could not measure is
    not confirmed.
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
    """Names of those that seem to have changed, either way, though both sides of them are base."""
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
    """How far its witnesses moved the same way, where that is no chance and no small part of the
    effect; else 0.
    """
    least = abs(math.expm1(AGAIN * row.found.estimate))
    return (
        math.expm1(row.beside.estimate)
        if row.beside.shows(row.candidate, LIMITS.rate, least)
        else 0.0
    )


def detectable(row: StageRow, tests: int, launches: int) -> float:
    """The smallest slowdown, alone among its like, that would have been confirmed as a regression
    with LIMITS.power: both by those that screened it and by so many fresh launches.
    """
    power = math.sqrt(LIMITS.power)
    screen = row.found.detectable(SCREEN / tests, math.log1p(row.smallest), power=power)
    confirm = row.found.detectable(LIMITS.rate, math.log1p(row.again), launches, power)
    return float(np.maximum(screen, confirm))  # which is NaN where either is
