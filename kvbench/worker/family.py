"""A family: points of a room that differ only in what is read between their passes, only in their
queries of a sequence, or only in their scores. They are timed in the same rounds.

make each and verify it; a point that fails gets an error, and the others go on
for round in rounds:
    all points and the witnesses of the first, shuffled
verify each once more, with other queries too
a record for each, with the witnesses of these rounds
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from kvbench.closing import Owner
from kvbench.grouping import grouped
from kvbench.machine.allowance import Disturbed
from kvbench.model import NEIGHBOUR, Job, Point, Record, Role, Sample
from kvbench.model.contrast import alone_of
from kvbench.model.masks import CHAIN
from kvbench.model.point import Visited
from kvbench.model.program import AHEAD, ALONE, CORE, beside
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.chasing import is_chased
from kvbench.worker.decoding import Decoding
from kvbench.worker.foreign import bench_of
from kvbench.worker.loop import Program
from kvbench.worker.room import Room
from kvbench.worker.tuning import Tuner
from kvbench.worker.visit import FAILURES, failed, kept, told


def families(visited: Iterable[Visited]) -> list[list[Visited]]:
    """Split into families, in order. First in each comes the point with least between its passes,
    the fewest queries and plain scores. A point without relatives, or with a chase, is alone.
    """
    found = grouped((_line(each), each) for each in visited)
    return [sorted(each, key=_more) for each in found.values()]


def _line(visited: Visited) -> Visited:
    """A family's key: its plainest point."""
    return alone_of(visited) if isinstance(visited, Point) and not is_chased(visited) else visited


def _more(visited: Visited) -> tuple[int, int, bool]:
    """A sort key in a family: the plainest point is first."""
    if not isinstance(visited, Point):
        return 0, 0, False
    return visited.streamed, visited.shape.q_len, visited != alone_of(visited)


class Family(Owner):
    """A family on the bench. `points`: begins with the point that the others are compared with, if
    there is one.
    """

    def __init__(
        self,
        points: Sequence[Point],
        room: Room,
        answers: Answers,
        tuner: Tuner,
        job: Job,
        seed: int,
    ) -> None:
        self._points, self._job, self._tuner = points, job, tuner
        self._how = room, answers, seed
        super().__init__()

    def _prepare(self) -> None:
        self._errors = dict[Bench, float]()  # the largest so far, of points that did not fail

    def records(self, watch: Callable[[], Disturbed]) -> Iterator[Record]:
        for point in self._points:
            try:
                bench = self._made(point)
                self._errors[bench] = bench.verified()
            except FAILURES as error:
                yield failed(self._job, point, error)
        if not self._errors:
            return
        self._near = self._first.neighbour() if self._job.plan.neighbour else None
        programs, plan = list(self._programs()), self._job.plan
        taken = self._first.sampled(programs, plan.samples, plan.sample_time, watch=watch)
        for bench in self._errors:
            try:
                found = self._record(bench, programs, taken)
            except FAILURES as error:
                found = failed(self._job, bench.point, error)
            yield found

    def _made(self, point: Point) -> Bench:
        bench = bench_of(point, self._job.needs[point.name], *self._how)
        self._owned.enter_context(bench)
        self._tuner.choose_far(bench)
        self._tuner.choose(bench)
        return bench

    @property
    def _first(self) -> Bench:
        """The first bench. Its witnesses serve all."""
        return next(iter(self._errors))

    @property
    def _witnesses(self) -> list[Program]:
        return [*self._first.witnesses, self._first.pace]

    def _own(self, bench: Bench) -> Iterator[Program]:
        """A point's own programs. The first point's core roof and reads are witnesses already, and
        serve all points that compute the same. Other roofs share the time of one sample. A point
        that keeps more tokens reads more rows.
        """
        yield bench.own
        if self._near:
            yield replace(bench.own, name=NEIGHBOUR, load=self._near)
        if self._computes_more(bench):
            others = sum(map(self._computes_more, self._errors))
            for core in bench.cores:
                yield replace(core, sharers=core.sharers * others)
            yield from bench.twins if self._reads_more(bench) else ()

    def _computes_more(self, bench: Bench) -> TypeGuard[Decoding]:
        first, own = (replace(each.point.shape, mask=CHAIN) for each in (self._first, bench))
        return isinstance(bench, Decoding) and own != first

    def _reads_more(self, bench: Bench) -> bool:
        return bench.point.shape.kept != self._first.point.shape.kept

    def _programs(self) -> Iterator[Program]:
        """All programs. Those of later points have the point's name in theirs."""
        yield from self._witnesses
        for bench in self._errors:
            for program in self._own(bench):
                yield replace(program, name=self._named(program.name, bench))

    def _named(self, name: str, bench: Bench) -> str:
        return name if bench is self._first else beside(name, bench.point.name)

    def _names(self, bench: Bench) -> dict[str, str]:
        """Names of programs in a bench's record, by their names in rounds. Left out are witnesses
        that do not fit: for the first point, itself alone; the core roof, if the point computes
        more; the reads of rows, if it reads others or something is read between passes.
        """
        names = {self._named(each.name, bench): each.name for each in self._own(bench)}
        own = {each.name: each.name for each in self._witnesses}
        if bench is not self._first:
            others = bench.point.streamed or self._reads_more(bench)
            lacks = {AHEAD.kind} if others else set[str]()
            lacks |= {CORE} if self._computes_more(bench) else set()
            own = {name: name for name in own if Role.of(name).kind not in lacks}
            own |= {} if self._first.alone else {self._first.own.name: ALONE}
        return names | own

    def _record(self, bench: Bench, programs: Sequence[Program], taken: Sequence[Sample]) -> Record:
        names, first = self._names(bench), bench is self._first
        samples = [replace(s, program=names[s.program]) for s in taken if s.program in names]
        left = bench.looked_after(programs if first else [bench.own], samples)
        moved = {names[each.name]: each.traffic() for each in programs if each.name in names}
        error = max(self._errors[bench], left)
        return kept(told(bench, samples, moved, error), self._job.launch)
