"""Records of made-up duels, and a worker that plays them: for tests of what a gate makes of
them.
"""

import random
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

from kvbench.gate import gate
from kvbench.gate.kernels import rivals
from kvbench.model import SIDES, Record, Sample
from kvbench.regime import classify
from tests.made_run import DECODE, MACHINE, MIB, STORE, traffic

PROGRAMS = tuple(f"{beside}{side}" for side in SIDES for beside in ("", "beside_"))
LAYOUTS, DTYPES = ("head", "position", "paged"), ("f32", "f16", "bf16", "i8")
POINTS = tuple(
    replace(DECODE, layout=layout, dtype=dtype, residency=residency)
    for layout in LAYOUTS
    for dtype in DTYPES
    for residency in ("hot", "evicted")
)
SLOW = "decode.flash.head.i8"
__all__ = ["DECODE", "MACHINE", "POINTS", "SLOW", "STORE", "duel", "outcome", "player", "slower"]


def duel(launch, pairs, point=DECODE, *, layers=1, switches=(), steal=(), **facts):
    """`pairs`: seconds of a pass, by program or as (base, head) beside witnesses of a millisecond.
    `switches`, `steal`: numbers of pairs that were disturbed so.
    """
    samples = []
    for number, pair in enumerate(pairs):
        seconds = pair if isinstance(pair, dict) else dict(zip(SIDES, pair, strict=True))
        for name in PROGRAMS:
            own = seconds.get(name, 1e-3)
            hit = {"switches": int(number in switches), "steal": 0.01 * (number in steal)}
            samples.append(Sample(name, number, 4, own * 4, (own,), 0.01, faults=0, **hit))
    moved = {name: traffic(float(MIB)) for name in PROGRAMS}
    footprint, evicted = float(MIB * layers), point.residency == "evicted"
    level = classify(MACHINE, point.cpus, footprint, evicted=evicted).word
    facts = {"slices": layers, "footprint": footprint, "level": level} | facts
    return Record(launch, point, tuple(samples), moved, {}, **facts)


def slower(share, pattern=SLOW):
    """A ratio for player(): head takes longer by this share, at points whose names begin so."""
    return lambda point, side: (
        1 + share if side == "head" and point.name.startswith(pattern) else 1.0
    )


def player(ratio=lambda point, side: 1.0, noise=0.01, beside=lambda point, side: 1.0):
    """An executor of jobs. `ratio`: how much longer a side takes, but a control's, whose sides are
    one; `noise`: of a sample, as a share of it.
    """

    def execute(job):
        for point in job.points:
            dice = random.Random(zlib.crc32(f"{job.plan.seed}/{job.launch}/{point.name}".encode()))
            shares = {
                side: ratio(point, "base" if point.name in job.plan.controls else side)
                for side in SIDES
            }
            shares |= {f"beside_{side}": beside(point, side) for side in SIDES}
            pairs = [
                {
                    name: 1e-3 * share * dice.lognormvariate(0, noise)
                    for name, share in shares.items()
                }
                for _ in range(job.plan.samples)
            ]
            yield duel(job.launch, pairs, point)

    return execute


def outcome(base, head, asked, budget=240.0, out=None, execute=None):
    """A gate of two builds of our kernels, in which nothing is measured."""
    with tempfile.TemporaryDirectory() as folder:
        return gate(rivals(base, head, asked, Path(folder)), budget, out, execute=execute)
