"""Points for experiments, timed in this process, all in the same rounds: what slows a round down slows all alike, and so
the ratio of two tells more than either time. Every answer is checked."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from kvbench.analysis.launches import Estimate
from kvbench.errors import BadArgument, Refused, WrongAnswer
from kvbench.lab.experiment import Asked
from kvbench.machine import available_memory
from kvbench.model import DEFAULTS, HEADS, POINT, SHAPE, Point, Sample, Shape
from kvbench.native import Cache, Team
from kvbench.oracle import attention, tolerance, whole
from kvbench.plan import needs_here
from kvbench.plan.needs import PROCESS
from kvbench.suite import model as geometry
from kvbench.units import counted, size
from kvbench.worker.answers import Answer, Answers, taken
from kvbench.worker.bench import Bench
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program, rounds
from kvbench.worker.room import Room

BUDGET = 40.0  # seconds that what an experiment does again and again may take
_SLICES = 4096  # of a point in rotation, at most


def point(asked: Asked, model: str, context: int, **facts: Any) -> Point:
    """A decode of one layer of a model. `facts`: fields of a point or a shape that are to differ from the usual."""
    known = geometry(model)
    usual = DEFAULTS | {name: getattr(known, name) for name in HEADS} | {"context": context, "capacity": context}
    usual |= {"variant": "flash", "isa": asked.isa, "cpus": asked.cpus}
    shape, own = ({field.name: usual[field.name] for field in fields} for fields in (SHAPE, POINT))
    shape |= {name: facts.pop(name) for name in tuple(facts) if name in shape}
    return Point(**own | facts, shape=Shape(**shape))


def refuse_impossible(asked: Asked, *grounds: Sequence[Point]) -> None:
    """Before any time is spent. `grounds`: the points that take turns on each, where all of these are held at once."""
    needed = [needs_here(points, asked.machine) for points in grounds]
    for each, own in (item for ground in needed for item in ground.items()):
        refuse_crumbs(each.shape.context, own.layers)
    beside = max(own.beside for ground in needed for own in ground.values())
    held = sum(max(own.arena for own in ground.values()) for ground in needed)
    wanted, free = held + beside + PROCESS, available_memory()
    if wanted > free:
        raise Refused(
            f"the experiment needs {size(wanted)} of memory, {size(free)} are free", "a smaller --model or --context"
        )


def refuse_crumbs(context: int, slices: int) -> None:
    if slices > _SLICES:
        raise BadArgument(
            f"{counted(context, 'token')}: it takes {slices:,} such slices to leave the caches behind, and most of the time "
            "would go into making them",
            "more --context or --window, or a larger --model",
        )


# ---- the time there is -----------------------------------------------------------------------------------------------


def affordable(wanted: int, each: float, seconds: float = BUDGET, least: int = 1) -> int:
    """How many of so many things there is time for, where one has taken `each` seconds."""
    return min(wanted, max(least, int(seconds / max(each, 1e-9))))


def whole_rounds(samples: Iterable[Sample], wanted: int, least: int = 5) -> Iterator[Sample]:
    """All of them, or as many rounds as there is time for by what the first has taken."""
    start, count = perf_counter(), wanted
    for sample in samples:
        if sample.round == 0:
            count = affordable(wanted, perf_counter() - start, least=least)
        elif sample.round >= count:
            return
        yield sample


# ---- times -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beside:
    """`samples`: those of each program, by its name, round after round. Estimates are over the rounds.

    `moved`: compulsory bytes of a pass.
    """

    samples: dict[str, list[Sample]]
    moved: dict[str, float]

    def seconds(self, name: str) -> Estimate:
        """Of a pass."""
        return Estimate.of(self._passes(name))

    def rate(self, name: str) -> Estimate:
        """GB/s."""
        return self.seconds(name).of_bytes(self.moved[name])

    def times(self, name: str, other: str) -> Estimate:
        """How many times as long as the other it takes."""
        return Estimate.of([a / b for a, b in zip(self._passes(name), self._passes(other), strict=True)])

    def share(self, name: str, other: str) -> Estimate:
        """Of the other's GB/s."""
        each = self.moved[name] / self.moved[other]
        return Estimate.of([each * times for times in self.times(other, name).values])

    def skew(self, name: str) -> float:
        return median(sample.skew for sample in self.samples[name])

    def _passes(self, name: str) -> list[float]:
        return [sample.seconds / sample.passes for sample in self.samples[name]]


def beside(team: Team, programs: Sequence[Program], seed: int, count: int = 24, seconds: float = 0.005) -> Beside:
    """`count` rounds, about `seconds` for each sample."""
    taken: dict[str, list[Sample]] = {program.name: [] for program in programs}
    for sample in rounds(team, programs, count, seconds, seed):
        taken[sample.program].append(sample)
    return Beside(taken, {program.name: program.traffic().compulsory for program in programs})


# ---- programs --------------------------------------------------------------------------------------------------------


class Remembered(Answers):
    """Of an experiment's points: in its own memory, so that nothing is left behind where it is killed."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[object, Answer] = {}

    def of(self, point: Point, cache: Cache, q: np.ndarray) -> Answer:
        asked = (*taken(point, cache), point.scale, replace(point.shape, layers=0, capacity=0))
        if asked not in self._known:
            self._known[asked] = super().of(point, cache, q)
        return self._known[asked]


@contextmanager
def bench(point: Point, ground: Ground, answers: Answers) -> Iterator[Bench]:
    """The point, alone on that ground; its answers are checked before and after."""
    with Room(point, ground) as room, Bench(point, room, answers) as found:
        found.verify()
        yield found
        found.verify()


def of_twin(bench: Bench, seed: int) -> float:
    """The share of its twin's GB/s that a point reaches, of the faster of two forms."""
    own, twin, ahead, *_ = bench.programs
    taken = beside(bench.team, [own, twin, ahead], seed)
    faster = max((twin.name, ahead.name), key=lambda name: taken.rate(name).median)
    return taken.share(own.name, faster).median


def named(name: str, program: Program) -> Program:
    return replace(program, name=name)


def refuse_wrong(cache: Cache, q: np.ndarray, out: np.ndarray) -> None:
    """`out`: what a kernel has made of q and all tokens that the cache holds."""
    held = np.minimum(cache.lengths, cache.struct.capacity)
    k, v = cache.rows(0, int(held.max()), cache.library.isas()[0])
    error = float(np.abs(out - attention(q, whole(k, v), held)).max())
    if not error <= tolerance(float(np.abs(v).max()), int(held.max())):
        raise WrongAnswer(f"a {cache.layout} {cache.dtype} cache is decoded off by {error:.3g}", "run kvbench verify")
