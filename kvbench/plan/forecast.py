"""How long a sweep takes and how much memory, before anything is measured. Its rates are assumed, and said to be."""

from collections.abc import Iterable
from dataclasses import dataclass

from kvbench.model import Point
from kvbench.plan.needs import Needs
from kvbench.plan.sweep import Sweep
from kvbench.units import GB

FILL = 1.0 * GB  # bytes/s that one thread fills: random rows, on pages touched for the first time
FILLERS = 8  # threads that fill faster than fewer do
READ = 10.0 * GB  # bytes/s of a walk, all threads
START = 0.5  # seconds until a fresh process measures
CALIBRATION = 0.5  # samples, to find out how many passes fill one
EVICTED = 2.0  # by the wall: the untimed sweeps take as long as what lies between them


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds of the whole run, and of them inside timed samples; the point that needs most memory, where any is."""

    seconds: float
    timed: float
    largest: Point | None
    memory: int


def forecast(sweep: Sweep) -> Forecast:
    plan, needs = sweep.plan, sweep.needs
    timed = sum(plan.samples * 2 * _sample(point, needs[point], plan.seconds) for point in plan.points)
    beside = sum(2 * _beside(point, needs[point], plan.seconds, plan.samples) for point in plan.points)
    launch = START + timed + beside + _filling(plan.points, needs)
    largest = max(plan.points, key=lambda point: needs[point].memory, default=None)
    memory = needs[largest].memory if largest else 0
    return Forecast(plan.launches * launch, plan.launches * timed, largest, memory)


def _walk(needs: Needs) -> float:
    return needs.walked * needs.layers / READ


def _sample(point: Point, needs: Needs, seconds: float) -> float:
    """A sample is one round over all slices at least."""
    return max(seconds, _walk(needs))


def _beside(point: Point, needs: Needs, seconds: float, samples: int) -> float:
    """The untimed pass before each sample, calibration, and what evicting takes."""
    sweeps = (EVICTED - 1) * samples * seconds if point.residency == "evicted" else 0.0
    return CALIBRATION * _sample(point, needs, seconds) + samples * needs.walked / READ + sweeps


def _filling(points: Iterable[Point], needs: dict[Point, Needs]) -> float:
    """Points that differ only in how they walk share their memory."""
    arenas = {
        _arena(point, needs[point]): needs[point].slice_bytes
        * needs[point].layers
        / FILL
        / min(len(point.cpus), FILLERS)
        for point in points
    }
    return sum(arenas.values())


def _arena(point: Point, needs: Needs) -> tuple[object, ...]:
    facts = (point.layout, point.dtype, point.scale, point.inner, point.block_tokens, point.shuffle, point.pad)
    shape = point.shape
    tokens = (shape.kv_heads, shape.head_dim, shape.batch, shape.context, shape.capacity)
    return (facts, tokens, point.cpus, point.pages, needs.layers, point.op)
