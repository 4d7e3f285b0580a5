"""Visits of probes. Probes that walk the same memory share it."""

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from kvbench.closing import Owner
from kvbench.machine.allowance import Disturbed
from kvbench.model import COMPUTE, PLAIN, Job, Probe, Record
from kvbench.native import Team, chain, forms, probe_task
from kvbench.regime import dram_bytes
from kvbench.units import MIB
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program, rounds

PASS_BYTES = 16 * MIB  # of each thread, so that the barrier after a pass costs next to nothing
LOADS = 1 << 18  # in a pass of latency
ROUNDS = 100_000  # in a pass of flops
ADDITIONS = 1 << 20  # in a pass of clock
FORM_EVERY = 3  # rounds for one sample of each form, except the plain form
_SEED = 1


def steps(probe: Probe) -> int:
    """How often a pass of a probe does its work: loads, rounds, additions, or walks over its
    buffers.
    """
    fixed = {"latency": LOADS, "clock": ADDITIONS} | dict.fromkeys(COMPUTE, ROUNDS)
    return fixed.get(probe.op) or max(1, PASS_BYTES * probe.threads // probe.bytes)


def streams(op: str) -> int:
    """Buffers that an op walks side by side; 0 if it needs no memory."""
    if op == "clock" or op in COMPUTE:
        return 0
    return {"copy": 2, "copy_nt": 2, "triad": 3}.get(op, 1)


class Buffers(Owner):
    """The memory of probes with equal CPUs, pages, bytes and number of streams, and their team."""

    def __init__(self, probe: Probe, ground: Ground) -> None:
        self._probe, self._ground, self._library = probe, ground, ground.library
        super().__init__()

    def _prepare(self) -> None:
        probe, ground, count = self._probe, self._ground, streams(self._probe.op)
        self._team = self._owned.enter_context(Team(probe.threads, probe.cpus, self._library))
        arena = (
            ground.far(self._team, probe.cpus, probe.pages, probe.bytes, count) if count else None
        )
        each = probe.bytes // max(count, 1)
        self._parts = [arena.part(index * each, each) for index in range(count)] if arena else []
        self._least = dram_bytes(ground.machine, probe.cpus) or math.inf
        self._memory = arena.inspect() if arena else {}

    def record(self, probe: Probe, job: Job, seed: int, watch: Callable[[], Disturbed]) -> Record:
        with ExitStack() as owned:
            programs, warm = [], probe.bytes < self._least
            for form, how in forms(probe.op, self._library).items():
                if probe.op == "latency":
                    first = self._parts[0]
                    chain(self._library, first, first.size, _SEED)
                facts = {
                    **dict(zip(("to", "source", "second"), self._parts, strict=False)),
                    **how,
                    "size": self._parts[0].size if self._parts else 0,
                    "steps": steps(probe),
                }
                task = probe_task(self._library, probe.op, probe.threads, isa=probe.isa, **facts)
                owned.enter_context(task)
                name, every = ("point", 1) if form == PLAIN else (form, FORM_EVERY)
                programs.append(Program(name, self._team, (task,), warm=warm, every=every))
            taken = rounds(programs, job.plan.samples, job.plan.sample_time, seed, watch=watch)
            return Record(
                launch=job.launch,
                point=probe,
                samples=tuple(replace(sample, pass_seconds=()) for sample in taken),
                traffic={program.name: program.traffic() for program in programs},
                memory=self._memory,
                steps=steps(probe),
            )


def group(probe: Probe) -> tuple[object, ...]:
    """The key of a probe's buffers: probes with equal keys share them. Latency has its own, because
    it links a chain in them.
    """
    return (probe.cpus, probe.pages, probe.bytes, probe.op == "latency", streams(probe.op))
