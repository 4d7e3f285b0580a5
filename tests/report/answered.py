"""Answers of an invented run: a page must show each of them."""

import math

from kvbench.analysis.answers import Answers, mixed, speculate
from kvbench.analysis.answers.answer import Answer, Basis, Figure, Held, Reason, State, Unit
from kvbench.analysis.answers.between import Course, Family, Kept, Left
from kvbench.analysis.answers.decodes import Decode, Decodes
from kvbench.analysis.answers.factors import Choice, Factors
from kvbench.analysis.answers.l3 import L3, Fits, Gain
from kvbench.analysis.answers.memory import MemoryState, Reads
from kvbench.analysis.answers.servers import Line, Servers, Stretch
from kvbench.analysis.answers.serving import Batch, Served, Serving, Way
from kvbench.analysis.answers.step import Step, StepPart, Steps
from kvbench.analysis.answers.storing import Storing
from kvbench.analysis.answers.trust import FAIR, Because, Suspect, Trust
from kvbench.analysis.answers.workload import Workload
from tests.report import chasing

NONE = Answer.untested("x", Reason.NOT_MEASURED)


def told(question, value, unit, low=math.nan, high=math.nan, *subject, of="", **more):
    """An answer of the same rounds."""
    facts = {"basis": Basis.ROUNDS, "launches": 14} | more
    return Answer(question, of, subject, Figure(value, low, high, unit), **facts)


def times(value, low, high, against="", **more):
    return told("ratio", value, Unit.TIMES, low, high, "a", against=against, **more)


def share(value, held, **more):
    return told("share", value, Unit.SHARE, value - 0.02, value + 0.02, held=held, **more)


def row(dtype, variant, speed, gbps, shares, limit, errors, kernel_error, state=State.DECIDED):
    point, known = f"{dtype} point", Answer.untested("limit", limit, dtype)
    memory, rows, core = map(share, shares, (Held.MEMORY, Held.ROWS, Held.CORE))
    return Decode(
        dtype=dtype,
        layout="head",
        variant=variant,
        isa="avx512",
        point=point,
        speed=told("decode", speed, Unit.TOKENS, speed - 2, speed + 13, point),
        rate=told("rate", gbps, Unit.GBPS),
        lead=times(speed / 90.2, 0.5, 1.0, "i8 point", state=state),
        memory=memory,
        rows=rows,
        core=core,
        limit=known.because(State.DECIDED, limit),
        format_errors=dict(zip(("normal", "heavy-tailed"), errors, strict=True)),
        kernel_error=kernel_error,
    )


ROWS = (
    row("i8", "dot", 90.2, 25.1, (0.82, 0.97, 0.76), Reason.ROWS, (9e-3, 4e-2), 2e-3),
    row("q4_0", "dot", 71.6, 10.9, (0.36, 0.45, 1.04), Reason.CORE, (1.2e-1, 2e-1), 2e-3),
    row("f16", "flash", 48.0, 25.8, (0.95, 0.96, 0.41), Reason.MEMORY, (3e-4, 3e-4), 2e-7,
        State.OPEN),
)  # fmt: skip
LAYOUT = Choice(
    factor="layout",
    op="decode",
    regime="DRAM",
    dtype="f16",
    context=4096,
    longest=4096,
    values=("blockt", "head", "position"),
    level=("blockt", "head"),
    leads=(
        times(1.01, 0.98, 1.03, of="head", state=State.LEVEL),
        times(1.21, 1.12, 1.33, of="position"),
    ),
)
VARIANT = Choice(
    factor="variant",
    op="decode",
    regime="DRAM",
    dtype="i8",
    context=4096,
    longest=4096,
    values=("dot", "flash"),
    level=("dot", "flash"),
    leads=(times(1.07, 0.97, 1.19, of="flash", state=State.OPEN),),
)
STORED = Choice(
    factor="layout",
    op="append",
    regime="DRAM",
    dtype="f16",
    context=8192,
    longest=8192,
    values=("head", "paged"),
    level=("head",),
    leads=(times(1.69, 1.52, 1.88, of="paged"),),
)
GAIN = Gain(
    dtype="f16",
    layout="head",
    group=4,
    model="llama-3-8b",
    context=2048,
    threads=2,
    layouts=1,
    gain=times(1.31, 1.26, 1.43),
    limit=NONE.because(State.DECIDED, Reason.CORE),
    middle=False,
)


def left(count, value, low, high, kept, weights="", share=0.25):
    return Left(
        bytes=count,
        weights=weights,
        share=share,
        point=f"a, {count} between",
        gain=times(value, low, high),
        alone=times(value / 1.31, low / 1.31, high / 1.31),
        step=times(value / 1.31, low / 1.31, high / 1.31),
        kept=kept,
    )


FAMILY = Family(
    dtype="f16",
    layout="head",
    group=4,
    model="llama-3-8b",
    context=2048,
    threads=2,
    point="a",
    gain=GAIN.gain,
    left=(
        left(8 << 20, 1.22, 1.15, 1.3, Kept.SOME),
        left(16 << 20, 1.14, 1.09, 1.2, Kept.SOME, share=0.5),
        left(122_683_392, 1.01, 0.98, 1.04, Kept.NOTHING, "q4_0", 3.66),
    ),
    course=Course.FALLS,
    rises=(),
)


def step(dtype, context, weights, whole, shares, batch=1):
    """`whole`: the answer of the step over its parts. `shares`: of appends, decodes, weights."""
    point, seconds = f"{dtype} step {context}", 0.1
    parts = (
        StepPart(
            name,
            told("share", each, Unit.SHARE, each - 0.01, each + 0.01, point, held=Held.STEP),
            told("times", 1.06, Unit.LENGTH, 1.03, 1.09, point, held=Held.PARTS),
            told("adds", 0.05, Unit.SHARE, 0.03, 0.07, point, held=Held.PARTS),
            "L3",
        )
        for name, each in shares.items()
    )
    return Step(
        point=point,
        model="llama-3-8b",
        dtype=dtype,
        layout="head",
        variant="flash",
        isa="avx512",
        context=context,
        batch=batch,
        lengths="even",
        layers=32,
        window=0,
        full_every=0,
        threads=2,
        weights=weights,
        regime="DRAM",
        seconds=told("step", seconds, Unit.SECONDS, 0.09, 0.11, point),
        sequence=told("sequence", 10.0, Unit.TOKENS, 9.1, 11.1, point),
        tokens=told("tokens", 10.0 * batch, Unit.TOKENS, 9.1, 11.1, point),
        p50=told("p50", 0.098, Unit.SECONDS, 0.09, 0.11, point),
        p99=NONE,
        memory=told("memory", 0.93, Unit.SHARE, 0.91, 0.95, point, held=Held.MEMORY),
        whole=whole,
        parts=tuple(parts),
        limit=NONE.because(State.DECIDED, Reason.MEMORY),
    )


def over_parts(value, low, high, state, reason=Reason.NONE, **facts):
    return told("whole", value, Unit.LENGTH, low, high, held=Held.PARTS, state=state,
                reason=reason, facts=facts)  # fmt: skip


STEPS = (
    step("i8", 4096, 4 << 30, over_parts(1.0, 0.98, 1.03, State.LEVEL),
         {"appends": 0.01, "decodes": 0.29, "weights": 0.7}),
    step("f16", 512, 0,
         over_parts(1.06, 1.04, 1.08, State.DECIDED, Reason.CACHED, way="slower", part="decodes",
                    level="L3", times=1.061, adds=0.052),
         {"appends": 0.02, "decodes": 0.98}),
    step("f16", 32768, 4 << 30, over_parts(1.04, 0.95, 1.09, State.OPEN),
         {"appends": 0.003, "decodes": 0.5, "weights": 0.497}, batch=4),
)  # fmt: skip


def served(way, longest, tokens, seconds):
    """The times of a batch of 16 requests."""
    step = told("step", seconds, Unit.SECONDS, 0.9 * seconds, 1.1 * seconds, way)
    each, whole = (told(way, count / seconds, Unit.TOKENS) for count in (1, 16))
    return Served(way, way, 263, longest, tokens, step, each, whole)


PADDING = times(1.37, 1.31, 1.42)
SERVING = Serving(
    padding=PADDING,
    batches=(
        Batch(
            batch=16,
            dtype="f16",
            layout="head",
            ways=(
                served(Way.AS_THEY_ARE, 2404, 19932, 0.25),
                served(Way.PADDED, 2404, 38464, 0.3425),
            ),
            padding=PADDING,
            raggedness=times(1.01, 0.99, 1.02, state=State.LEVEL),
        ),
    ),
    model="llama-3-8b",
    layers=32,
    timed=4,
    threads=2,
    between=122 << 20,
)
SPECULATION = speculate.Speculation(
    lines=(
        speculate.Line(
            **dict(dtype="f16", layout="head", variant="flash", group=4, context=16384),
            **dict(threads=2, batch=1, mask="chain", model="llama-3-8b", level="DRAM"),
            point="f16 point",
            limit=NONE.because(State.DECIDED, Reason.MEMORY),
            steps=(
                speculate.Queries(
                    queries=4,
                    drafts=3,
                    point="f16 point",
                    times=told("queries", 1.31, Unit.LENGTH, 1.22, 1.4, "f16 point"),
                    accepted=0.31,
                    core=told("core", 1.2, Unit.LENGTH, 1.19, 1.21, "f16 point"),
                    limit=NONE.because(State.DECIDED, Reason.CORE),
                    worth=speculate.Worth.MORE,
                ),
            ),
        ),
    ),
    usual=4,
)


def placed(keys, error, alone, place, by=""):
    return mixed.Placed(keys, error, alone, place, by)


def stored(dtype, variant, speed, kib, places, *against, k_scale="token"):
    point = f"{dtype} {variant} {k_scale}"
    return mixed.Format(
        dtype=dtype,
        k_scale=k_scale,
        variant=variant,
        layout="head",
        isa="avx512",
        point=point,
        bytes=1024.0 * kib,
        speed=told("speed", speed, Unit.TOKENS, speed - 1, speed + 1, point),
        limit=NONE.because(State.DECIDED, Reason.MEMORY),
        placed=places,
        against=against,
        drawn=True,
    )


def against(other, dtype, value, low, high, **more):
    speed = told("speed", 50.0, Unit.TOKENS)
    return mixed.Against(other, dtype, speed, times(value, low, high, **more))


MIXED = mixed.Mixed(
    formats=(
        stored("q8_0+q4_0", "dot", 60.2, 52, (
            placed("normal", 0.0869, 0.086, mixed.Place.LEADS),
            placed("heavy", 0.0939, 0.0924, mixed.Place.LEVEL, "i8 flash channel"),
        ), against(mixed.Other.K, "q8_0", 1.22, 1.19, 1.25),
            against(mixed.Other.V, "q4_0", 0.81, 0.79, 0.84)),
        stored("i8", "flash", 49.1, 66, (
            placed("normal", 0.0092, 0.0092, mixed.Place.LEADS),
            placed("heavy", 0.0113, 0.0113, mixed.Place.LEADS),
        ), against(mixed.Other.BY_TOKEN, "i8", 1.01, 0.99, 1.02, state=State.LEVEL),
            k_scale="channel"),
        stored("i8", "flash", 48.8, 66, (
            placed("normal", 0.0092, 0.0092, mixed.Place.LEADS),
            placed("heavy", 0.0616, 0.0616, mixed.Place.BEHIND, "i8 flash channel"),
        )),
    ),
    choices=tuple(
        mixed.Choice(allowed, keys, point, level)
        for keys, allowed, point, level in (
            ("normal", 0.01, "i8 flash token", ("i8 flash channel",)),
            ("normal", 0.1, "q8_0+q4_0 dot token", ()),
            ("heavy", 0.01, "", ()),
            ("heavy", 0.1, "q8_0+q4_0 dot token", ()),
        )
    ),
    costs=tuple(
        mixed.Cost(
            what=what,
            **dict(dtype="f16", variant="flash", layout="head", group=2, head_dim=256),
            **dict(context=8192, window=4096, threads=2, batch=1, model="gemma-2-9b"),
            level="DRAM",
            point="f16 point",
            times=told("scores", value, Unit.LENGTH, value - 0.01, value + 0.01, "f16 point"),
        )
        for what, value in (("cap 50", 1.31), ("sinks", 1.02))
    ),
)  # fmt: skip
ANSWERS = Answers(
    machine="AMD EPYC",
    virtual=True,
    workload=Workload("llama-3-8b", 32, 4096, 1, 2, tuple(each.point for each in ROWS)),
    decodes=Decodes(
        fastest=told("fastest", 90.2, Unit.TOKENS, 88.0, 103.0, "i8 point"),
        next=times(1.26, 1.12, 1.41, "q4_0 point"),
        rows=ROWS,
    ),
    reads=Reads(
        memory=told("memory", 31.4, Unit.GBPS, 29.0, 32.0),
        states=(MemoryState(45, 31.4, 27.1, 34.2), MemoryState(2, 50.0, 47.1, 53.2)),
        visits=47,
        l3=times(4.7, 4.5, 5.5),
        l3_rate=told("L3", 148.0, Unit.GBPS, 140.0, 155.0),
        beside=told("memory", 31.5, Unit.GBPS, 29.0, 33.0),
    ),
    l3=L3(
        helps=times(1.31, 1.26, 1.43),
        gains=(GAIN,),
        families=(),
        fits=(
            Fits("llama-3-8b", "i8", 2, 2112.0, 7912, 241),
            Fits("llama-3-8b", "f32", 2, 8192.0, 2011, None),
        ),
        usable=0.7,
    ),
    factors=Factors(
        choices=(LAYOUT, VARIANT, STORED),
        threads=times(1.71, 1.6, 1.8, facts={"threads": 2, "fewer": 1}),
    ),
    prefetch=(
        told("prefetch", 1.4, Unit.TIMES, 1.3, 1.5, of="DRAM",
             facts={"schedule": "weave", "dtype": "f16", "layout": "head"}),
        told("prefetch", 1.01, Unit.TIMES, 0.99, 1.03, of="L3", state=State.LEVEL,
             facts={"schedule": "stream", "dtype": "f16", "layout": "head"}),
    ),
    storing=Storing(
        token=told("storing", 30e-6, Unit.SECONDS, math.nan, math.nan, "append f16"),
        share=told("storing", 0.003, Unit.SHARE, 0.002, 0.004, held=Held.STEP),
        layouts=(STORED,),
    ),
    steps=Steps(STEPS),
    serving=SERVING,
    speculation=SPECULATION,
    mixed=MIXED,
    latency=chasing.found(),
    servers=Servers(
        here=15.4,
        lines=(Line("i8", "i8 point", 2.8e8, 60.0, 17.0),),
        fastest=(Stretch("q4_0", 1.0, 9.1), Stretch("i8", 9.1, 40.0)),
    ),
    trust=Trust(
        grade=FAIR,
        scatter=0.08,
        most=0.21,
        between=0.46,
        noise=0.13,
        because=Because.SCATTER,
        launches=14,
        typical=7,
        fewest=5,
        doubted=0,
        slow=4,
        set_aside=3,
        points=58,
        failed=1,
        unstable=3,
        disturbed=0.012,
        suspects=(Suspect("s", "head i8 dot", "core speed", "noise", False),
                  Suspect("t", "paged f16", "reads of memory", "merged reads", True)),
    ),
)  # fmt: skip
