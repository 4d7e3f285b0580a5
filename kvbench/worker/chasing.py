"""A chase beside a point: one more thread, on its own CPU, in which every load waits for the one
before; and what the point's threads do meanwhile. See model/chases.py.

Copies overwrite the memory that no cache holds; all other programs of a round only read it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import TypeGuard, cast

from kvbench.errors import Refused, Unsupported
from kvbench.machine.placement import chaser
from kvbench.model import PLAIN, Machine, Needs, Point, Role
from kvbench.model.chases import (
    AFTER,
    COPY,
    IDLE,
    NODE,
    NONE,
    OWN,
    READ,
    REMOTE,
    SECONDS,
    SHARES,
    SIBLING,
    SPIN,
    Chase,
    loaded,
)
from kvbench.model.point import Visited
from kvbench.native import Load, Task
from kvbench.plan.chases import unchased
from kvbench.worker.bench import PIECES, Bench
from kvbench.worker.loop import Program
from kvbench.worker.probing import PASS_BYTES

LOADS = 4096  # in a step
_CACHES = 1 / 4  # of the memory that no cache holds: as many bytes as all caches hold
# Bytes for each spinning thread, which fit any L1; and how often a pass reads them, so that it
# takes about 0.1 ms.
_NEAR, _TURNS = 16 << 10, 2048
_FIRST, _LAST = -1, 1  # places in a round
# Pauses: steps of the chase in a measurement of a rate, measurements of the full rate, most
# measurements for a share, how far from the share a rate may be, and the longest pause, in times of
# a unit.
_STEPS, _FULL, _TRIES, _CLOSE, _LONGEST = 32, 3, 4, 0.03, 1000.0
_LACKS = {
    NODE: ("the point leaves no core of its NUMA nodes free for a chase", "use fewer --threads"),
    REMOTE: ("no other NUMA node has a core that may chase", "use chase node"),
    SIBLING: ("no core of the point has an SMT sibling that may chase", "use chase node"),
}


def pauses(moved: Callable[[float], float]) -> dict[int, float]:
    """The pause for each share of the full rate. `moved`: measures the rate with a pause.

    A pause is a multiple of a unit's time, and units take longer if memory is saturated. So each
    pause is corrected by the rate that it gave, and the one that came nearest counts. The smallest
    share comes first: its units take the least time, and the time of others is close to that of the
    share before. No share pauses longer than a smaller one.
    """
    full = freely = median(moved(0.0) for _ in range(_FULL))
    found, most = dict[int, float](), _LONGEST
    for share in SHARES[:-1]:
        wanted, tried = full * share / 100, dict[float, float]()
        for _ in range(_TRIES):
            pause = min(max(freely / wanted - 1, 0.0), most)
            rate = moved(pause)
            tried[pause] = abs(rate / wanted - 1)
            if tried[pause] <= _CLOSE:
                break
            freely = rate * (1 + pause)  # the rate without pauses, if units stayed as long
        found[share] = most = min(tried, key=tried.__getitem__)
    return {**found, SHARES[-1]: 0.0}


def is_chased(visited: Visited) -> TypeGuard[Point]:
    return isinstance(visited, Point) and visited.chase != NONE


def cpus_of(visited: Visited, machine: Machine) -> tuple[int, ...]:
    """All CPUs that are busy while the point is sampled."""
    if not is_chased(visited):
        return visited.cpus
    cpu = chaser(machine, visited.cpus, visited.chase)
    return visited.cpus if cpu is None else (*visited.cpus, cpu)


def refuse_chase(point: Point, needed: Needs) -> None:
    """Refuse a point beside which no thread can chase."""
    if why := unchased(point, needed):
        raise Unsupported(why, "leave out chase")


class Chasing:
    """The chase beside the point of a bench. The bench owns the tasks."""

    def __init__(self, bench: Bench) -> None:
        refuse_chase(bench.point, bench.needs)
        point, ground = bench.point, bench.room.ground
        cpu = chaser(ground.machine, point.cpus, point.chase)
        if cpu is None:
            raise Refused(*_LACKS[point.chase])
        self._bench, self._team = bench, bench.room.team((cpu,))
        cycle, found = ground.cycle(self._team, cpu, point.pages, bench.needs.chain)
        self._task = bench.probe("latency", 1, to=cycle, size=cycle.size, steps=LOADS)
        self.facts = Chase(cpu, cycle.size, found["huge_bytes"], LOADS)

    def programs(self, sample_time: float) -> Iterator[Program]:
        """The programs, in the order of model/chases.py."""
        spin = self._spin
        for form, place in ((PLAIN, _FIRST), (AFTER, _LAST)):
            yield self._program(Role(IDLE, form).name, sample_time, None, place)
            yield self._program(Role(SPIN, form).name, sample_time, spin, place)
        for name, tasks in self._loads():
            load = self._load(tasks)
            for share, pause in pauses(partial(self._moved, load)).items():
                beside = replace(load, pause=pause)
                yield self._program(loaded(name, share), sample_time, beside)

    def _program(self, name: str, sample_time: float, load: Load | None, place: int = 0) -> Program:
        return Program(
            name,
            self._team,
            (self._task,),
            warm=False,
            load=load,
            loads=LOADS,
            sample_time=max(SECONDS, sample_time),
            like="" if name == IDLE else IDLE,
            place=place,
        )

    def _load(self, tasks: Sequence[Task]) -> Load:
        """A load of these tasks. It runs ahead until caches are full of its bytes."""
        each = tasks[0].traffic().bytes_compulsory
        ahead = max(1, math.ceil(_CACHES * self._bench.far.whole.size / each))
        return Load(self._bench.team, tuple(tasks), ahead)

    def _moved(self, load: Load, pause: float) -> float:
        """GB/s of the load with this pause, beside the chase."""
        beside = replace(load, pause=pause)
        return beside.gbps(self._team.run(self._task, passes=_STEPS, load=beside))

    @property
    def _spin(self) -> Load:
        """A load that keeps each thread in its own cache lines."""
        size = _NEAR * self._bench.team.threads
        near = self._bench.far.arena.part(0, size)
        task = self._bench.probe("read", to=near, size=size, steps=_TURNS)
        return Load(self._bench.team, (task,))

    def _loads(self) -> Iterator[tuple[str, Sequence[Task]]]:
        far, threads = self._bench.far, self._bench.team.threads
        piece = min(far.whole.size // PIECES, PASS_BYTES * threads) // 64 * 64
        count = far.whole.size // piece
        yield READ, self._bench.far_reads(piece, count)
        parts = [far.arena.part(place * piece, piece) for place in range(count // 2 * 2)]
        pairs = zip(parts[: count // 2], parts[count // 2 :], strict=True)
        copies = (
            self._bench.probe("copy", to=to, source=source, size=piece) for to, source in pairs
        )
        yield COPY, tuple(copies)
        yield OWN, cast("tuple[Task, ...]", self._bench.kernel.tasks)
