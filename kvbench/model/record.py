"""What was measured."""

from dataclasses import dataclass

from kvbench.model.kernel import Traffic
from kvbench.model.point import Point, Probe


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed measurement of a program: `passes` passes in `seconds`. A round measures every program once."""

    program: str
    round: int
    passes: int
    seconds: float
    pass_seconds: tuple[float, ...]
    thread_seconds: tuple[float, ...]
    switches: int
    faults: int


@dataclass(frozen=True, slots=True)
class Visit:
    """All samples of a point and of what it is compared with, and what was found out about it on the way."""

    point: Point
    traffic: dict[str, Traffic]  # of one pass, by program
    samples: tuple[Sample, ...]
    stage_share: tuple[float, ...]  # QK, softmax, PV; empty where the op has none
    max_abs_err: float
    layers: int
    slice_bytes: int
    memory: dict[str, int]  # as Arena.inspect()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures. Every launch visits all points, `samples` samples of about `seconds` each time."""

    points: tuple[Point | Probe, ...]
    launches: int
    samples: int
    seconds: float
    seed: int
    run: str = ""  # which run it is; its records bear the name, and are compared with no other run's


@dataclass(frozen=True, slots=True)
class Record:
    """One visit of a point in a launch: all samples, or what went wrong."""

    launch: int
    point: Point | Probe
    samples: tuple[Sample, ...]
    traffic: dict[str, Traffic]  # of one pass, by program
    memory: dict[str, int]
    steps: int = 0  # of one pass of a probe
    error: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a probe reached in run `run`: GB/s (fma: GFLOP/s, latency: ns, clock: GHz).

    `median` is of the launches' medians, of which `low` and `high` are two; `samples` are all, by launch.
    """

    run: str
    probe: Probe
    level: str  # the regime of the footprint
    median: float
    low: float
    high: float
    samples: tuple[tuple[float, ...], ...]
    stable: bool
    huge: float | None  # share of the memory that is really on huge pages; None where there is no memory
