"""One launch, or the rest of it: all points in random order, points with shared memory together.

for group in shuffled(groups):    # a contrast is a group of its own
    for points in shuffled(group):    # a point, a family, or a line of peers
        announce the first
        make the group's memory, unless it exists
        choose a schedule, if a point asks for none and its class is new
        verify, measure beside the witnesses, verify
        a record of each
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from kvbench.closing import Closing
from kvbench.errors import Unsupported
from kvbench.machine.allowance import Disturbances, Disturbed
from kvbench.model import Contrast, Job, Member, Needs, Point, Probe, Record
from kvbench.model.contrast import KERNEL, value
from kvbench.model.point import Visited
from kvbench.model.program import beside
from kvbench.native import Library
from kvbench.plan.needs import needs
from kvbench.plan.witnesses import is_peer, line_of, peer_lines
from kvbench.worker import probing, room
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench, side_by_side
from kvbench.worker.chasing import cpus_of, is_chased, refuse_chase
from kvbench.worker.contest import Contest
from kvbench.worker.decoding import Decoding
from kvbench.worker.duel import Sides
from kvbench.worker.family import Family, families
from kvbench.worker.foreign import bench_of
from kvbench.worker.ground import Ground
from kvbench.worker.line import Line
from kvbench.worker.loop import Program
from kvbench.worker.steproom import room_of
from kvbench.worker.tuning import Tuner
from kvbench.worker.visit import FAILURES, failed, kept, record


def launch(library: Library, job: Job) -> Iterator[Visited | Record]:
    """Yield each point when its visit begins, then its record. If it cannot be measured, its record
    has an error instead of samples. `library`: the plan's own; in a duel the installed one, which
    is on neither side.
    """
    with _Visitor(library, job) as visitor:
        for group in visitor.groups():
            for points in group:
                for found in visitor.visit(points):
                    yield found
                    if _broken(found, job):
                        return  # what it left behind is unknown: another process goes on
            visitor.leave()


def _broken(found: Visited | Record, job: Job) -> bool:
    return isinstance(found, Record) and bool(found.error) and job.plan.is_foreign(found.point)


class _Visitor(Closing):
    """Visits points, with the memory of one group at a time."""

    def __init__(self, library: Library, job: Job) -> None:
        self._library, self._job = library, job
        self._random = random.Random(f"{job.plan.seed}/{job.launch}/{job.part}")
        self._answers, self._group = Answers(job.references), ExitStack()
        self._ground = Ground(library, job.machine)
        self._room: room.Room | None = None
        self._buffers: probing.Buffers | None = None
        self.tuner = Tuner(job.machine, job.plan.tuning, job.plan.chosen)
        self._sides = Sides(job, self._random) if job.plan.against else None
        self._contest = Contest(job, self._random) if job.plan.contest else None

    def close(self) -> None:
        self.leave()
        self._ground.close()

    def _ended(self, found: Record, began: float, wall: float) -> Record:
        # getrusage would begin with the memory of the process that forked this one.
        held = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()
        peak, tuned = int(held[0]) << 10 if held else 0, self.tuner.taken()
        part = self._job.part
        return replace(found, part=part, peak=peak, tuned=tuned, began=began, wall=wall)

    def visit(self, points: Sequence[Visited]) -> Iterator[Visited | Record]:
        """Visit points that are timed together: yield each as it begins, and a record of each."""
        began, start, owed = time.time(), time.perf_counter(), dict.fromkeys(points)
        yield points[0]
        try:
            for found in self._records(points):
                if isinstance(found, Record):
                    del owed[found.point]
                    wall = (time.perf_counter() - start) / len(points)
                    found = self._ended(found, began, wall)
                yield found
        except FAILURES as error:
            wall = (time.perf_counter() - start) / len(points)
            for point in owed:
                yield self._ended(failed(self._job, point, error), began, wall)

    def _records(self, visited: Sequence[Visited]) -> Iterator[Visited | Record]:
        watch = Disturbances(cpus_of(visited[0], self._job.machine)).read
        points = [point for point in visited if isinstance(point, Point)]
        if is_chased(visited[0]):
            self._refuse_chased(points[0])
            yield self._record(points[0], watch)
        elif self._contest:
            yield self._met(points[0], watch)
        elif any(map(is_peer, points)):
            yield from self._line(points, watch)
        elif len(points) > 1:
            how = self._answers, self.tuner, self._job, self._random.randrange(1 << 32)
            with Family(points, self._stands(points[0]), *how) as family:
                yield from family.records(watch)
        else:
            yield self._record(visited[0], watch)

    def _refuse_chased(self, point: Point) -> None:
        """Refuse a duel with a chase, before any memory is taken."""
        if self._contest or self._sides:
            raise Unsupported("a duel measures no chase beside its two sides", "leave out chase")
        refuse_chase(point, self._needs(point))

    def _met(self, point: Point, watch: Callable[[], Disturbed]) -> Record:
        assert self._contest
        with room.Room(*self._base(point), self._ground) as own:
            return self._contest.visit(point, own, self._answers, watch)

    def _base(self, point: Point) -> tuple[Point, Needs]:
        """Our point beside which an engine's point is timed."""
        base = line_of(point)
        return base, needs(base, self._needs(point).far)

    def _line(
        self, points: list[Point], watch: Callable[[], Disturbed]
    ) -> Iterator[Visited | Record]:
        how = self._answers, self.tuner, self._job, self._random.randrange(1 << 32)
        with (
            room.Room(*self._base(points[0]), self._ground) as own,
            Line(points, own, *how) as line,
        ):
            yield from line.records(watch)

    def _needs(self, point: Point) -> Needs:
        return self._job.needs[point.name]

    def leave(self) -> None:
        self._group.close()
        self._room = self._buffers = None

    def groups(self) -> list[list[list[Visited]]]:
        """Groups of points with the same memory, each split into points timed together."""
        found: dict[object, list[Visited]] = {}
        plain = [point for point in self._job.points if not is_chased(point)]
        lines = {point: line for line, own in peer_lines(plain).items() for point in own}
        for point in self._job.points:
            if isinstance(point, Point):
                key: object = lines.get(point) or room.key(
                    point, self._needs(point).slices, self._ground
                )
            else:
                key = probing.group(point) if isinstance(point, Probe) else point.name
            found.setdefault(key, []).append(point)
        order = list(found.values())
        self._random.shuffle(order)
        for group in order:
            self._random.shuffle(group)
            group.sort(key=is_peer)
        return [self._together(group) for group in order]

    def _together(self, group: list[Visited]) -> list[list[Visited]]:
        """Split a group into points timed together. A plug-in's points are apart, so that a failure
        can be assigned; so are duels.
        """
        if self._contest:
            return [[point] for point in group]
        if any(is_peer(point) and not is_chased(point) for point in group):
            return [group]
        if self._sides or any(map(self._job.plan.is_foreign, group)):
            return [[point] for point in group]
        return families(group)

    def _record(self, point: Visited, watch: Callable[[], Disturbed]) -> Record:
        seed = self._random.randrange(1 << 32)
        if isinstance(point, Contrast):
            return self._contrast(point, seed, watch)
        if isinstance(point, Probe):
            self._buffers = self._buffers or self._group.enter_context(
                probing.Buffers(point, self._ground)
            )
            return self._buffers.record(point, self._job, seed, watch)
        assert isinstance(point, Point)  # other types were handled above
        own, plan = self._stands(point), self._job.plan
        if self._sides:
            return self._sides.visit(point, own, self._answers, watch, self.tuner)
        with bench_of(point, self._needs(point), own, self._answers, seed) as bench:
            how = plan.samples, plan.sample_time, plan.neighbour
            return kept(record(bench, self.tuner, *how, watch=watch), self._job.launch)

    def _stands(self, point: Point) -> room.Room:
        """The group's memory, made for its first point."""
        self._room = self._room or self._group.enter_context(
            room_of(point, self._needs(point), self._ground)
        )
        return self._room

    def _contrast(self, contrast: Contrast, seed: int, watch: Callable[[], Disturbed]) -> Record:
        """Time a contrast's points in the same rounds, each in its own room. A program is named by
        the point's value of the factor. Kernels of all dtypes also have witnesses.
        """
        benches = dict[str, Bench]()
        with ExitStack() as owned:
            owned.callback(self._ground.leave, range(1, len(contrast.points)))
            for place, point in enumerate(contrast.points):
                needed = self._needs(point)
                own = owned.enter_context(room_of(point, needed, self._ground, place))
                bench = owned.enter_context(bench_of(point, needed, own, self._answers, seed))
                self.tuner.choose(bench)
                benches[value(point, contrast.factor)] = bench
            programs = [
                replace(bench.own, name=name, memory=bench.room.place)
                for name, bench in benches.items()
            ]
            members = dict[str, Member]()
            if contrast.factor == KERNEL:
                programs += _witnesses(benches)
            taken, errors = side_by_side(benches, programs, self._job.plan, seed, watch)
            if contrast.factor == KERNEL:
                members = {name: _member(own, errors[name]) for name, own in benches.items()}
            moved = {program.name: program.traffic() for program in programs}
            return Record(
                self._job.launch,
                contrast,
                taken,
                moved,
                memory={},
                max_abs_err=max(errors.values()),
                members=members,
            )


def _witnesses(benches: Mapping[str, Bench]) -> Iterator[Program]:
    """Each decode's limits, on its own memory; and the witnesses that all share."""
    decodes = {name: bench for name, bench in benches.items() if isinstance(bench, Decoding)}
    for name, bench in decodes.items():
        for each in bench.limits:
            yield replace(each, name=beside(each.name, name), memory=bench.room.place)
    first = next(iter(decodes.values()))
    yield replace(first.memory, memory=first.room.place)
    yield first.pace


def _member(bench: Bench, error: float) -> Member:
    facts = bench.room.facts(bench.point, bench.own.traffic())
    return Member(**facts, ran=bench.ran, core_level=bench.core_level, max_abs_err=error)
