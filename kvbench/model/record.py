"""The records of what was measured."""

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

# seconds; a shorter pass spends much of its time on the threads' meeting at its end
STEP = 20e-6
MANY = 100  # passes: with fewer, the 99th percentile is unknown
# Samples may be compared if one is at most this many times as long as the other (judgement): in a
# longer sample a stall, or the waking of threads, weighs less.
LENGTHS = 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed measurement of a program: `passes` passes in `seconds`. A round measures each
    program once.

    sample_time: the length that was aimed at; 0: none. What disturbed the sample: `skew`, how much
    longer the slowest thread worked than the mean thread; involuntary context `switches` and page
    `faults` of the team; `steal`, seconds that a hypervisor took from the team's CPUs; `throttled`,
    how often a quota or heat stopped them.
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
    shares: tuple[Number, ...] = ()  # in a step: appends, decodes, weights
    load: Moved = 0.0  # GB/s that the load beside a chase moved meanwhile
    # of a chase: seconds per load, 50th and 95th percentile of its steps
    latency: tuple[Timed, ...] = ()

    @property
    def each(self) -> float:
        """Seconds of a pass."""
        return self.seconds / self.passes

    @property
    def off(self) -> bool:
        """Whether the sample's length is far from `sample_time`."""
        return self.sample_time > 0 and not alike(self.seconds, self.sample_time)

    @property
    def one_by_one(self) -> bool:
        """Whether its passes count one by one: the point's, alone or beside a neighbour, if they
        are long enough.
        """
        return self.program in ("point", NEIGHBOUR) and self.seconds >= STEP * self.passes


@dataclass(frozen=True, slots=True)
class Tail:
    """Passes of a program in a visit, timed one by one: their number, their median, and the 99th
    percentile.

    If there are too few for a percentile, `seconds` has all of them: the passes of several launches
    together may be enough.
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
    """The 99th percentile; None if there are too few."""
    return quantiles(seconds, n=100, method="inclusive")[98] if len(seconds) >= MANY else None


def tails(samples: Iterable[Sample]) -> dict[str, Tail]:
    """The tail of each program whose samples all have the seconds of their passes."""
    found = grouped(
        (sample.program, sample.pass_seconds if sample.one_by_one else ())
        for sample in samples
        if sample.program in ("point", NEIGHBOUR)
    )
    return {
        name: Tail.of(list(chain.from_iterable(each))) for name, each in found.items() if all(each)
    }


def alike(one: float, other: float) -> bool:
    """Whether two durations are near enough to compare what happened in them."""
    return max(one, other) <= LENGTHS * min(one, other)


def comparable(one: Sample, other: Sample) -> bool:
    """Whether both samples are about equally long, each relative to the length that was aimed
    at.
    """
    return alike(one.seconds * (other.sample_time or 1.0), other.seconds * (one.sample_time or 1.0))


def quotients(samples: Iterable[Sample], others: Iterable[Sample]) -> list[float]:
    """The time of a pass over that of the others, in each round in which both samples are
    comparable.
    """
    beside = {other.round: other for other in others}
    pairs = ((sample, beside[sample.round]) for sample in samples if sample.round in beside)
    return [one.each / other.each for one, other in pairs if comparable(one, other)]


@dataclass(frozen=True, slots=True)
class Member:
    """What a record says of one point of a contrast. The fields are those of Record with the same
    names.
    """

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
    """One visit of a point, in a launch or by itself: all its samples, or the error.

    The programs of a visit, by name:

    point               the point. Of a probe: its PLAIN form; other forms have the form's name
    fma                 multiply-adds, the PACE of the cores
    twin, twin_ahead    of a decode: plain reads of its rows; reads in the point's own schedule
    core, core_off      of a decode: the kernel on data in a private cache, in the point's schedule;
                        and without prefetches, if that schedule has any
    ceiling, ...        of a plug-in's decode, and in a profile: reads of the same footprint in all
                        forms
    copy, copy_nt       of a store: copies of as many bytes
    memory              of a point that memory or L3 feeds: plain reads of memory; of a step: of as
                        many bytes as the step reads
    slice, rotated      of a slice in L3: plain reads of it; the same kernel on slices in memory
    alone               if other bytes are read between passes: the point without these reads. Such
                        a decode has no twins. All records of a family have the first's witnesses
    appends, decodes,   of a step: its parts, each of all layers
    weights
    idle, spin, ...     the chase beside a point, see chases.py: its passes are steps of the chase
    neighbour           the point while other cores stream memory, if that was asked for
    again               of our point beside peers: once more after them. A peer's "point" is the
                        peer's own call, beside our twins
    base, head          the two sides of a duel. "beside_base" and "beside_head" are a witness from
                        the installed library, timed after each; the one value in a sample's
                        `pass_seconds` is their lower quartile

    The programs of a contrast are the values of its factor. The fastest kernels of all dtypes have
    witnesses: "twin/i8", "twin_ahead/i8", "core/i8" and "core_off/i8" belong to "i8". All of them
    share "memory" and PACE. `members` has the rest, by value.
    """

    launch: Count
    point: Visited
    samples: tuple[Sample, ...]
    traffic: dict[str, Traffic]  # per pass, by program
    memory: dict[str, Count]  # as Arena.inspect()
    steps: Count = 0  # in one pass of a probe
    slices: Count = 0  # in rotation
    slice_bytes: Count = 0
    footprint: Number = 0.0  # bytes of the cache lines that passes touch, in all slices
    level: str = ""  # the level that feeds such a footprint: a word of regime.classify()
    max_abs_err: Number = 0.0
    error: str = ""
    short: bool = False  # whether the error is a lack of memory, which may pass
    part: Count = 0
    began: Annotated[float, Meta(ge=0, le=1e11)] = 0.0  # seconds since 1970
    # seconds of the whole visit, with filling memory and checks
    wall: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    peak: Count = 0  # the most bytes that its process has held so far
    ran: str = ""  # name of the schedule that ran, if any
    # of the point, and of the point beside a neighbour, by program
    tails: dict[str, Tail] = field(default_factory=dict)
    neighbour: Number = 0.0  # GB/s that the neighbour read meanwhile
    # the measurements that chose schedules, for classes that were new
    tuned: tuple[Tuned, ...] = ()
    run: str = ""
    core_level: str = ""  # the cache that holds the data of the core roof
    overhead: Number = 0.0  # of a peer: seconds of a step that reads next to nothing
    function: str = ""  # of a peer: the function that a step calls
    flags: str = ""  # of a peer: its arguments, and the CPU features that the engine found
    # shares of QK, softmax and PV in a profile; empty if the op has no stages
    stage_share: tuple[Number, ...] = ()
    members: dict[str, Member] = field(default_factory=dict)
    chase: Chase | None = None  # the chase beside the point

    @property
    def complete(self) -> bool:
        """Whether the point has samples."""
        return not self.error and any(sample.program == "point" for sample in self.samples)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a probe reached in run `run` in one `form`: GB/s (flops and dots: GFLOP/s; latency: ns;
    clock: GHz).

    median: of the launches' medians. low, high: two of these medians. samples: all of them, by
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
    # share of the memory that really is on huge pages; None if the probe uses no memory
    huge: Number | None
    form: str = PLAIN
