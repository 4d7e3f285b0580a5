"""Answers that are written by hand, in place of those that a made-up run gives."""

from dataclasses import replace

from kvbench.analysis.answers.answer import Answer, Basis, Figure, Reason, State, Unit
from kvbench.analysis.answers.decodes import Decode, Decodes
from kvbench.analysis.answers.memory import MemoryState
from kvbench.analysis.answers.servers import servers
from kvbench.analysis.answers.trust import Suspect
from kvbench.analysis.answers.workload import Workload

NONE = Answer.untested("", Reason.NOT_MEASURED)
PAGE = Workload("llama-3-8b", 32, 1024, 1, 2, ())


def answer(value, unit=Unit.SHARE, basis=Basis.ROUNDS, spread=0.1):
    if value is None:
        return NONE
    low, high = (1 - spread) * value, (1 + spread) * value
    return Answer("", "", (), Figure(value, low, high, unit), basis=basis, state=State.DECIDED)


def decode(point, speed, rate, lead=1.0, memory=None, core=None, basis=Basis.ROUNDS):
    """`point`: of the model. An error of the format that no other number here has."""
    return Decode(
        dtype=point.dtype,
        layout=point.layout,
        variant=point.variant,
        isa=point.isa,
        point=point.name,
        speed=answer(speed, Unit.TOKENS, basis),
        rate=answer(rate, Unit.GBPS, basis),
        lead=answer(lead, Unit.TIMES, basis),
        memory=answer(memory),
        rows=NONE,
        core=answer(core),
        limit=NONE,
        format_errors={"normal": 0.0123, "heavy": 0.5},
        kernel_error=1e-7,
    )


def answered(found, rows, states=(), suspects=(), gains=(), page=PAGE):
    """`states`: visits and GB/s of memory. `suspects`: points."""
    own = found.answers
    decodes = Decodes(rows[0].speed if rows else NONE, None, tuple(rows))
    memory = states[0][1] if states else None
    reads = replace(
        own.reads,
        memory=answer(memory, Unit.GBPS),
        states=tuple(MemoryState(n, gbps, 0.9 * gbps, 1.1 * gbps) for n, gbps in states),
        visits=sum(n for n, _ in states),
    )
    suspects = tuple(Suspect(p.name, p.dtype, "core speed", "", False) for p in suspects)
    changed = replace(
        own,
        workload=page,
        decodes=decodes,
        reads=reads,
        l3=replace(own.l3, gains=tuple(gains)),
        servers=servers(decodes, page, memory),
        trust=replace(own.trust, suspects=suspects),
    )
    return replace(found, answers=changed)
