"""Run directories of made-up runs that have something for every part of a report, and of such as
lack most of it.
"""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from zlib import crc32

from kvbench.analysis.measured.machines import profile
from kvbench.model import (
    Check,
    Contrast,
    Fact,
    Machine,
    Member,
    Point,
    Probe,
    Record,
    Tuned,
    choose,
)
from kvbench.model.contrast import KERNEL, value
from kvbench.model.tuning import called
from kvbench.store import RunDirectory, plain
from tests.made_run import DECODE, KIB, MACHINE, MIB, RUN, failed, probe, visit
from tests.store.made import manifest

# What must not leave the house is easily found: all of it has this word.
SECRET = "zorglub"
NAMED = replace(
    MACHINE,
    facts={
        "brand": Fact(f"{SECRET} 9000 64-Core", "/proc/cpuinfo", "high"),
        "vendor": Fact(f"Genuine{SECRET}", "/proc/cpuinfo", "high"),
        "microcode": Fact(f"0x{SECRET}", "/proc/cpuinfo", "high"),
        "kernel": Fact(f"6.1-{SECRET}", "/proc/sys/kernel/osrelease", "high"),
        "command_line": Fact(f"quiet root=/dev/{SECRET}", "/proc/cmdline", "high"),
        "sockets": Fact(1, f"override: {SECRET}", "high"),
        "l3": Fact(
            32 * MIB, f"override: parts/{SECRET}.toml", "high", f"not as {SECRET} 9000 64-core says"
        ),
        "dram_peak": Fact(
            None, "dmidecode", "none", f"no permission for /opt/{SECRET}/dmi, nor ../{SECRET}"
        ),
    },
    warnings=(f"the clock of a {SECRET} 9000 64-Core is in doubt, see ~/{SECRET}.txt",),
    fingerprint="f00d",
    environment="cafe",
)
CHECKS = (
    Check(
        "load", "warn", f"1.5 by /home/{SECRET}/job on {SECRET}-7", "it takes bandwidth", "stop it"
    ),
    Check("other tasks", "ok", "these CPUs busy 2% of the time", "they share the caches"),
    Check("steal", "ok", "0.1% of the time now", "a thread stands still"),
)
SECRETS = {
    "command": (
        f"/home/me/{SECRET}/kvbench sweep {SECRET}.toml --out {SECRET} --library=x/{SECRET}.so"
    ),
    "options": {"suite": f"/home/me/{SECRET}.toml", "library": f"lib/{SECRET}.so", "seed": 7},
    "suite": SECRET,
    "versions": {
        "kvbench": "0.1",
        "hostname": f"{SECRET}-7.example",
        "platform": f"Linux-{SECRET}",
        "cpu_model_name": SECRET,
    },
}

LEAK = (
    f"cannot open /opt/{SECRET}/x.so: lib/{SECRET}/core.c:12 said\nno, ./{SECRET}; on"
    f" {SECRET}-7.example"
)

WIDE = {"f32": 4, "f16": 2, "i8": 1}  # bytes of an element
LAYOUTS, CONTEXTS, CPUS = ("head", "paged"), (1024, 16384, 65536), ((0,), (0, 1, 2, 3))
FASTER = 4.0  # times as fast from L3
# it is faster than all that should bound it
CHEAT = replace(DECODE, layout="paged", dtype="f32", cpus=CPUS[-1])
READS = [
    Probe("read", "scalar", cpus, "thp", count)
    for cpus in CPUS
    for count in (512 * KIB, 8 * MIB, 256 * MIB)
]
PROBES = [
    *READS,
    *(Probe(op, "scalar", cpus, "thp", 256 * MIB) for op in ("copy", "copy_nt") for cpus in CPUS),
    *(Probe("flops", "scalar", cpus, "thp", 0) for cpus in CPUS),
]


def decodes(
    contexts: Sequence[int] = CONTEXTS, variants: Sequence[str] = ("flash",)
) -> list[Point]:
    return [
        replace(DECODE, layout=layout, dtype=dtype, cpus=cpus, residency=residency, variant=variant,
                shape=replace(DECODE.shape, context=context, capacity=context))
        for layout in LAYOUTS for dtype in WIDE for context in contexts for cpus in CPUS
        for residency in ("rotate", "hot") for variant in variants
    ]  # fmt: skip


def stores() -> list[Point]:
    return [
        replace(DECODE, op=op, variant=variant, layout=layout, cpus=CPUS[1])
        for layout in LAYOUTS
        for op, variant in (("append", "-"), ("bulk", "plain"), ("bulk", "nt"))
    ]


def measured(launch: int, of: Point | Probe | Contrast, rounds: int = 3) -> Record:
    """Threads add up to a limit; launches differ by a few percent, and by far for some points."""
    if isinstance(of, Contrast):
        return side_by_side(launch, of, rounds)
    threads = len(of.cpus)
    chance = crc32(f"{of.name}{launch}".encode())
    luck = (0.5 if chance % 97 == 0 else 1.0) * (1 + 0.04 * math.sin(chance))
    if isinstance(of, Probe):
        near = 2 * FASTER if of.bytes < MIB else FASTER if of.bytes < 16 * MIB else 1.0
        rate = luck * (400.0 * threads if of.op == "flops" else near * min(20.0, 8.0 * threads))
        ahead = {"ahead": 1.01 * rate} if of.op == "read" else {}
        return replace(probe(launch, rate, of, **ahead), steps=1)
    shape, wide = of.shape, WIDE.get(of.dtype, 1)
    each = 2 * shape.kv_heads * shape.head_dim * shape.context * wide
    layers = 1 if of.residency == "hot" else max(2, math.ceil(256 * MIB / each))
    far = layers * each > 16 * MIB
    reads = luck * min(20.0, 8.0 * threads) * (1.0 if far else FASTER)
    if of.op == "decode":
        core = luck * wide * 5.0 * threads
        rate = 40.0 if of == CHEAT else (reads**-4 + core**-4) ** -0.25
        rates = {"point": rate, "twin": reads, "twin_ahead": 0.95 * reads, "core": core}
    else:
        rates = {"point": 0.7 * reads, "copy": reads, "copy_nt": 1.2 * reads}
    flops = 4.0 * shape.q_heads * shape.head_dim * shape.context if of.op == "decode" else 0.0
    wobbling = {
        name: [rate * (1 + 0.01 * number) for number in range(rounds)]
        for name, rate in rates.items()
    }
    found = visit(launch, wobbling, of, walked=layers * each, layers=layers, flops=flops)
    moved = {
        name: replace(traffic, bytes_issued=traffic.bytes_compulsory)
        for name, traffic in found.traffic.items()
    }
    own = {"ran": "stream", "tuned": () if launch else (tuned(of),)}
    return replace(found, traffic=moved, **(own if of.op == "decode" else {}))


def side_by_side(launch: int, of: Contrast, rounds: int) -> Record:
    each = {value(point, of.factor): measured(launch, point, rounds) for point in of.points}
    line = of.factor == KERNEL  # whose points have their witnesses with them
    programs = {
        (name, program): name if program == "point" else f"{program}/{name}"
        for name, record in each.items()
        for program in record.traffic
        if line or program == "point"
    }
    samples = tuple(
        replace(sample, program=programs[name, sample.program])
        for name, record in each.items()
        for sample in record.samples
        if (name, sample.program) in programs
    )
    moved = {word: each[name].traffic[program] for (name, program), word in programs.items()}
    facts = [field.name for field in fields(Member)]
    members = {
        name: Member(**{fact: getattr(record, fact) for fact in facts})
        for name, record in each.items()
    }
    return Record(launch, of, samples, moved, {}, members=members if line else {})


def tuned(of: Point) -> Tuned:
    """All classes are read a quarter faster so."""
    where = f"{of.threads} threads", of.residency
    parts = of.isa, f"{of.variant}.{of.dtype}", of.layout, "d<=64", "g<=4", *where
    rounds = {"weave": (0.0,) * 9, "stream": (-0.22,) * 9}
    return Tuned(called(parts), parts, choose(rounds, "weave"), rounds)


def whole(points: Sequence[Point | Probe], launches: int = 7) -> list[Record]:
    return [measured(launch, point) for launch in range(launches) for point in points]


RICH = [*decodes(), *stores(), *PROBES]

FAST, SLOW, DEAD = (replace(DECODE, engine=name) for name in ("fast", "slow", "dead"))


def beside(times: dict[Point, float], launches: int = 6, **facts: object) -> list[Record]:
    """Other engines in the rounds of ours, which reaches 80 % of a read. `times`: how long each
    takes, over ours. `facts`: of all points.
    """
    read = [10.0, 10.0]
    return [
        visit(launch, {"point": [8.0 / each] * 2, "twin": read}, replace(point, **facts))
        for launch in range(launches)
        for point, each in {DECODE: 1.0, **times}.items()
    ]


def lost(point: Point, launches: int = 6) -> list[Record]:
    """An engine that has said nothing."""
    error = f"the peer {point.engine}: no sign of life for 60 s: it hangs"
    return [failed(launch, point, error) for launch in range(launches)]


# Runs that have little to show, each with what its report must say is missing.
ONE = [DECODE]
BARE: dict[str, tuple[list[Record], list[Point | Probe], int, tuple[str, ...]]] = {
    "nothing visited": (
        [],
        [*ONE, *PROBES],
        3,
        ("None of 1 point was measured", "To go on: kvbench sweep --out 'a b' --resume"),
    ),
    "one launch of three": (
        whole([*ONE, *PROBES], 1),
        [*ONE, *PROBES],
        3,
        ("1 of 3 planned launches gave", "One launch is too few"),
    ),
    "cut within a launch": (
        whole([*decodes()[:4], *PROBES], 3)[:-14],
        [*decodes()[:4], *PROBES],
        3,
        ("10 of 12 visits are done",),
    ),
    "a point never visited": (
        whole([*ONE, *PROBES], 1),
        [*decodes()[:2], *ONE, *PROBES],
        1,
        ("2 points were never measured",),
    ),
    "one point": (whole(ONE), ONE, 7, ("No ceiling was measured",)),
    "all failed": (
        [failed(n, point) for n in range(2) for point in ONE],
        ONE,
        2,
        ("Every point failed in every launch", "signal 11"),
    ),
    "everything failed": (
        [failed(n, point) for n in range(2) for point in (*ONE, READS[-1])],
        [*ONE, READS[-1]],
        2,
        ("Every point failed", "No ceiling was measured"),
    ),
    "probes alone": (whole(PROBES), list(PROBES), 7, ("The suite has no points",)),
    "no ceilings": (
        whole([*decodes()[:2], *stores()[:1]]),
        [*decodes()[:2], *stores()[:1]],
        7,
        ("No ceiling was measured",),
    ),
    "near ceilings alone": (
        whole([*ONE, *READS[:2]]),
        [*ONE, *READS[:2]],
        7,
        ("No read of memory was measured",),
    ),
    "a launch failed": (
        [*whole([*ONE, *READS], 6), failed(6)],
        [*ONE, *READS],
        7,
        ("1 point failed in some launches", "6 of 7 planned launches gave"),
    ),
}


def directory(
    path: Path,
    records: Sequence[Record],
    points: Sequence[Point | Probe],
    launches: int = 7,
    machine: Machine = NAMED,
    checks: Sequence[Check] = CHECKS,
    **facts: object,
) -> Path:
    """Such a run, as it stands on the disk."""
    facts = {"run": RUN, "created": "2026-01-02T03:04:05+00:00", "skips": ()} | facts
    with RunDirectory.create(path, manifest(points, launches, **facts)) as run:
        run.write_machine(plain(profile(machine, checks)))
        for record in records:
            run.append(replace(record, run=run.manifest.run))
    return path
