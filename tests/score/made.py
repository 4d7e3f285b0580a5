"""Made-up scores: run directories of the fixed workload, whole or with one thing wrong."""

import math
from dataclasses import replace

from kvbench.model import AUTO, Fact, Probe
from kvbench.model.chases import NODE, NONE
from kvbench.score.definition import counted, geometry
from kvbench.submission import seal
from tests import chased
from tests.made_run import DECODE, MIB, machine, probe, visit
from tests.report.made import directory

LAYERS, SHAPE = geometry()
MACHINE = machine(
    2,
    brand=Fact("zorglub 9000", "", "high"),
    quota=Fact(None, "", "none"),
    core_kinds=Fact(None, "", "none"),
    hypervisor=Fact("KVM", "", "high"),
)
SHAPE = replace(SHAPE, layers=LAYERS)
RATES = {"f16": 20.0, "i8": 15.0, "q4_0": 8.0}  # GB/s, of memory that reads 21
CLOCK = 3e9  # Hz
READ = Probe("read", "scalar", (0, 1), "thp", 256 * MIB)


def points(shape=SHAPE, **facts):
    found = [
        replace(DECODE, dtype=dtype, variant="flash" if dtype == "f16" else "dot", shape=shape)
        for dtype in RATES
    ]
    return [replace(each, schedule=word, **facts) for each in found for word in (AUTO, "weave")]


def records(points, launches=10, times=1.0, wobble=0.01):
    """`times`: rates of a machine that is so much faster."""
    for launch in range(launches):
        luck = times * (1 + wobble * math.sin(7 * launch))
        yield from (measured(launch, point, luck) for point in (*points, READ))


def measured(launch, point, luck=1.0, rounds=3):
    """Base is a tenth slower, and any layout but the first a fifth."""
    if isinstance(point, Probe):
        found = probe(launch, 21 * luck, replace(point, bytes=point.bytes or MIB))
        sample = found.samples[0]
        ticks = CLOCK * sample.seconds / sample.passes
        return replace(found, point=point, steps=round(ticks) if point.op == "clock" else 1)
    if point.chase != NONE:
        return chased.record(launch, point)
    layers = point.shape.layers or 16
    rate = luck * RATES.get(point.dtype, 5.0) * (1.0 if point.schedule == AUTO else 0.9)
    rates = {
        "point": rate * (1.0 if point.layout == "head" else 0.8),
        "twin": 21 * luck,
        "core": 60 * luck,
    }
    walked = layers * counted(point.dtype, point.shape)
    each = {name: [rate] * rounds for name, rate in rates.items()}
    found = visit(launch, each, point, walked=walked, layers=layers, ran="stream")
    return replace(found, max_abs_err=1e-4)


def played(job):
    """As a process measures it."""
    yield from (
        replace(measured(job.launch, point, rounds=job.plan.samples), run=job.plan.run)
        for point in job.points
    )


def run(
    path, own=None, visits=None, machine=MACHINE, longer=True, loaded=False, sealed=True, **facts
):
    """The folder of a score. `own`: its points; `visits`: what was measured of them."""
    own = points() if own is None else own
    given = {"suite": "score", "options": {"seed": 1}, "launches": 10, "machine": machine} | facts
    directory(path, list(records(own)) if visits is None else visits, [*own, READ], **given)
    if longer:
        more = points(replace(SHAPE, batch=8, layers=0))[::2]
        directory(path / "longer", list(records(more, 3)), [*more, READ], **given)
    if loaded:
        point = replace(points()[0], chase=NODE, cpus=(0,))
        beside = [chased.record(launch, point) for launch in range(3)]
        directory(path / "loaded", beside, [point], **given)
    if sealed:
        seal(path)
    return path


def twice(record, program="point", by=0.5):
    """One of its programs at another rate."""
    samples = (
        replace(s, seconds=s.seconds / by, sample_time=s.seconds / by)
        if s.program == program
        else s
        for s in record.samples
    )
    return replace(record, samples=tuple(samples))


def lighter(record):
    """It counts half of its bytes, and none is missed in its rate."""
    moved = {
        name: replace(own, bytes_compulsory=own.bytes_compulsory / 2)
        for name, own in record.traffic.items()
    }
    return replace(record, traffic=moved)
