"""The course of a gate.

screen:   every point, in as many launches as its suite has
extend:   the same again for unclear points, if there is time
confirm:  the same again for candidates only; a change must show again
control:  in the confirming launches, some points of base against base, loaded twice, which must
          show nothing

All stages share a budget. A stage has as many launches as it allows, and the last launch may be cut
off.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kvbench.gate.duels import duels
from kvbench.gate.rows import Screened, StageRow, screened
from kvbench.gate.verdict import Course
from kvbench.model import Machine, Plan, Point, Record
from kvbench.model.point import Visited
from kvbench.plan import needs_here
from kvbench.runner import Budget, Execute, run
from kvbench.units import counted, span

SCREEN, EXTEND, CONFIRM, CONTROL = "screen", "extend", "confirm", "control"
CONTROLS = 3
_CONTROLS = 1  # if engines are started for each visit, which takes many times as long
_SCREEN = 0.65  # of the budget is for screening: candidates must still be confirmed
_LATE = 0.72  # of the budget, after which no screening launch begins
_LEAST = 7  # launches that can confirm a change by exact ranks: 1 in 128 is below LIMITS.rate
_PAIRS = (6, 16)  # in a visit: the fewest for a useful median, and the most that pay
_START, _VISIT = 1.0, 0.055  # seconds of a launch, and of a visit, besides its pairs
_CONTEST = 1.5  # seconds of a visit that starts two engines
# Seconds of a pair over those of a sample: two sides, two witnesses of half that time, and the
# untimed part before each.
_PAIR = 5.5


class Stages:
    """The stages of a gate, which measure `plan`. `records`: so far, by stage."""

    def __init__(
        self, plan: Plan, machine: Machine, budget: float, execute: Execute | None = None
    ) -> None:
        self._plan = replace(plan, samples=pairs(plan, budget))
        self.points = tuple(point for point in plan.points if isinstance(point, Point))
        self._machine, self._execute = machine, execute
        self.budget = Budget(budget)
        self._most = _CONTROLS if plan.contest else CONTROLS
        self._late = ""  # what the budget left no time for
        self._begun = [len(plan.points)]
        self.records: dict[str, list[Record]] = {}

    @property
    def visits(self) -> int:
        """Planned visits of all stages that have begun."""
        return sum(points * self._plan.launches for points in self._begun)

    def measure(self) -> Iterator[tuple[str, Record]]:
        """Yield each record with its stage."""
        yield from self._stage(SCREEN, self.points, until=_LATE)
        if self.budget.spent:
            return
        unclear = _points(
            row for row in self._screened().rows if not row.candidate and not row.found.same
        )
        if unclear and self._fits(len(unclear) + len(_points(self._screened().candidates))):
            yield from self._stage(EXTEND, unclear)
        if not self.budget.spent and (candidates := self._confirmable()):
            yield from self._stage(CONFIRM, candidates, self._controls(candidates))

    def _fits(self, points: int) -> bool:
        """Whether there is time for that many points in all launches of a stage."""
        return self._plan.launches * points * self._each() <= self.budget.left

    def _each(self) -> float:
        """Mean seconds of a visit so far, with its share of the launch."""
        return self.budget.used / max(1, sum(map(len, self.records.values())))

    def _confirmable(self) -> list[Point]:
        """The candidates that can be confirmed in the remaining time with the fewest possible
        launches; the largest changes first.
        """
        rows = sorted(self._screened().candidates, key=lambda row: -row.found.share)
        candidates = _points(rows)
        time = int(self.budget.left / (_LEAST * max(self._each(), 1e-9))) - self._most
        kept = candidates[: max(0, time)]
        if left := len(candidates) - len(kept):
            self._late = (
                f"no time was left to confirm {counted(left, 'candidate')}: give more --budget"
            )
        return kept

    def course(self) -> Course:
        """What was measured so far."""
        fresh, controls = (
            self._screened(stage) if CONFIRM in self.records else None
            for stage in (CONFIRM, CONTROL)
        )
        return Course(self._screened(), fresh, controls, self._plan.launches)

    def notes(self) -> Iterator[str]:
        if self.budget.spent:
            stage = next(reversed(self.records), SCREEN)
            yield (
                f"the budget of {span(self.budget.seconds)} ended it within the launches of stage"
                f" {stage}"
            )
        if self._late:
            yield self._late
        for stage, own in self.records.items():
            points, launches = (
                len(set(each)) for each in zip(*((r.point, r.launch) for r in own), strict=True)
            )
            each = counted(self._plan.samples, "pair")
            yield (
                f"{stage}: {counted(points, 'point')} in {counted(launches, 'launch')}, {each} each"
            )
        yield (
            f"seed {self._plan.seed}: its coins decide which side comes first, in every launch and"
            " pair"
        )

    def _controls(self, candidates: Sequence[Point]) -> list[Point]:
        """Controls, drawn from the candidates, and from other points if there are few. Each is one
        token shorter, so it has another name, and the point itself is measured too.
        """
        dice, taken = random.Random(self._plan.seed), {point.name for point in self.points}
        others = [point for point in self.points if point not in candidates]
        drawn = [point for own in (candidates, others) for point in dice.sample(own, len(own))]
        shorter = [
            replace(p, shape=replace(p.shape, context=p.shape.context - 1))
            for p in drawn
            if p.shape.context > 1
        ]
        return [point for point in shorter if point.name not in taken][: self._most]

    def _screened(self, *stages: str) -> Screened:
        found = [
            record for stage in stages or (SCREEN, EXTEND) for record in self.records.get(stage, ())
        ]
        return screened(duels(found))

    def unmeasured(self) -> list[str]:
        """Names of planned points that the budget left no time for."""
        seen = {record.point for own in self.records.values() for record in own}
        return [point.name for point in self.points if point not in seen]

    def _stage(
        self,
        stage: str,
        points: Sequence[Point],
        controls: Sequence[Point] = (),
        until: float = 1.0,
    ) -> Iterator[tuple[str, Record]]:
        """Measure a stage. Launch numbers continue from the stage before; each launch has its own
        coins. `until`: the share of the budget in which launches must end, except the fewest that
        can show a change.
        """
        first = 1 + max(
            (record.launch for own in self.records.values() for record in own), default=-1
        )
        names = tuple(point.name for point in controls)
        plan = replace(
            self._plan, points=(*points, *controls), controls=names, seed=self._plan.seed + first
        )
        if stage != SCREEN:
            self._begun.append(len(plan.points))
        began = self.budget.used

        def more(number: int) -> Sequence[Visited]:
            """What launch `number` visits."""
            each = (self.budget.used - began) / max(1, number)
            late = self.budget.used + each > until * self.budget.seconds
            return () if number >= plan.launches or number >= _LEAST and late else plan.points

        needs, budget = needs_here(plan.points, self._machine), self.budget
        for record in run(plan, self._machine, needs, self._execute, more=more, budget=budget):
            own = CONTROL if record.point.name in names else stage
            chosen = {tuned.of: tuned.choice.preset for tuned in record.tuned}
            self._plan = replace(self._plan, chosen=chosen | self._plan.chosen)
            found = replace(record, launch=first + record.launch)
            self.records.setdefault(own, []).append(found)
            yield own, found


def pairs(plan: Plan, budget: float) -> int:
    """Pairs of a visit, so that the screening keeps to its share of the budget."""
    if not plan.points:
        return plan.samples
    launch = _SCREEN * budget / plan.launches
    left = launch - _START - len(plan.points) * (_CONTEST if plan.contest else _VISIT)
    least, most = _PAIRS
    return max(
        least, min(most, plan.samples, int(left / (len(plan.points) * _PAIR * plan.sample_time)))
    )


def _points(rows: Iterable[StageRow]) -> list[Point]:
    return list(dict.fromkeys(duel.point for row in rows for duel in row.members))
