"""One launch, or what is left of it: all points, in a random order of its own, those that share memory together.

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
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from kvbench.errors import KvbenchError
from kvbench.machine import describe
from kvbench.machine.disturbances import Disturbances
from kvbench.model import Contrast, Job, Probe, Record
from kvbench.model.point import Visited
from kvbench.native import Library
from kvbench.plan import needs_here
from kvbench.plan.needs import members
from kvbench.worker import contrasting, probing, room
from kvbench.worker.answers import Answers
from kvbench.worker.duel import Sides
from kvbench.worker.foreign import bench_of
from kvbench.worker.ground import Ground
from kvbench.worker.tuning import Tuner
from kvbench.worker.visit import record


def launch(library: Library, job: Job) -> Iterator[Visited | Record]:
    """Each point when its visit begins, then its record; an error stands for samples where it cannot be measured.

    `library`: the plan's own; or in a duel the installed one, which is on neither side.
    """
    visitor = _Visitor(library, job)
    with visitor:
        for group in visitor.groups():
            for point in group:
                yield point
                began, start, spent = time.time(), time.perf_counter(), visitor.spent
                try:
                    found = visitor.record(point)
                except (KvbenchError, MemoryError) as error:  # of this one; the others get their chance
                    short = isinstance(error, MemoryError)
                    found = Record(job.launch, point, (), {}, {}, error=str(error) or "out of memory", short=short)
                wall, once = time.perf_counter() - start, visitor.spent - spent
                found = replace(found, part=job.part, began=began, wall=wall, once=once, peak=_peak())
                yield replace(found, tuned=visitor.tuner.taken())
                if found.error and job.plan.is_foreign(point):
                    return  # nobody knows what it has left behind: another process goes on
            visitor.leave()


def _peak() -> int:
    """What getrusage tells would begin with what this process was forked from."""
    found = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()
    return int(found[0]) << 10 if found else 0


class _Visitor:
    """Keeps the memory of one group at a time."""

    def __init__(self, library: Library, job: Job) -> None:
        self._library, self._job = library, job
        self._random = random.Random(f"{job.plan.seed}/{job.launch}/{job.part}")
        self._machine, self._answers, self._group = describe(), Answers(job.references), ExitStack()
        self._needs = needs_here(job.points, self._machine)
        rooms, far = dict[str, int](), dict[str, int]()
        for each in job.points:
            for point in (each,) if isinstance(each, Probe) else members(each):
                most, size = (far, point.bytes) if isinstance(point, Probe) else (rooms, self._needs[point].arena)
                most[point.pages] = max(most.get(point.pages, 0), size)
        self._ground = Ground(library, self._machine, rooms, far)
        self._room: room.Room | probing.Buffers | None = None
        self.tuner = Tuner(self._machine, job.plan.tuning, job.plan.chosen)
        self._sides = Sides(job, self._random) if job.plan.against else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
        self._ground.close()

    @property
    def spent(self) -> float:
        """Seconds on what later launches find done."""
        return self._answers.spent + self.tuner.spent

    def leave(self) -> None:
        self._group.close()
        self._room = None

    def groups(self) -> list[list[Visited]]:
        found: dict[tuple[object, ...], list[Visited]] = {}
        for point in self._job.points:
            found.setdefault(self._key(point), []).append(point)
        order = list(found.values())
        self._random.shuffle(order)
        for group in order:
            self._random.shuffle(group)
        return order

    def _key(self, point: Visited) -> tuple[object, ...]:
        if isinstance(point, Contrast):
            return (point.name,)
        if isinstance(point, Probe):
            return probing.group(point)
        return room.key(point, self._needs[point].layers, self._ground)

    def record(self, point: Visited) -> Record:
        seed, watch = self._random.randrange(1 << 32), Disturbances(point.cpus).read
        if isinstance(point, Contrast):
            return contrasting.record(point, self._job, self._ground, self._answers, self.tuner, seed, watch)
        if isinstance(point, Probe):
            self._room = self._room or self._group.enter_context(probing.Buffers(point, self._ground))
            return self._room.record(point, self._job, seed, watch)
        self._room = self._room or self._group.enter_context(room.Room(point, self._ground))
        if self._sides:
            return self._sides.visit(point, self._room, self._answers, watch, self.tuner)
        with bench_of(point, self._room, self._answers, seed) as bench:
            plan = self._job.plan
            found = record(bench, self.tuner, plan.samples, plan.sample_time, plan.neighbour, watch=watch)
            bare = tuple(replace(sample, pass_seconds=()) for sample in found.samples)
            return replace(found, launch=self._job.launch, samples=bare)
