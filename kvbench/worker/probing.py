"""Visits of probes. Those that walk the same memory share it, first touched by the threads that read it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Self

import numpy as np

from kvbench.machine.disturbances import Disturbed
from kvbench.model import Job, Probe, Record
from kvbench.native import Arena, Library, Task, Team, probe_task
from kvbench.units import MIB
from kvbench.worker.loop import Program, rounds

PASS_BYTES = 64 * MIB  # of each thread, so that meeting at the end of a pass costs next to nothing
LOADS = 1 << 18  # of a pass of latency
ROUNDS = 100_000  # of a pass of flops
ADDITIONS = 1 << 20  # of a pass of clock
_BLOCK = 1 << 20  # bytes of random numbers, repeated
_SEED = 1


def steps(probe: Probe) -> int:
    """What a pass of a probe does so often: loads, rounds, additions, or walks over its buffers."""
    fixed = {"latency": LOADS, "flops": ROUNDS, "clock": ADDITIONS}
    return fixed.get(probe.op) or max(1, PASS_BYTES * len(probe.cpus) // probe.bytes)


def streams(library: Library, op: str) -> int:
    """Buffers that an op walks side by side; 0 where it needs no memory."""
    if op in ("flops", "clock"):
        return 0
    return {"copy": 2, "copy_nt": 2, "triad": 3}.get(op, 1)


class Grounds:
    """The buffers of probes that have CPUs, pages, bytes and number of streams in common."""

    def __init__(self, library: Library, probe: Probe) -> None:
        self._library, self._owned = library, ExitStack()
        try:
            self._team = self._owned.enter_context(Team(len(probe.cpus), probe.cpus, library))
            self._buffers = _buffers(self._owned, self._team, probe, streams(library, probe.op))
        except BaseException:
            self._owned.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._owned.close()

    def record(self, probe: Probe, job: Job, seed: int, watch: Callable[[], Disturbed]) -> Record:
        with _task(self._library, probe, self._buffers) as task:
            program = Program("point", (task,))
            passes = job.passes.get(probe.name)
            taken = rounds(self._team, [program], job.plan.samples, job.plan.seconds, seed, passes, watch)
            return Record(
                launch=job.launch,
                point=probe,
                samples=tuple(replace(sample, pass_seconds=()) for sample in taken),
                traffic={"point": task.traffic()},
                memory=self._buffers[0].inspect() if self._buffers else {},
                steps=steps(probe),
            )


def group(library: Library, probe: Probe) -> tuple[object, ...]:
    """Probes with the same answer share their buffers. Latency makes a chain of its own of them."""
    return (probe.cpus, probe.pages, probe.bytes, probe.op == "latency", streams(library, probe.op))


def _buffers(owned: ExitStack, team: Team, probe: Probe, count: int) -> list[Arena]:
    """`count` buffers of random bytes, which no cache or memory controller can shorten."""
    block = np.random.default_rng(_SEED).integers(1, 256, _BLOCK, dtype=np.uint8)
    buffers = []
    for _ in range(count):
        arena = owned.enter_context(Arena(probe.bytes // count, probe.pages, library=team.library))
        with probe_task(
            team.library, "write", team.threads, isa=team.library.isas()[0], to=arena, size=arena.size
        ) as touch:
            team.run(touch)
        _fill(arena.view(), block, team.threads)
        buffers.append(arena)
    return buffers


def _fill(view: np.ndarray, block: np.ndarray, threads: int) -> None:
    """Repeat a block. The pages are where they belong already, so any thread may write them."""

    def write(start: int) -> None:
        view[start : start + block.size] = block[: view.size - start]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(0, view.size, block.size)))


def _task(library: Library, probe: Probe, buffers: list[Arena]) -> Task:
    if probe.op == "latency":
        library.check(library.lib.kvb_chain(buffers[0].base, buffers[0].size, _SEED))
    facts = dict(zip(("to", "source", "second"), buffers, strict=False))
    return probe_task(
        library,
        probe.op,
        len(probe.cpus),
        isa=probe.isa,
        **facts,
        size=buffers[0].size if buffers else 0,
        distance=probe.distance,
        steps=steps(probe),
    )
