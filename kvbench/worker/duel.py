"""A visit of a point by two libraries: both walk the same memory in turn, and a third library times
the witness beside each.

for pair in pairs:
    for side in base and head, in an order that a coin decides:
        one untimed pass, then a timed sample of the side
        the same for the point's witness, by the installed library

The third library's witness (a twin, or a copy) is code that no change of the kernels touches. If it
takes longer beside head than beside base, the machine is the reason. A coin also decides which side
is made first in a launch, so that memory placement favours neither. A control has base on both
sides, loaded twice: differences there are noise.
"""

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from kvbench.errors import NotComparable
from kvbench.machine.allowance import Disturbed
from kvbench.model import BESIDE, OWN, SIDES, Job, Point, Record
from kvbench.model.point import ATTENDS
from kvbench.native import Arena, Library
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench, side_by_side
from kvbench.worker.foreign import bench_of
from kvbench.worker.loop import Program, flat
from kvbench.worker.room import Room
from kvbench.worker.steproom import StepRoom
from kvbench.worker.tuning import Tuner

_OF_PLANE = ("row_bytes", "token_stride", "head_stride", "seq_stride", "bytes", "scale_bytes")
# strides and sizes of rows and scales, named as in abi.h
_PLACES = [f"{plane}.{name}" for plane in "kv" for name in _OF_PLANE]


class GuestRoom(Room):
    """The memory of another room, as a different library sees it."""

    def __init__(self, host: Room, library: Library) -> None:
        self._host = host
        super().__init__(host.point, host.needs, host.ground, library, host.place)

    def _arena(self) -> Arena:
        return self._host.arena

    def fill(self) -> None:
        """Fill nothing; copy lengths, and check that rows lie in the same places."""
        if not self.caches:
            return
        for own, other in zip(self.caches, self._host.caches, strict=True):
            own.lengths[:] = other.lengths
        places = [attrgetter(*_PLACES)(room.caches[0].struct) for room in (self, self._host)]
        if moved := [
            name for name, *both in zip(_PLACES, *places, strict=True) if both[0] != both[1]
        ]:
            raise NotComparable(
                f"{self.library.path.name} lays out a {self.point.layout} cache differently:"
                f" {', '.join(moved)}",
                "both sides must read the same memory",
            )

    def _sources(self) -> np.ndarray:
        return self._host.sources


class GuestStepRoom(StepRoom):
    """A GuestRoom for a whole step."""

    def __init__(self, host: StepRoom, library: Library) -> None:
        self._host = host
        super().__init__(host.point, host.needs, host.ground, library, host.place)

    def _made(self) -> Iterator[Room]:
        return (GuestRoom(room, self.library) for room in self._host.rooms)


def _guest(host: Room, library: Library) -> Room:
    if isinstance(host, StepRoom):
        return GuestStepRoom(host, library)
    return GuestRoom(host, library)


class Sides:
    """Both libraries, and a second copy of base for controls, opened in an order that a coin
    decides.

    All processes that open a file share its physical addresses. Their effect on speed would be the
    same in all launches, and look like a property of the code. So each side is opened from its own
    copy.
    """

    def __init__(self, job: Job, coin: random.Random) -> None:
        self._coin, self._job = coin, job
        files = {
            "base": (job.plan.library, job.plan.plugin),
            "head": (job.plan.against, job.plan.against_plugin),
        }
        if job.plan.controls:
            files["copy"] = files["base"]
        # an open library stays, though its file is deleted
        with TemporaryDirectory(prefix="kvbench-") as folder:
            self._libraries = {
                name: _opened(Path(folder, name), *files[name])
                for name in coin.sample([*files], len(files))
            }

    def _choose(self, benches: Mapping[str, Bench], tuner: Tuner) -> None:
        """Tune base; head takes its own preset of the same name. If OWN is asked for, tune each."""
        base, head = (self._libraries[side].words("schedule") for side in SIDES)
        tuner.choose(benches["base"], [word for word in base if word in head])
        if benches["head"].point.schedule == OWN:
            tuner.choose(benches["head"], head, "head")
        else:
            benches["head"].ran = benches["base"].ran

    def visit(
        self,
        point: Point,
        host: Room,
        answers: Answers,
        watch: Callable[[], Disturbed],
        tuner: Tuner,
    ) -> Record:
        with ExitStack() as owned:
            benches, seed = dict[str, Bench](), self._coin.randrange(1 << 32)
            needed = self._job.needs[point.name]
            for side in self._coin.sample(SIDES, 2):
                twice = side == "head" and point.name in self._job.plan.controls
                room = owned.enter_context(_guest(host, self._libraries["copy" if twice else side]))
                benches[side] = owned.enter_context(bench_of(point, needed, room, answers, seed))
            self._choose(benches, tuner)
            known = _known(point, host.library)
            third = owned.enter_context(bench_of(known, needed, host, answers))
            programs = _programs(benches, third, self._job.plan.sample_time)
            taken, errors = side_by_side(benches, programs, self._job.plan, seed, watch)
            # the sides have changed these bytes
            if any(bench.foreign for bench in benches.values()):
                host.fill()
            return Record(
                launch=self._job.launch,
                point=point,
                samples=taken,
                traffic={program.name: program.traffic() for program in flat(programs)},
                max_abs_err=max(errors.values()),
                ran=" → ".join(dict.fromkeys(benches[side].ran for side in SIDES)),
                **host.facts(point, benches["base"].own.traffic()),
            )


def _opened(folder: Path, library: str, plugins: tuple[str, ...]) -> Library:
    folder.mkdir()
    files = (library, str(Path(library).with_name("abi.h")), *plugins)
    copies = [shutil.copy(path, folder) for path in files]
    found = Library(copies[0], plugin=copies[2:])
    for each in found.plugins.each:
        each.rows  # noqa: B018  # load it while the file exists
    return found


def _known(point: Point, library: Library) -> Point:
    """The point with a variant that the installed library has too; a witness reads the same rows
    for every variant.
    """
    words = library.words("variant")
    return (
        point
        if point.op not in ATTENDS or point.variant in words
        else replace(point, variant=words[0])
    )


def _programs(benches: Mapping[str, Bench], third: Bench, sample_time: float) -> list[Program]:
    """Programs of both sides: as many passes as base needs for a sample's time, and witnesses for
    half of it.
    """
    base, head = (replace(benches[side].own, name=side, quiet=True) for side in SIDES)
    beside = replace(third.streamed(third.plainest), name=BESIDE["base"], quiet=True)
    beside = replace(beside, sample_time=sample_time / 2)
    again = replace(beside, name=BESIDE["head"], like=beside.name)
    return [replace(base, then=(beside,)), replace(head, like=base.name, then=(again,))]
