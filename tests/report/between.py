"""A shipped run, to which decodes of a layer in L3 are added between whose passes other memory was
read. Their times are planted: in each round a share of the way from memory to the layer's own.
"""

from dataclasses import replace

import numpy as np

from kvbench.model import ROTATED
from kvbench.model.program import ALONE
from kvbench.results import load
from kvbench.suite.models import layer_weights
from tests.report.made import directory

MODEL = "llama-3-8b"
SHARES = (0.25, 0.5, 1.0, 2.0)  # of L3, that are read in between
NOISE = 0.02  # of a launch, beside that of its rounds


def planted(path, run, left, also=()):
    """`left`: share of the gain that is left, by the bytes in between. `also`: bytes after which
    nothing is.
    """
    run = load(run)
    own = [record for record in run.records if not getattr(record.point, "between", 0)]
    base = next(r.point for r in own if ROTATED in r.traffic and _usual(r.point))
    rng, more = np.random.default_rng(3), []
    for record in own:
        if record.point == base and record.complete:
            for count, share in {**left, **dict.fromkeys(also, 0.0)}.items():
                more.append(_member(record, count, share, np.exp(rng.normal(0, NOISE))))
    records = [*own, *more]
    facts = {
        "models": run.manifest.models,
        "launches": 1 + max(record.launch for record in records),
    }
    points = list(dict.fromkeys(record.point for record in records))
    return directory(path, records, points, machine=run.machine, checks=run.checks, **facts)


def _usual(point):
    shape = point.shape
    return (point.layout, point.dtype, shape.kv_heads, point.threads) == ("head", "f16", 8, 2)


def _member(record, count, share, noise):
    rotated = {s.round: s.seconds / s.passes for s in record.samples if s.program == ROTATED}
    own = [s for s in record.samples if s.program == "point"]
    new = []
    for sample in own:
        each = sample.seconds / sample.passes
        far = rotated.get(sample.round, each)
        gain = 1 + share * (far / each - 1)  # what is left of it
        seconds = far / gain * noise * sample.passes
        new.append(replace(sample, seconds=seconds, sample_time=seconds))
    alone = [replace(sample, program=ALONE) for sample in own]
    others = [s for s in record.samples if s.program != "point"]
    return replace(
        record,
        point=replace(record.point, between=count),
        samples=(*new, *alone, *others),
        traffic=record.traffic | {ALONE: record.traffic["point"]},
        tails={},
    )


def shares_of(l3):
    """A gain that falls with what is read in between."""
    kept = (0.8, 0.4, 0.0, 0.0)
    return {int(share * l3): left for share, left in zip(SHARES, kept, strict=True)}


def weights():
    return layer_weights(MODEL, "q4_0")
