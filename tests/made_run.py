"""Records of a made-up run on a made-up machine, for tests of the analysis."""

from dataclasses import replace

from kvbench.model import (
    COMPUTE,
    Contrast,
    Cpu,
    DataCache,
    Machine,
    Member,
    Node,
    Point,
    Probe,
    Record,
    Sample,
    Shape,
    Traffic,
)
from kvbench.model.contrast import KERNEL, value
from kvbench.regime import classify

KIB, MIB, GIGA = 1 << 10, 1 << 20, 10**9


def machine(
    cores, *, l1=32 * KIB, l2=MIB, l3=32 * MIB, per_l2=1, per_l3=None, smt=1, nodes=1, **facts
):
    """A machine with `cores` equal cores. Second threads are numbered after all cores, as in Linux.
    l1, l2, l3: bytes of one cache.
    """
    share = cores // nodes
    cpus = tuple(
        Cpu(core + cores * n, core, 0, core // share, n)
        for n in range(smt)
        for core in range(cores)
    )

    def alike(each):
        groups = [range(first, min(first + each, cores)) for first in range(0, cores, each)]
        return [tuple(cpu.cpu for cpu in cpus if cpu.core in group) for group in groups]

    levels = ((1, l1, 1), (2, l2, per_l2), (3, l3, per_l3 or cores))
    caches = tuple(
        DataCache(level, size, own) for level, size, each in levels if size for own in alike(each)
    )
    homes = tuple(Node(n, own, 64 << 30) for n, own in enumerate(alike(share))) if nodes > 1 else ()
    return Machine(cpus, tuple(cpu.cpu for cpu in cpus), caches, homes, facts, (), "", "")


MACHINE = machine(4)
DECODE = Point(
    op="decode",
    variant="flash",
    layout="head",
    dtype="f16",
    isa="scalar",
    shape=Shape(
        layers=0, batch=1, q_heads=8, kv_heads=2, head_dim=64, context=1024, capacity=1024, window=0
    ),
    cpus=(0, 1),
    pages="thp",
    residency="rotate",
    schedule="off",
    scale="f32",
    inner="head",
    block_tokens=16,
    order=None,
    pad=None,
    deterministic=False,
)
STORE = replace(DECODE, op="bulk", variant="-")
READ = Probe("read", "scalar", (0, 1), "thp", 256 * MIB)
RUN = "mine"


def traffic(compulsory, flops=0.0):
    ai = flops / compulsory if compulsory else 0.0
    return Traffic(
        flops,
        compulsory,
        bytes_issued=7.0,
        bytes_line=compulsory,
        bytes_kv=compulsory,
        bytes_scales=0,
        bytes_table=0,
        ai=ai,
    )


def visit(
    launch,
    rates,
    point=DECODE,
    *,
    walked=256 * MIB,
    layers=16,
    passes=4,
    flops=0.0,
    memory=None,
    **facts,
):
    """A visit of a point. `rates`: GB/s of each round, by program. `walked`: bytes of `layers`
    slices; every program but twins moves 10 % less. All samples have the length that was aimed at.
    """
    counts = {
        name: walked / layers * (1.0 if name.startswith(("point", "twin")) else 0.9)
        for name in rates
    }
    samples = [
        Sample(name, number, passes, seconds, (), 0.01, 0, 0, sample_time=seconds)
        for name, each in rates.items()
        for number, rate in enumerate(each)
        for seconds in [counts[name] * passes / (rate * GIGA)]
    ]
    moved = {
        name: traffic(count, flops if name == "point" else 0.0) for name, count in counts.items()
    }
    evicted = isinstance(point, Point) and point.residency == "evicted"
    level = classify(MACHINE, point.cpus, walked, evicted=evicted).word
    facts = {"slices": layers, "slice_bytes": 4096, "footprint": walked, "level": level} | facts
    facts |= {"run": RUN}
    return Record(launch, point, tuple(samples), moved, memory or {}, **facts)


def probe(launch, rate, of=READ, **forms):
    """A visit of a probe. `rate`: GB/s or GFLOP/s; `forms` adds rates of other forms."""
    flops = 1e9 if of.op in COMPUTE else 0.0
    rates = {"point": rate} | forms
    taken = tuple(
        Sample(form, 0, 1, (flops or of.bytes) / (each * GIGA), (), 0.0, 0, 0)
        for form, each in rates.items()
    )
    moved = traffic(0.0 if flops else float(of.bytes), flops)
    return Record(launch, of, taken, dict.fromkeys(rates, moved), {}, run=RUN)


def beside(launch, of, times, factor="layout", passes=2):
    """A visit of a set. `times`: by point, the seconds of a pass in each round."""
    words = [value(point, factor) for point in of]
    samples = tuple(
        Sample(word, n, passes, each * passes, (), 0.0, 0, 0, sample_time=each * passes)
        for word, rounds in zip(words, times, strict=True)
        for n, each in enumerate(rounds)
    )
    moved = dict.fromkeys(words, traffic(16.0 * MIB))
    far = Member(16, 4096, 256.0 * MIB, "DRAM", {}, "off", "", 0.0)
    members = dict.fromkeys(words, far) if factor == KERNEL else {}
    return Record(launch, Contrast(factor, of), samples, moved, {}, run=RUN, members=members)


def failed(launch, point=DECODE, error="the worker ended with signal 11", **facts):
    return Record(launch, point, (), {}, {}, error=error, run=RUN, **facts)
