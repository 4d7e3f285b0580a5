"""Visits of probes. Those that walk the same memory share it, first touched by the threads that read it."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from kvbench.model import Probe, Record
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


def visits(
    library: Library, launch: int, probes: Sequence[Probe], samples: int, seconds: float, seed: int
) -> Iterator[Record]:
    """One record for each probe. They have the CPUs, pages, bytes and number of streams in common."""
    first = probes[0]
    with ExitStack() as owned:
        team = owned.enter_context(Team(len(first.cpus), first.cpus, library))
        buffers = _buffers(owned, team, first, streams(library, first.op))
        memory = buffers[0].inspect() if buffers else {}
        for probe in probes:
            with _task(library, probe, buffers) as task:
                program = Program("point", (task,))
                taken = rounds(team, [program], samples, seconds, seed)
                yield Record(
                    launch=launch,
                    point=probe,
                    samples=tuple(replace(sample, pass_seconds=()) for sample in taken),
                    traffic={"point": task.traffic()},
                    memory=memory,
                    steps=steps(probe),
                )


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
