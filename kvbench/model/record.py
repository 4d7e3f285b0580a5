"""What was measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median, quantiles
from typing import Annotated, Self, TypeGuard

from msgspec import Meta

from kvbench.model.annotated import Count, Number, Positive, Size, Timed
from kvbench.model.hardware import Traffic
from kvbench.model.point import Point, Probe, Visited
from kvbench.model.program import NEIGHBOUR, PLAIN
from kvbench.model.tuning import Tuned

# seconds: where a pass takes less, much of its own time is how threads meet at its end
STEP = 20e-6
MANY = 100  # passes: of fewer nobody knows what 99 % do not exceed
# times as long as another: judgement. A stall, or waking the threads, weighs little in one of the
# two
LENGTHS = 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed measurement of a program: `passes` passes in `seconds`, which were meant to be
    about `asked` (0: nothing was). A round measures every program once.

    What disturbed it: `skew`, how much longer the slowest thread worked than all on average;
    involuntary context `switches` and page `faults` of the team; `steal`, seconds that a hypervisor
    took from the team's CPUs; `throttled`, how often a quota or the heat stopped them.
    """

    program: str
    round: Count
    passes: Size
    seconds: Timed
    pass_seconds: tuple[Number, ...]
    skew: Number
    switches: Count
    faults: Count
    steal: Number = 0.0
    throttled: Count = 0
    asked: Number = 0.0

    @property
    def off(self) -> bool:
        """Whether it is not as long as it was meant to be."""
        return self.asked > 0 and not alike(self.seconds, self.asked)

    @property
    def one_by_one(self) -> bool:
        """Whether its passes are to be told apart: those of the point, alone or beside a neighbour,
        where they are long.
        """
        return self.program in ("point", NEIGHBOUR) and self.seconds >= STEP * self.passes


@dataclass(frozen=True, slots=True)
class Tail:
    """Passes of a program in a visit, timed one by one: how many, their median, and what 99 % do
    not exceed. Where there are too few for that, `seconds` are all of them: those of several
    launches together may be enough.
    """

    passes: Size
    p50: Number
    p99: Number | None
    seconds: tuple[Number, ...] = ()

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        few = () if len(seconds) >= MANY else tuple(round(each, 9) for each in seconds)
        return cls(len(seconds), median(seconds), most(seconds), few)


def most(seconds: Sequence[float]) -> float | None:
    """What 99 % do not exceed; None where they are too few."""
    return quantiles(seconds, n=100, method="inclusive")[98] if len(seconds) >= MANY else None


def tails(samples: Iterable[Sample]) -> dict[str, Tail]:
    """By program; of those whose samples all have the seconds of their passes."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for sample in samples:
        if sample.program in ("point", NEIGHBOUR):
            found.setdefault(sample.program, []).append(
                sample.pass_seconds if sample.one_by_one else ()
            )
    return {
        name: Tail.of(list(chain.from_iterable(each))) for name, each in found.items() if all(each)
    }


def alike(one: float, other: float) -> bool:
    """Whether two lengths are near enough for what happens in them to be compared."""
    return max(one, other) <= LENGTHS * min(one, other)


def quotients(samples: Iterable[Sample], others: Iterable[Sample]) -> list[float]:
    """The time of a pass over that of the others', of each round in which both samples are about as
    long as each other, against what they were meant to be.
    """
    beside = {other.round: other for other in others}
    pairs = ((sample, beside[sample.round]) for sample in samples if sample.round in beside)
    return [
        one.seconds / one.passes / (other.seconds / other.passes)
        for one, other in pairs
        if alike(one.seconds * (other.asked or 1.0), other.seconds * (one.asked or 1.0))
    ]


def several(paths: Iterable[str] | str | None) -> tuple[str, ...]:
    """Paths where one may stand alone, and "" or None for none."""
    if isinstance(paths, str):
        paths = (paths,)
    return tuple(filter(None, paths or ()))


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures. Every launch visits all points, `samples` samples of `sample_time`
    seconds each time.
    """

    points: tuple[Visited, ...]
    launches: Size
    samples: Size
    sample_time: Positive
    seed: Count
    # which run it is; its records bear the name, and are compared with no other run's
    run: str = ""
    patience: Positive = 300.0  # seconds without a sign of life after which a visit has hung
    library: str = ""  # path of the kernels' library; the installed one where none is named
    plugin: (
        tuple[str, ...] | str
    ) = ()  # paths of plug-ins, whose kernels stand beside that library's; older runs have one
    foreign: tuple[str, ...] = ()  # their variants, whose points have processes of their own
    against: str = ""  # path of a second library: then every visit is a duel of the two
    against_plugin: tuple[str, ...] | str = ()  # and of the plug-ins beside that
    # names of points that in a duel have `library` on both sides, loaded twice
    controls: tuple[str, ...] = ()
    # What earlier runs have seen, by class of points, as Tuned has it. None: nothing is tuned, and
    # who asks for no schedule has the default.
    tuning: dict[str, dict[str, tuple[Number, ...]]] | None = None
    chosen: dict[str, str] = field(default_factory=dict)  # schedules that stand already, by class
    neighbour: bool = False  # whether points are timed beside a neighbour too
    peers: dict[str, str] = field(default_factory=dict)  # engines that have a path of their own

    def __post_init__(self) -> None:
        for name in ("plugin", "against_plugin"):
            object.__setattr__(self, name, several(getattr(self, name)))

    def is_foreign(self, point: Visited) -> TypeGuard[Point]:
        """Whether its kernel is a plug-in's."""
        return isinstance(point, Point) and point.variant in self.foreign


@dataclass(frozen=True, slots=True)
class Job:
    """What one process does of a launch: all of it, or as a new `part` what a process before it
    left undone.
    """

    plan: Plan
    launch: Count
    part: Count
    points: tuple[Visited, ...]
    # a folder where the run's processes leave each other what answers are checked against
    references: str
    # time.monotonic() at which it is ended, whatever it is at; None: it has all the time
    until: Number | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One visit of a point, in a launch or by itself: all samples, or what went wrong.

    The point's program is "point", beside its witnesses and PACE. A decode has "twin" (plain
    reads), "twin_ahead" (in its own schedule) and "core"; a plug-in's has "ceiling" in all forms,
    too; a store has "copy" and "copy_nt". The PLAIN form of a probe is "point", others have the
    form's name. A slice in L3 has plain reads of it and of memory, "slice" and "memory", and
    "rotated": the same kernel on slices in memory. "neighbour" is the point while other cores
    stream memory, where that was asked for and there are such. A peer's "point" is its own, beside
    our twins; ours has "again" there. In a duel the programs are "base" and "head". A witness of
    the installed library's is timed after each, "beside_base" and "beside_head", and the one value
    in a sample's `pass_seconds` is their lower quartile.
    """

    launch: Count
    point: Visited
    samples: tuple[Sample, ...]
    traffic: dict[str, Traffic]  # of one pass, by program
    memory: dict[str, Count]  # as Arena.inspect()
    steps: Count = 0  # of one pass of a probe
    layers: Count = 0  # slices in rotation
    slice_bytes: Count = 0
    # bytes of all slices, where passes go on along them, as appends do; older ones stay at one
    # place
    along: Count = 0
    max_abs_err: Number = 0.0
    error: str = ""
    short: bool = False  # whether the error is a want of memory, which may pass
    part: Count = 0
    began: Annotated[float, Meta(ge=0, le=1e11)] = 0.0  # seconds since 1970
    # seconds that the visit took, with memory and checks
    wall: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    peak: Count = 0  # bytes that its process has held at most, so far
    schedule: str = ""  # the one that ran, by its name; empty where none does
    # by program: the point, and the point beside a neighbour
    tails: dict[str, Tail] = field(default_factory=dict)
    neighbour: Number = 0.0  # GB/s that the neighbour read meanwhile
    # what was measured to choose schedules, for classes that were new
    tuned: tuple[Tuned, ...] = ()
    run: str = ""
    core_level: str = ""  # the cache that the core roof's data stays in
    overhead: Number = 0.0  # of a peer: seconds of a step where there is next to nothing to read
    # QK, softmax, PV of one that is profiled; empty where the op has none
    stage_share: tuple[Number, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the point has samples."""
        return not self.error and any(sample.program == "point" for sample in self.samples)

    def footprint(self, program: str) -> float:
        """Bytes that a point's program walks."""
        return self.along or self.layers * self.traffic[program].line


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a probe reached in run `run` in one `form`: GB/s (flops and dots: GFLOP/s, latency: ns,
    clock: GHz).

    `median` is of the launches' medians, of which `low` and `high` are two; `samples` are all, by
    launch.
    """

    run: str
    probe: Probe
    level: str  # the regime of the footprint
    median: Number
    low: Positive
    high: Number
    samples: tuple[tuple[Number, ...], ...]
    stable: bool
    # share of the memory that is really on huge pages; None where there is no memory
    huge: Number | None
    form: str = PLAIN
