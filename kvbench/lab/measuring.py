"""Points for experiments, timed in this process, all in the same rounds: what slows a round down slows all alike, so
that the ratio of two tells more than either time."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from kvbench.analysis.measured.launches import Estimate
from kvbench.errors import BadArgument, Refused, WrongAnswer
from kvbench.lab.experiment import Setup, refuse_too_large
from kvbench.model import DEFAULTS, HEADS, POINT, SHAPE, Point, Sample, Shape, quotients
from kvbench.native import Cache
from kvbench.oracle import attention, tolerance, whole
from kvbench.plan import needs_here
from kvbench.plan.needs import PROCESS
from kvbench.suite import model as geometry
from kvbench.units import GB, counted
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.loop import Program, rounds
from kvbench.worker.room import Room
from kvbench.worker.tuning import Tuner

_SLICES = 4096  # of a point in rotation, at most


def point(setup: Setup, model: str, context: int, **facts: Any) -> Point:
    """A decode of one layer of a model. `facts`: fields of a point or a shape that are to differ from the usual."""
    known = geometry(model)
    usual = DEFAULTS | {name: getattr(known, name) for name in HEADS} | {"context": context, "capacity": context}
    usual |= {"variant": "flash", "isa": setup.isa, "cpus": setup.cpus}
    shape, own = ({field.name: usual[field.name] for field in fields} for fields in (SHAPE, POINT))
    shape |= {name: facts.pop(name) for name in tuple(facts) if name in shape}
    return Point(**own | facts, shape=Shape(**shape))


def refuse_impossible(setup: Setup, held: Point) -> None:
    """Before any time is spent."""
    needed = needs_here([held], setup.machine)[held]
    if needed.layers > _SLICES:
        raise BadArgument(
            f"{counted(held.shape.context, 'token')}: {needed.layers:,} layers of that size would be needed to "
            "exceed the caches, which takes too long",
            "more --context, or a larger --model",
        )
    refuse_too_large(needed.memory + PROCESS)


def tuned(room: Room) -> str:
    """The schedule that is fastest for the room's point, chosen as a launch chooses it."""
    with Bench(room.point, room, Answers()) as bench:
        Tuner(room.ground.machine, {}).choose(bench)
        return bench.schedule


@dataclass(frozen=True, slots=True)
class Beside:
    """`samples`: those of each program, by its name, round after round. Estimates are over the rounds.

    `moved`: compulsory bytes of a pass.
    """

    samples: dict[str, list[Sample]]
    moved: dict[str, float]

    def rate(self, name: str) -> float:
        """GB/s."""
        return self.moved[name] / median(sample.seconds / sample.passes for sample in self.samples[name]) / GB

    def times(self, name: str, other: str) -> Estimate:
        """How many times as long as the other it takes."""
        if found := quotients(self.samples[name], self.samples[other]):
            return Estimate.of(found)
        what = f"no round has samples of {name} and {other} of the wanted length"
        raise Refused(what, "stop what else runs on this machine")

    def share(self, name: str, other: str) -> Estimate:
        """Its GB/s over the other's."""
        each = self.moved[name] / self.moved[other]
        return Estimate.of([each * times for times in self.times(other, name).values])

    def skew(self, name: str) -> float:
        return median(sample.skew for sample in self.samples[name])


def beside(programs: Sequence[Program], seed: int, count: int = 24, seconds: float = 0.005) -> Beside:
    """`count` rounds, about `seconds` for each sample."""
    taken: dict[str, list[Sample]] = {program.name: [] for program in programs}
    for sample in rounds(programs, count, seconds, seed):
        taken[sample.program].append(sample)
    return Beside(taken, {program.name: program.traffic().compulsory for program in programs})


def refuse_wrong(cache: Cache, q: np.ndarray, out: np.ndarray) -> None:
    """`out`: what a kernel has made of q and all tokens that the cache holds."""
    held = np.minimum(cache.lengths, cache.struct.capacity)
    k, v = cache.rows(0, int(held.max()), cache.library.isas()[0])
    error = float(np.abs(out - attention(q, whole(k, v), held)).max())
    if not error <= tolerance(float(np.abs(v).max()), int(held.max())):
        raise WrongAnswer(f"a {cache.layout} {cache.dtype} cache is decoded off by {error:.3g}", "run kvbench verify")
