"""The course of a gate.

screen:   every point, in as many launches as its suite has
extend:   the same again for what is not clear yet, where there is time
confirm:  the same again for candidates alone: what these launches do not show is no change
control:  in the same launches some points of base against base, loaded twice, which must show nothing
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kvbench.gate.duels import duels
from kvbench.gate.rows import Screened, StageRow, screened
from kvbench.gate.verdict import Course
from kvbench.model import Machine, Plan, Point, Record
from kvbench.runner import Execute, run
from kvbench.units import counted

SCREEN, EXTEND, CONFIRM, CONTROL = "screen", "extend", "confirm", "control"
CONTROLS = 3
_SCREEN = 0.9  # of the budget is for the screening
_PAIRS = (6, 16)  # of a visit: the fewest that a median helps with, and as many as pay
_START, _VISIT = 1.0, 0.055  # seconds of a launch, and of a visit, beside its pairs
_PAIR = 5.5  # times a sample's seconds: two sides, two witnesses of half that time, and what is untimed before each


class Stages:
    """Measures `plan`. `records`: so far, by stage."""

    def __init__(self, plan: Plan, machine: Machine, budget: float, execute: Execute | None = None) -> None:
        self._plan = replace(plan, samples=pairs(plan, budget))
        self._machine, self._budget, self._execute = machine, budget, execute
        self._start = time.monotonic()
        self._begun = [len(plan.points)]
        self.records: dict[str, list[Record]] = {}

    @property
    def visits(self) -> int:
        """Visits of all stages that have begun, as planned."""
        return sum(points * self._plan.launches for points in self._begun)

    def measure(self) -> Iterator[tuple[str, Record]]:
        """Each record with its stage."""
        yield from self._stage(SCREEN, self._plan.points)
        unclear = _points(row for row in self._screened().rows if not row.candidate and not row.found.same)
        spent = time.monotonic() - self._start  # by the screening
        if unclear and spent * (1 + len(unclear) / len(self._plan.points)) <= self._budget:
            yield from self._stage(EXTEND, unclear)
        if candidates := _points(self._screened().candidates):
            yield from self._stage(CONFIRM, candidates, self._controls(candidates))

    def course(self) -> Course:
        """What was found, so far."""
        fresh, controls = (self._screened(stage) if CONFIRM in self.records else None for stage in (CONFIRM, CONTROL))
        return Course(self._screened(), fresh, controls, self._plan.launches)

    def notes(self) -> Iterator[str]:
        for stage, own in self.records.items():
            points, launches = (len(set(each)) for each in zip(*((r.point, r.launch) for r in own), strict=True))
            each = counted(self._plan.samples, "pair")
            yield f"{stage}: {counted(points, 'point')} in {counted(launches, 'launch')}, {each} each"
        yield f"seed {self._plan.seed}: its coins decide which side comes first, in every launch and pair"

    def _controls(self, candidates: Sequence[Point]) -> list[Point]:
        """Drawn from the candidates, and from other points where these are few. Each is a token shorter, which gives it
        a name of its own: so the point itself is measured, too."""
        dice, taken = random.Random(self._plan.seed), {point.name for point in self._plan.points}
        others = [point for point in self._plan.points if point not in candidates]
        drawn = [point for own in (candidates, others) for point in dice.sample(own, len(own))]
        shorter = [
            replace(p, shape=replace(p.shape, context=p.shape.context - 1)) for p in drawn if p.shape.context > 1
        ]
        return [point for point in shorter if point.name not in taken][:CONTROLS]

    def _screened(self, *stages: str) -> Screened:
        found = [record for stage in stages or (SCREEN, EXTEND) for record in self.records.get(stage, ())]
        return screened(duels(found), self._machine)

    def _stage(
        self, stage: str, points: Sequence[Point], controls: Sequence[Point] = ()
    ) -> Iterator[tuple[str, Record]]:
        """Its launches are numbered on from the stage before it, and have coins of their own."""
        first = 1 + max((record.launch for own in self.records.values() for record in own), default=-1)
        names = tuple(point.name for point in controls)
        plan = replace(self._plan, points=(*points, *controls), controls=names, seed=self._plan.seed + first)
        if stage != SCREEN:
            self._begun.append(len(plan.points))
        for record in run(plan, self._execute):
            own = CONTROL if record.point.name in names else stage
            chosen = {tuned.of: tuned.choice.preset for tuned in record.tuned}
            self._plan = replace(self._plan, chosen=chosen | self._plan.chosen)
            found = replace(record, launch=first + record.launch)
            self.records.setdefault(own, []).append(found)
            yield own, found


def pairs(plan: Plan, budget: float) -> int:
    """How many a visit takes, so that the screening keeps to its share."""
    if not plan.points:
        return plan.samples
    launch = _SCREEN * budget / plan.launches
    left = launch - _START - len(plan.points) * _VISIT
    least, most = _PAIRS
    return max(least, min(most, plan.samples, int(left / (len(plan.points) * _PAIR * plan.sample_time))))


def _points(rows: Iterable[StageRow]) -> list[Point]:
    return list(dict.fromkeys(duel.point for row in rows for duel in row.members))
