"""One launch, or what is left of it: all points, in a random order of its own, those that share
memory together.

for group in shuffled(groups):    # a contrast is one by itself
    for point in shuffled(group):
        announce the point
        make the group's memory, unless it stands
        choose a schedule, where the point asks for none and its class is new
        verify, measure beside the witnesses, verify
        a record
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from kvbench.closing import Closing
from kvbench.errors import KvbenchError
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
from kvbench.worker.decoding import Decoding
from kvbench.worker.duel import Sides
from kvbench.worker.foreign import bench_of
from kvbench.worker.ground import Ground
from kvbench.worker.line import Line
from kvbench.worker.loop import Program
from kvbench.worker.steproom import room_of
from kvbench.worker.tuning import Tuner
from kvbench.worker.visit import record


def launch(library: Library, job: Job) -> Iterator[Visited | Record]:
    """Each point when its visit begins, then its record; an error stands for samples where it
    cannot be measured.
    `library`: the plan's own; or in a duel the installed one, which is on neither side.
    """
    with _Visitor(library, job) as visitor:
        for group in visitor.groups():
            if any(map(is_peer, group)):
                yield from visitor.line([point for point in group if isinstance(point, Point)])
                continue
            for point in group:
                yield point
                began, start = time.time(), time.perf_counter()
                try:
                    found = visitor.record(point)
                except (KvbenchError, MemoryError) as error:
                    # of this one; the others get their chance
                    found = _failed(job, point, error)
                yield visitor.ended(found, began=began, wall=time.perf_counter() - start)
                if found.error and job.plan.is_foreign(point):
                    return  # nobody knows what it has left behind: another process goes on
            visitor.leave()


def _failed(job: Job, point: Visited, error: Exception) -> Record:
    short = isinstance(error, MemoryError)
    return Record(job.launch, point, (), {}, {}, error=str(error) or "out of memory", short=short)


class _Visitor(Closing):
    """Keeps the memory of one group at a time."""

    def __init__(self, library: Library, job: Job) -> None:
        self._library, self._job = library, job
        self._random = random.Random(f"{job.plan.seed}/{job.launch}/{job.part}")
        self._answers, self._group = Answers(job.references), ExitStack()
        self._ground = Ground(library, job.machine)
        self._room: room.Room | None = None
        self._buffers: probing.Buffers | None = None
        self.tuner = Tuner(job.machine, job.plan.tuning, job.plan.chosen)
        self._sides = Sides(job, self._random) if job.plan.against else None

    def close(self) -> None:
        self.leave()
        self._ground.close()

    def ended(self, found: Record, began: float, wall: float = 0.0) -> Record:
        # What getrusage tells would begin with what this process was forked from.
        held = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()
        peak, tuned = int(held[0]) << 10 if held else 0, self.tuner.taken()
        part = self._job.part
        return replace(found, part=part, peak=peak, tuned=tuned, began=began, wall=wall)

    def line(self, points: list[Point]) -> Iterator[Visited | Record]:
        """Records of all points of a line."""
        began, start, owed = time.time(), time.perf_counter(), dict.fromkeys(list[Visited](points))
        how = self._answers, self.tuner, self._job, self._random.randrange(1 << 32)
        base, far = line_of(points[0]), self._needs(points[0]).far
        yield points[0]
        try:
            with (
                room.Room(base, needs(base, far), self._ground) as own,
                Line(points, own, *how) as line,
            ):
                for found in line.records(Disturbances(points[0].cpus).read):
                    if isinstance(found, Record):
                        del owed[found.point]
                        found = self.ended(
                            found, began=began, wall=(time.perf_counter() - start) / len(points)
                        )
                    yield found
        except (KvbenchError, MemoryError) as error:
            for point in owed:
                yield self.ended(_failed(self._job, point, error), began=began)

    def _needs(self, point: Point) -> Needs:
        return self._job.needs[point.name]

    def leave(self) -> None:
        self._group.close()
        self._room = self._buffers = None

    def groups(self) -> list[list[Visited]]:
        found: dict[object, list[Visited]] = {}
        peers = peer_lines(self._job.points)
        for point in self._job.points:
            if isinstance(point, Point):
                line = line_of(point)
                key: object = (
                    line
                    if line in peers
                    else room.key(point, self._needs(point).slices, self._ground)
                )
            else:
                key = probing.group(point) if isinstance(point, Probe) else point.name
            found.setdefault(key, []).append(point)
        order = list(found.values())
        self._random.shuffle(order)
        for group in order:
            self._random.shuffle(group)
            group.sort(key=is_peer)
        return order

    def record(self, point: Visited) -> Record:
        seed, watch = self._random.randrange(1 << 32), Disturbances(point.cpus).read
        if isinstance(point, Contrast):
            return self._contrast(point, seed, watch)
        if isinstance(point, Probe):
            self._buffers = self._buffers or self._group.enter_context(
                probing.Buffers(point, self._ground)
            )
            return self._buffers.record(point, self._job, seed, watch)
        assert isinstance(point, Point)  # what else is visited
        needed = self._needs(point)
        self._room = self._room or self._group.enter_context(room_of(point, needed, self._ground))
        if self._sides:
            return self._sides.visit(point, self._room, self._answers, watch, self.tuner)
        with bench_of(point, needed, self._room, self._answers, seed) as bench:
            plan = self._job.plan
            found = record(
                bench, self.tuner, plan.samples, plan.sample_time, plan.neighbour, watch=watch
            )
            bare = tuple(replace(sample, pass_seconds=()) for sample in found.samples)
            return replace(found, launch=self._job.launch, samples=bare)

    def _contrast(self, contrast: Contrast, seed: int, watch: Callable[[], Disturbed]) -> Record:
        """Its points in the same rounds, each in a room of its own: programs, each by its value of
        the factor. Kernels of all dtypes have witnesses, too.
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
    """Of each decode what limits it, on its own memory; and what all of them share."""
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
