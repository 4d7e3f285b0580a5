"""What the launches of a run say of one point: a median of each launch, an interval over them, and
how far they lie apart.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Self

import numpy as np

from kvbench.analysis.judge import COVERAGE, paired
from kvbench.intervals import held, interval
from kvbench.model import (
    AGAIN,
    MANY,
    NEIGHBOUR,
    PACE,
    STEP,
    Point,
    Record,
    Role,
    Sample,
    Tail,
    most,
    quotients,
)
from kvbench.model.point import Visited
from kvbench.model.program import CORE, MEMORY, ROTATED, SLICE
from kvbench.store.summary import Result
from kvbench.units import GB, duration

# of the median, by the middle half of the launches: beyond it, most of them met another machine
SPREAD = 1 / 3
FAR_OUT = 3.0  # widths of the middle half, beyond it: what no ordinary scatter reaches
# its own kernel; reads of other rows
_OWN, _OTHER = ("point", AGAIN, NEIGHBOUR, CORE, ROTATED), (SLICE, MEMORY)

SLOW = 0.8  # of the best speed that a run's cores had: another state of the host, not scatter
_LEFT = 0.5  # of a point's launches, at least, so that slow visits are set aside
# of a launch's rounds must have samples of about the same length, for the launch to have a share
_LEAST = 0.5

_Visit = dict[str, list[Sample]]  # by program


@dataclass(frozen=True, slots=True)
class Estimate:
    """The median of the launches' values, and what encloses the true one, with COVERAGE where it
    can: two of the values.
    """

    median: float
    low: float
    high: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(median(values), *interval(values, COVERAGE), tuple(values))

    @classmethod
    def of_ratios(cls, values: Sequence[float]) -> Self:
        """The interval is the judge's, of signed ranks, where launches are enough for it: as sure,
        and narrower.
        """
        found, whole = paired(np.log(values)), cls.of(values)
        if not found.enclosed:
            return whole
        return replace(whole, low=math.exp(found.low), high=math.exp(found.high))

    @property
    def launches(self) -> int:
        return len(self.values)

    @property
    def spread(self) -> float | None:
        """Width of the interval against the median; None of a single launch."""
        return (self.high - self.low) / self.median if self.launches > 1 else None

    @property
    def confidence(self) -> float:
        """The probability with which the interval holds the true median."""
        return held(self.launches, COVERAGE)

    def of_bytes(self, count: float) -> Self:
        """The GB/s of `count` bytes, where this is of seconds."""
        rates = [count / GB / seconds for seconds in (self.median, self.high, self.low)]
        return type(self)(*rates, tuple(count / GB / seconds for seconds in self.values))


def enclosed(name: str, found: Estimate) -> dict[str, float]:
    """As columns of a table."""
    return {name: found.median, f"{name}_low": found.low, f"{name}_high": found.high}


@dataclass(frozen=True, slots=True)
class PointRates:
    """By program: `seconds` of a pass, `rates` in GB/s, and as `shares` the point's rate over the
    program's.

    A share is formed within a round, so that what slows a whole round down is no part of it; and of
    samples that are about as long. Of a twin it is one of times: a query and an output are no part
    of its bytes. `near`: likewise, the rate of plain reads of a slice in L3 over that of memory,
    where both were timed. `uneven`: launches in which a program has no share, for too few are.
    """

    seconds: dict[str, Estimate]
    rates: dict[str, Estimate]
    shares: dict[str, Estimate]
    near: Estimate | None = None
    uneven: int = 0

    @property
    def witnesses(self) -> list[str]:
        """Programs beside the point that read its rows, or copy as much, and do no more."""
        return [name for name in self.shares if name not in (*_OWN, *_OTHER)]

    @property
    def witness(self) -> str | None:
        """What efficiency is a share of: the faster form of the reads, or of the copies, beside the
        point.
        """
        return max(self.witnesses, key=lambda name: self.rates[name].median, default=None)


def complete(record: Record) -> bool:
    return not record.error and any(sample.program == "point" for sample in record.samples)


def measured(records: Sequence[Record]) -> PointRates:
    """`records`: those of one point that are complete, at least one."""
    launches: dict[int, list[_Visit]] = {}
    for record in records:
        visit: _Visit = {}
        launches.setdefault(record.launch, []).append(visit)
        for sample in record.samples:
            visit.setdefault(sample.program, []).append(sample)
    bytes_of = {
        name: traffic.compulsory for name, traffic in records[0].traffic.items() if name != PACE
    }
    seconds, shares, uneven = {}, {}, set()
    for name, count in bytes_of.items():
        own = {
            n: [s for visit in visits for s in visit.get(name, ())]
            for n, visits in launches.items()
        }
        slower = {
            n: [each for visit in visits for each in _slower(visit, name)]
            for n, visits in launches.items()
        }
        few = {n for n, each in slower.items() if len(each) < _LEAST * len(own[n])}
        if found := [median(s.seconds / s.passes for s in each) for each in own.values() if each]:
            seconds[name] = Estimate.of(found)
        if found := [median(each) for n, each in slower.items() if each and n not in few]:
            work = 1.0 if Role.of(name).kind == "twin" else bytes_of["point"] / count
            shares[name] = Estimate.of_ratios([work * times for times in found])
        uneven |= few
    rates = {name: estimate.of_bytes(bytes_of[name]) for name, estimate in seconds.items()}
    near = (
        [each for v in visits for each in _slower(v, MEMORY, SLICE)] for visits in launches.values()
    )
    times = [bytes_of[SLICE] / bytes_of[MEMORY] * median(own) for own in near if own]
    return PointRates(
        seconds, rates, shares, Estimate.of_ratios(times) if times else None, len(uneven)
    )


def tailed(tails: Sequence[Tail], name: str) -> dict[str, float]:
    """As columns: p50 and p99 of passes that were timed one by one, medians of the launches with
    their intervals. Where a launch has too few for a p99, it is that of all launches together,
    without one.
    """
    if not tails:
        return {}
    row = enclosed(f"{name}_p50", Estimate.of([tail.p50 for tail in tails]))
    whole = [tail.p99 for tail in tails if tail.p99 is not None]
    if 2 * len(whole) > len(tails):
        return row | enclosed(f"{name}_p99", Estimate.of(whole))
    together = most([second for tail in tails for second in tail.seconds])
    return row | ({f"{name}_p99": together} if together else {})


def untold(tails: Sequence[Tail], seconds: float) -> str:
    """Why there is no p50 or no p99 of passes that take so long, or what it is of; else empty."""
    if not tails:
        short = f"a pass takes less than {duration(STEP)}: none was timed by itself"
        return short if seconds < STEP else "no pass was timed by itself"
    if any(tail.p99 is not None for tail in tails):
        return ""
    passes = sum(tail.passes for tail in tails)
    return (
        "p99: of all launches together"
        if passes >= MANY
        else f"{passes} passes are too few for a p99"
    )


def results(records: Iterable[Record]) -> Iterator[Result]:
    """What a history needs, for each point that was measured beside a witness."""
    for point, own in _by_point(records).items():
        found = measured(own)
        if witness := found.witness:
            share, seconds, rate = (
                found.shares[witness],
                found.seconds["point"].median,
                found.rates["point"].median,
            )
            numbers = (share.launches, share.median, share.low, share.high, seconds, rate)
            yield Result(point, *numbers, witness, own[0].schedule)


def _by_point(records: Iterable[Record]) -> dict[Point, list[Record]]:
    """Those that are complete, at the cores' full speed."""
    points: dict[Point, list[Record]] = {}
    for record in at_speed(records):
        if isinstance(record.point, Point) and complete(record):
            points.setdefault(record.point, []).append(record)
    return points


def _slower(visit: _Visit, name: str, other: str = "point") -> list[float]:
    """How many passes of the other program take as long as one of the first, round by round."""
    return quotients(visit.get(name, ()), visit.get(other, ()))


def by_launch(records: Iterable[Record]) -> dict[str, dict[int, float]]:
    """By the name of a point and the launch, the seconds of a pass: the medians that measured()
    takes its own of.
    """
    found = {}
    for point, records_of in _by_point(records).items():
        launches: dict[int, list[float]] = {}
        for record in records_of:
            own = (s.seconds / s.passes for s in record.samples if s.program == "point")
            launches.setdefault(record.launch, []).extend(own)
        found[point.name] = {launch: median(own) for launch, own in launches.items()}
    return found


def speeds(records: Sequence[Record]) -> list[float | None]:
    """How fast the cores were in each visit, as a share of the best that the same ones were in any;
    None where nothing tells.
    """
    rates, best = [], dict[object, float]()
    for record in records:
        taken = [
            sample.passes / sample.seconds for sample in record.samples if sample.program == PACE
        ]
        rates.append((None, 0.0))
        if taken and not record.error:
            cores, rate = (
                (record.run, record.point.cpus, record.point.isa),
                median(taken) * record.traffic[PACE].flops,
            )
            rates[-1], best[cores] = (cores, rate), max(best.get(cores, 0.0), rate)
    return [rate / best[cores] if rate else None for cores, rate in rates]


def at_speed(records: Iterable[Record]) -> list[Record]:
    """Without the visits in which the cores were SLOW, where enough of a point's launches are
    left.
    """
    records = list(records)
    slow = [speed is not None and speed < SLOW for speed in speeds(records)]
    launches: dict[Visited, tuple[set[int], set[int]]] = {}  # all, and those that are left
    for record, aside in zip(records, slow, strict=True):
        if complete(record):
            own, left = launches.setdefault(record.point, (set(), set()))
            own.add(record.launch)
            left.update(() if aside else (record.launch,))
    enough_left = {
        point for point, (own, left) in launches.items() if len(left) >= _LEFT * len(own)
    }
    return [
        record
        for record, aside in zip(records, slow, strict=True)
        if not aside or record.point not in enough_left
    ]


def enough(launches: int) -> bool:
    """For an interval of COVERAGE."""
    return held(launches, COVERAGE) >= COVERAGE


def steady(values: Sequence[float]) -> bool:
    """Whether the middle half of the values lies within SPREAD of their median. A single value
    shows nothing: False.
    """
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return len(ordered) > 1 and ordered[-1 - quarter] - ordered[quarter] <= SPREAD * median(ordered)


def outliers(values: Sequence[float]) -> int:
    """How many lie beyond the quartiles by more than FAR_OUT times the distance between these
    (Tukey's far out).
    """
    if len(values) < 2:
        return 0
    low, _, high = quantiles(values, n=4, method="inclusive")
    fence = FAR_OUT * (high - low)
    return sum(value < low - fence or value > high + fence for value in values)
