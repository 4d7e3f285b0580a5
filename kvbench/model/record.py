"""What was measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median, quantiles
from typing import Annotated, Self

from msgspec import Meta

from kvbench.grouping import grouped
from kvbench.model.annotated import Count, Moved, Number, Positive, Size, Timed
from kvbench.model.chases import Chase
from kvbench.model.hardware import Traffic
from kvbench.model.point import Probe, Visited
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
    about `sample_time` (0: nothing was). A round measures every program once.

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
    sample_time: Number = 0.0
    shares: tuple[Number, ...] = ()  # of a step: appends, decodes, weights
    load: Moved = 0.0  # GB/s that others moved meanwhile, where they were asked to
    # of a chase: seconds of a load, which half of its steps and 95 % of them do not exceed
    latency: tuple[Timed, ...] = ()

    @property
    def each(self) -> float:
        """Seconds of a pass."""
        return self.seconds / self.passes

    @property
    def off(self) -> bool:
        """Whether it is not as long as it was meant to be."""
        return self.sample_time > 0 and not alike(self.seconds, self.sample_time)

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
    found = grouped(
        (sample.program, sample.pass_seconds if sample.one_by_one else ())
        for sample in samples
        if sample.program in ("point", NEIGHBOUR)
    )
    return {
        name: Tail.of(list(chain.from_iterable(each))) for name, each in found.items() if all(each)
    }


def alike(one: float, other: float) -> bool:
    """Whether two lengths are near enough for what happens in them to be compared."""
    return max(one, other) <= LENGTHS * min(one, other)


def comparable(one: Sample, other: Sample) -> bool:
    """Whether both are about as long as each other, against what they were meant to be."""
    return alike(one.seconds * (other.sample_time or 1.0), other.seconds * (one.sample_time or 1.0))


def quotients(samples: Iterable[Sample], others: Iterable[Sample]) -> list[float]:
    """The time of a pass over that of the others', of each round in which both samples are
    comparable.
    """
    beside = {other.round: other for other in others}
    pairs = ((sample, beside[sample.round]) for sample in samples if sample.round in beside)
    return [one.each / other.each for one, other in pairs if comparable(one, other)]


@dataclass(frozen=True, slots=True)
class Member:
    """What a record has of one point of several: the fields of that name, as Record has them."""

    slices: Count
    slice_bytes: Count
    footprint: Number
    level: str
    memory: dict[str, Count]
    ran: str
    core_level: str
    max_abs_err: Number


@dataclass(frozen=True, slots=True)
class Record:
    """One visit of a point, in a launch or by itself: all samples, or what went wrong.

    The point's program is "point", beside its witnesses and PACE. A decode has "twin" (plain
    reads), "twin_ahead" (in its own schedule), "core" (likewise) and "core_off" (where that asks
    for something, the same with nothing asked for); a plug-in's has "ceiling" in all forms, too; a
    store has "copy" and "copy_nt". The PLAIN form of a probe is "point", others have the
    form's name. A slice in L3 has plain reads of it and of memory, "slice" and "memory", and
    "rotated": the same kernel on slices in memory; what lies in memory has "memory" alone.
    Where other bytes are read between passes, "alone" is the point without them; a decode then has
    no twins, and of a family all records have the first one's witnesses. A step has its
    parts, of all layers: "decodes", "appends" and "weights"; "memory" reads as many bytes.
    Where a thread chases, "idle", "spin", "idle_after", "spin_after" and "loaded_LOAD.SHARE" are
    the chase, see chases.py; passes are its steps, and `load` of a sample is the load's GB/s.
    "neighbour" is the point while other cores stream memory, where that was asked for and there are
    such. A peer's "point" is its own, beside our twins; ours has "again" there. In a duel the
    programs are "base" and "head". A witness of the installed library's is timed after each,
    "beside_base" and "beside_head", and the one value in a sample's `pass_seconds` is their lower
    quartile.

    Of a contrast the programs are the values of its factor. The fastest kernels of all dtypes have
    witnesses: "twin/i8", "twin_ahead/i8", "core/i8" and "core_off/i8" stand beside "i8"; "memory"
    and PACE are of all of them, and `members` says the rest, by value.
    """

    launch: Count
    point: Visited
    samples: tuple[Sample, ...]
    traffic: dict[str, Traffic]  # of one pass, by program
    memory: dict[str, Count]  # as Arena.inspect()
    steps: Count = 0  # of one pass of a probe
    slices: Count = 0  # in rotation
    slice_bytes: Count = 0
    footprint: Number = 0.0  # bytes of the cache lines that passes touch, in all slices
    level: str = ""  # of the machine, that feeds so much: a word of regime.classify()
    max_abs_err: Number = 0.0
    error: str = ""
    short: bool = False  # whether the error is a want of memory, which may pass
    part: Count = 0
    began: Annotated[float, Meta(ge=0, le=1e11)] = 0.0  # seconds since 1970
    # seconds that the visit took, with memory and checks
    wall: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    peak: Count = 0  # bytes that its process has held at most, so far
    ran: str = ""  # the schedule, by its name; empty where none does
    # by program: the point, and the point beside a neighbour
    tails: dict[str, Tail] = field(default_factory=dict)
    neighbour: Number = 0.0  # GB/s that the neighbour read meanwhile
    # what was measured to choose schedules, for classes that were new
    tuned: tuple[Tuned, ...] = ()
    run: str = ""
    core_level: str = ""  # the cache that the core roof's data stays in
    overhead: Number = 0.0  # of a peer: seconds of a step where there is next to nothing to read
    function: str = ""  # of a peer: what a step calls
    flags: str = ""  # of a peer: what that was given, and what the engine has found of this CPU
    # QK, softmax, PV of one that is profiled; empty where the op has none
    stage_share: tuple[Number, ...] = ()
    members: dict[str, Member] = field(default_factory=dict)
    chase: Chase | None = None  # of a point beside which a thread chases

    @property
    def complete(self) -> bool:
        """Whether the point has samples."""
        return not self.error and any(sample.program == "point" for sample in self.samples)


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
