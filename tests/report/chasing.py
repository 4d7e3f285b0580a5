"""Latency of memory beside scans that were never measured: it follows a formula."""

from kvbench.analysis.answers.answer import Answer, Basis, Figure, Held, State, Unit
from kvbench.analysis.answers.latency import Curve, Idle, Latency, Place, Step
from kvbench.model.chases import COPY, READ, SHARES
from kvbench.units import MIB

SCANS = (("decode", "f16"), ("decode", "i8"), ("append", "f16"))
COSTS = {READ: 1.0, COPY: 1.3}  # of the rise of latency beside plain reads
MOVES = {COPY: 0.9}  # of what plain reads move
IDLE = {15: 108.0, 1: 154.0}  # ns, by threads
MOST = {15: 252.0, 1: 41.0}  # GB/s
RISES = {15: 1.6, 1: 0.02}  # of the idle latency


def near(value, unit, off=0.02):
    return Figure(value, (1 - off) * value, (1 + off) * value, unit)


def answered(question, value, unit, held="", state=State.DECIDED, off=0.02, **facts):
    """Of the same rounds."""
    found = near(value, unit, off)
    more = {"basis": Basis.ROUNDS, "state": state, "facts": facts, "launches": 7}
    return Answer(question, "", ("a",), found, held, **more)


def step(share, most, threads, cost):
    used = share / 100
    ns = IDLE[threads] * (1 + cost * RISES[threads] * (0.25 * used + 0.75 * used**5))
    return Step(
        share=share,
        load=near(used * most, Unit.GBPS),
        gbps=near(used * most + 64 / ns, Unit.GBPS),
        ns=near(ns, Unit.NS),
        tail=near(1.06 * ns, Unit.NS),
        times=near(ns / IDLE[threads], Unit.LENGTH),
    )


def place(op, dtype, threads, point="", cost=1.0, chase="node", state=State.LEVEL):
    """`cost`: of the rise beside the point, over that beside plain reads."""
    idle, most = IDLE[threads], MOST[threads]
    return Place(
        point=point or f"{op} {dtype} {chase} {threads}",
        op=op,
        dtype=dtype,
        layout="head",
        variant="flash" if op == "decode" else "-",
        model="llama-3-8b",
        context=4096,
        threads=threads,
        chase=chase,
        cpu=threads,
        bytes=512 * MIB,
        few=threads + 1 < 4,
        idle=near(idle, Unit.NS, 0.01),
        spin=near(0.9 * idle, Unit.NS, 0.01),
        spins=True,
        moved=near(64 / idle, Unit.GBPS),
        drift=near(1.0, Unit.LENGTH),
        curves=tuple(
            Curve(
                load,
                tuple(step(share, most * MOVES.get(load, 1), threads, own) for share in SHARES),
                (),
            )
            for load, own in (*COSTS.items(), (op, cost))
        ),
        busy=answered(
            "busy", 1 + RISES[threads] * 0.67, Unit.LENGTH, Held.IDLE,
            State.LEVEL if threads == 1 else State.DECIDED, 0.01, gbps=0.9 * most,
        ),
        alike=answered("alike", (1 + cost) / 2, Unit.LENGTH, Held.READS, state, 0.01),
        slowed=answered("slowed", 0.99, Unit.SHARE, Held.UNCHASED, State.LEVEL, 0.01),
    )  # fmt: skip


def found(threads=15, points=("", "", "")):
    """`points`: names of those that scan. An append costs more than plain reads."""
    costs = ((1.0, State.LEVEL), (1.05, State.OPEN), (1.4, State.DECIDED))
    return Latency(
        places=tuple(
            place(*scan, threads, point, cost, state=state)
            for scan, point, (cost, state) in zip(SCANS, points, costs, strict=True)
        ),
        idle=tuple(
            Idle(level, threads, count, near(ns, Unit.NS))
            for level, count, ns in (
                ("L2", MIB // 2, 3.1),
                ("L3", 8 * MIB, 14.2),
                ("DRAM", 512 * MIB, IDLE[threads]),
            )
        ),
    )
