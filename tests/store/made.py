"""Made-up runs: points of all kinds, and visits with random numbers. What an error of theirs must
say.
"""

import random
from dataclasses import replace

from kvbench.model import Plan, Probe, Record, Sample, Skip, Traffic
from kvbench.store import Manifest
from tests import made_run

SHAPE = replace(made_run.DECODE.shape, context=100, capacity=128)
DECODE = replace(
    made_run.DECODE,
    layout="paged",
    dtype="q8_0",
    isa="best",
    shape=SHAPE,
    cpus=(1, 0),
    schedule="cross",
    order=7,
    deterministic=True,
)
APPEND = replace(
    DECODE,
    op="append",
    variant="nt",
    layout="head",
    shape=replace(SHAPE, layers=1),
    order=None,
    pad=64,
)
READ = Probe("read", "best", (0, 1), "thp", 1 << 20)
POINTS = (DECODE, APPEND, READ)
JOURNAL = "journal.jsonl"
RUN = "20260102-030405-beef"
WITNESSES = {"decode": ("twin", "twin_ahead", "core"), "append": ("copy", "copy_nt")}


def manifest(points=POINTS, launches=10, samples=3, run=RUN, **facts):
    plan = Plan(
        tuple(points), launches, samples, 0.03, 7, patience=60.0, library="/somewhere/else.so"
    )
    known = {
        "run": run,
        "created": "2026-01-02T03:04:05+05:30",
        "suite": "made-up",
        "question": "How fast is what was never measured?",
        "plan": plan,
        "skips": (
            Skip({"context": 5, "dtype": "f16", "pad": None}, "does not fit memory", "1 GiB of 2"),
        ),
        "options": {"axes": {"context": [1, 2]}, "only": None, "target": 0.01},
        "identity": {"suite": "s1", "build": "b1", "machine": "m1", "environment": "e1"},
        "versions": {
            "kvbench": "0.1",
            "hostname": "somewhere",
            "python_version": "3.11",
            "platform": "Linux\n6.1",
        },
        "command": "kvbench sweep made-up --out 'a b'",
        "models": ("llama-3-8b",),
        "engines": (),
        "forecast": {"seconds": 12.5, "memory": 1e9},
    }
    return Manifest(**known | facts)


def visit(chance, launch, point, samples=3, scale=1.0, **facts):
    """A record as a worker makes it: programs alternate within a round."""
    programs = ("point", *WITNESSES.get(point.op, ()))
    passes = {program: 10 * (1 + len(program)) for program in programs}
    taken = [
        _sample(chance, name, number, passes[name], scale)
        for number in range(samples)
        for name in programs
    ]
    known = {
        "traffic": {
            name: Traffic(*(float(chance.randrange(1, 10**9)) for _ in range(8)))
            for name in programs
        },
        "memory": {
            "page_bytes": 4096,
            "mapped": 1 << 21,
            "resident_bytes": 1 << 20,
            "huge_bytes": 0,
        },
        "steps": 3 if isinstance(point, Probe) else 0,
        "slices": chance.randrange(1, 9),
        "slice_bytes": chance.randrange(1 << 40),
        "footprint": float(chance.randrange(1 << 40)),
        "level": chance.choice(["L2", "L3", "DRAM"]),
        "max_abs_err": chance.random() / 1000,
        "began": 1767303845.5 + 100 * launch + chance.random(),
        "wall": 0.5 + chance.random(),
        "peak": chance.randrange(1 << 40),
    }
    return Record(launch, point, tuple(taken), **known | facts)


def _sample(chance, program, number, passes, scale):
    seconds = scale * 0.03 * chance.uniform(0.9, 1.1)
    shares = tuple(chance.random() for _ in range(chance.randrange(4)))
    disturbed = (
        chance.random(),
        chance.randrange(3),
        chance.randrange(3),
        chance.random() / 100,
        chance.randrange(2),
    )
    return Sample(program, number, passes, seconds, shares, *disturbed)


def failed(launch, point):
    return Record(
        launch, point, (), {}, {}, error="the worker ended with signal 11: it said\nnothing", part=1
    )


def visits(seed=1, points=POINTS, launches=3, **facts):
    """All launches, each in an order of its own."""
    chance = random.Random(seed)
    for launch in range(launches):
        yield from (
            visit(chance, launch, point, **facts) for point in chance.sample(points, len(points))
        )


def named(records):
    """As a run directory has them."""
    return [replace(record, run=RUN) for record in records]


def refused(error, *words):
    """One line and a hint, exit code 2."""
    assert error.exit_code == 2 and error.hint
    assert "\n" not in str(error)
    for word in words:
        assert word in str(error)
