"""Records of a made-up run on a made-up machine, for tests of what is made of them."""

from dataclasses import replace

from kvbench.model import Cpu, DataCache, Machine, Point, Probe, Record, Sample, Shape, Traffic

KIB, MIB, GIGA = 1 << 10, 1 << 20, 10**9
MACHINE = Machine(
    tuple(Cpu(cpu, cpu, 0, 0, 0) for cpu in range(4)),
    tuple(range(4)),
    (
        *(DataCache(1, 32 * KIB, (cpu,)) for cpu in range(4)),
        *(DataCache(2, MIB, (cpu,)) for cpu in range(4)),
        DataCache(3, 32 * MIB, tuple(range(4))),
    ),
    (),
    {},
    (),
    "",
    "",
)
DECODE = Point(
    op="decode",
    variant="flash",
    layout="head",
    dtype="f16",
    isa="scalar",
    shape=Shape(layers=0, batch=1, q_heads=8, kv_heads=2, head_dim=64, context=1024, capacity=1024, window=0),
    cpus=(0, 1),
    pages="thp",
    residency="rotate",
    schedule="off",
    scale="f32",
    inner="head",
    block_tokens=16,
    shuffle=None,
    pad=None,
    deterministic=False,
)
STORE = replace(DECODE, op="bulk", variant="-")
READ = Probe("read", "scalar", (0, 1), "thp", 256 * MIB)
RUN = "mine"


def traffic(compulsory, flops=0.0):
    ai = flops / compulsory if compulsory else 0.0
    return Traffic(flops, compulsory, issued=7.0, line=compulsory, kv=compulsory, scales=0, table=0, ai=ai)


def visit(launch, rates, point=DECODE, *, walked=256 * MIB, layers=16, passes=4, flops=0.0, memory=None, **facts):
    """`rates`: GB/s of each round, by program. `walked` bytes of `layers` slices; witnesses move a tenth less. All samples
    are as long as they were meant to be."""
    counts = {name: walked / layers * (1.0 if name == "point" else 0.9) for name in rates}
    samples = [
        Sample(name, number, passes, seconds, (), 0.01, 0, 0, asked=seconds)
        for name, each in rates.items()
        for number, rate in enumerate(each)
        for seconds in [counts[name] * passes / (rate * GIGA)]
    ]
    moved = {name: traffic(count, flops if name == "point" else 0.0) for name, count in counts.items()}
    facts |= {"layers": layers, "slice_bytes": 4096, "run": RUN}
    return Record(launch, point, tuple(samples), moved, memory or {}, **facts)


def probe(launch, rate, of=READ):
    """`rate`: GB/s, or GFLOP/s."""
    flops = 1e9 if of.op == "flops" else 0.0
    seconds = (flops or of.bytes) / (rate * GIGA)
    taken = Sample("point", 0, 1, seconds, (), 0.0, 0, 0)
    return Record(launch, of, (taken,), {"point": traffic(0.0 if flops else float(of.bytes), flops)}, {}, run=RUN)


def failed(launch, point=DECODE, error="the worker ended with signal 11", **facts):
    return Record(launch, point, (), {}, {}, error=error, run=RUN, **facts)
