"""A visit of a point by two libraries at once: both walk the same memory in turn, and a third watches.

for pair in pairs:
    for side in base and head, in an order that a coin decides:
        one untimed pass, then a timed sample of the side
        the same of what is beside it: the point's witness, by the library that was installed

The third library's witness (a twin, or a copy) is code that no change of the kernels can touch: where it takes longer
beside head than beside base, the machine did that. Which side is made first in a launch is decided by a coin too, so
that where things come to lie in memory favours neither.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from kvbench.errors import NotComparable
from kvbench.machine.disturbances import Disturbed
from kvbench.model import SIDES, Job, Point, Record, Sample, Traffic
from kvbench.native import Arena, Library, Team, library_of
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.loop import Program, passes_for
from kvbench.worker.room import Room

_STRIDES = ("row_bytes", "token_stride", "head_stride", "seq_stride", "plane_bytes", "scale_plane_bytes", "bytes")
_TRIES = 3
QUIET = 0.25  # of a sample's passes are faster than the one that is told: what stalls a few of them is no part of it


class Guest(Room):
    """The memory of another room, as a library of its own sees it."""

    def __init__(self, host: Room, library: Library) -> None:
        self._host = host
        super().__init__(host.point, host.ground, library)

    def _arena(self) -> Arena:
        return self._host.arena

    def _fill(self) -> None:
        """It is filled; but the library must find the rows where they are."""
        for own, other in zip(self.caches, self._host.caches, strict=True):
            own.lengths[:] = other.lengths
        ours, theirs = (room.caches[0].struct for room in (self, self._host))
        if moved := [name for name in _STRIDES if getattr(ours, name) != getattr(theirs, name)]:
            what = f"{self.library.path.name} lays a {self.point.layout} cache out in another way: {', '.join(moved)}"
            raise NotComparable(what, "both sides must read the same memory")

    def _sources(self) -> np.ndarray:
        return self._host.sources


class Rivals:
    """Both libraries, opened in an order that a coin decides."""

    def __init__(self, job: Job, coin: random.Random) -> None:
        plan = job.plan
        paths = {"base": (plan.library, plan.plugin), "head": (plan.against, plan.against_plugin)}
        self._libraries = {side: library_of(*paths[side]) for side in coin.sample(SIDES, 2)}
        self._coin, self._job = coin, job

    def visit(self, point: Point, host: Room, answers: Answers, watch: Callable[[], Disturbed]) -> Record:
        with ExitStack() as owned:
            benches: dict[str, Bench] = {}
            for side in self._coin.sample(SIDES, 2):
                room = owned.enter_context(Guest(host, self._libraries[side]))
                benches[side] = owned.enter_context(Bench(point, room, answers))
            third = owned.enter_context(Bench(_known(point, host.library), host, answers))
            error = max(bench.verify() for bench in benches.values())
            taken = tuple(self._pairs(benches, third, watch))
            error = max(error, *(bench.verify() for bench in benches.values()))
            return Record(
                launch=self._job.launch,
                point=point,
                samples=taken,
                traffic=_traffic(benches, third),
                memory=host.memory,
                layers=host.layers,
                slice_bytes=host.slice_bytes,
                max_abs_err=error,
            )

    def _pairs(self, benches: Mapping[str, Bench], third: Bench, watch: Callable[[], Disturbed]) -> Iterator[Sample]:
        """Both sides do as many passes as base needs for the time of a sample."""
        plan, seen, at = self._job.plan, watch(), 0
        known = self._job.passes.get(third.point.name, {})
        turns = {side: _Turns(bench.team, bench.own) for side, bench in benches.items()}
        watcher = _Turns(third.team, third.plainest)
        passes = known.get("base") or turns["base"].passes(plan.seconds)
        watched = known.get("beside_base") or watcher.passes(plan.seconds / 2)
        for number in range(plan.samples):
            taken = []
            for side in self._coin.sample(SIDES, 2):
                taken.append(turns[side].sample(side, number, at, passes))
                taken.append(watcher.sample(f"beside_{side}", number, at := at + passes, watched))
                at += watched
            then, seen = seen, watch()
            disturbed = seen.since(then)
            yield from (replace(each, steal=disturbed.steal, throttled=disturbed.throttled) for each in taken)


class _Turns:
    """A program in short samples, each of which goes on where the one before it ended, whoever took that: so the next
    slice is always the one that was walked longest ago."""

    def __init__(self, team: Team, program: Program) -> None:
        self._team, self._program = team, program

    def passes(self, seconds: float) -> int:
        """All launches will do so many: what stalled one try must not decide it."""
        most = max(passes_for(self._team, self._program, seconds) for _ in range(_TRIES))
        if (slices := len(self._program.tasks)) == 1:
            return most
        taken = min(self._team.run(*self._program.tasks, passes=slices).seconds for _ in range(_TRIES))
        return max(1, round(seconds / taken * slices))

    def sample(self, name: str, number: int, at: int, passes: int) -> Sample:
        """From slice `at` on. What wakes the threads is the pass over the slice before it, which does not count."""
        tasks = self._program.tasks
        order = (tasks[(at + turn) % len(tasks)] for turn in range(-1, min(passes, len(tasks) - 1)))
        times = self._team.run(*order, passes=passes + 1, between=self._program.between)
        counted = sorted(times.pass_seconds[1:])
        return Sample(
            program=name,
            round=number,
            passes=passes,
            seconds=sum(counted),
            pass_seconds=(counted[int(QUIET * passes)],),
            skew=max(times.thread_seconds) * len(times.thread_seconds) / sum(times.thread_seconds) - 1.0,
            switches=times.switches,
            faults=times.faults,
        )


def _known(point: Point, library: Library) -> Point:
    """With a variant that the installed library has too: a witness reads the same rows for all of them."""
    words = library.words("variant")
    return point if point.op != "decode" or point.variant in words else replace(point, variant=words[0])


def _traffic(benches: Mapping[str, Bench], third: Bench) -> dict[str, Traffic]:
    own = {side: bench.own.traffic() for side, bench in benches.items()}
    return own | {f"beside_{side}": third.plainest.traffic() for side in benches}
