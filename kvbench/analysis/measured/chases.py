"""What a chase beside a point measured: the latency of memory while the point, plain reads or
copies move data. All ratios are from the same rounds; all curves are from the same launch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Annotated

import numpy as np

from kvbench.analysis.judge import FASTER, LIMITS, paired
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.ranks import discoveries
from kvbench.grouping import grouped
from kvbench.model import Machine, Point, Record, Role, Sample
from kvbench.model.annotated import about
from kvbench.model.chases import (
    AFTER,
    IDLE,
    LOADS,
    MANY,
    OWN,
    READ,
    SHARES,
    SPIN,
    Chase,
    loaded,
)
from kvbench.units import gbps

LINE = 64  # bytes that one load of the chase moves
NS = 1e-9  # seconds
MOST = 0.9  # share of the most that plain reads move: there the busy latency is reported
_TWICE = (IDLE, SPIN)  # sampled both at the start and at the end of a round
_LOADED = tuple(loaded(load, share) for load in LOADS for share in SHARES)
_OWN = tuple(loaded(OWN, share) for share in SHARES)
_STORES = "append"  # the op of a point that stores


@dataclass(frozen=True, slots=True)
class Seen:
    """A chase beside one load, over launches.

    ns, tail: latency, which 50 % and 95 % of the steps do not exceed. load: GB/s, see moved().
    gbps: load and chase together, where each access of the chase moves one line. times: ns over
    that of the idle chase, in the same rounds.
    """

    ns: Estimate
    tail: Estimate
    load: Estimate
    gbps: Estimate
    times: Estimate


@dataclass(frozen=True, slots=True)
class SeenOnce:
    """A chase beside one load in one visit: medians of its samples."""

    ns: Annotated[
        float, about("ns: latency of a load of the chase; 50 % of its steps do not exceed it")
    ]
    tail: Annotated[
        float, about("ns: latency of a load of the chase; 95 % of its steps do not exceed it")
    ]
    load: Annotated[float, about("GB/s: moved by others meanwhile; for an append, what it stored")]


@dataclass(frozen=True, slots=True)
class At:
    """A ratio of latencies, and the GB/s at which it holds."""

    times: Estimate
    gbps: Estimate


@dataclass(frozen=True, slots=True)
class Chased:
    """A point with a chase beside it.

    rounds: the number of rounds with all programs. idle: while the point's CPUs sleep. spin: while
    they spin in L1. drift: idle latency at the end of a round over that at its start. loads: by
    load and share, as in model/chases.py.

    busy: latency while plain reads move MOST of their highest rate, over idle latency. alike:
    latency beside the point over latency beside plain reads, at the highest rate that both reach.
    slowed: the point's rate with the chase over its rate without it. Between the measured shares of
    a launch, latency is interpolated linearly.
    """

    point: Point
    chase: Chase
    rounds: int
    idle: Seen
    spin: Seen
    drift: Estimate
    loads: Mapping[tuple[str, int], Seen]
    busy: At
    alike: At
    slowed: Estimate

    def few(self, machine: Machine) -> bool:
        """Whether the working cores, that of the chase included, are too few to saturate memory."""
        core = {cpu.cpu: cpu.core for cpu in machine.cpus}
        return len({core.get(cpu, cpu) for cpu in (self.chase.cpu, *self.point.cpus)}) < MANY

    def falls(self, load: str) -> tuple[int, ...]:
        """Shares whose latency is surely below that of the share before; the first share is
        compared with the idle latency. Corrected over all shares of the load.
        """
        steps = [self.idle, *(self.loads[load, share] for share in SHARES)]
        found = [
            paired(np.log(np.divide(own.ns.values, before.ns.values)))
            for before, own in zip(steps, steps[1:], strict=False)
        ]
        sure = discoveries([float(each.faster) for each in found])
        return tuple(
            share
            for share, each, chance in zip(SHARES, found, sure, strict=True)
            if chance <= LIMITS.page and each.shows(FASTER, 1.0, LIMITS.point)
        )


def chased(visits: Mapping[Point, Sequence[Record]]) -> Iterator[Chased]:
    """The points with a chase that have at least one complete round. `visits`: by point."""
    for point, records in visits.items():
        launches = [found for own in _launches(records) if (found := _Launch.of(own))]
        chase = next((record.chase for record in records if record.chase), None)
        if launches and chase:
            yield _chased(point, chase, launches)


def latencies(visit: Record) -> dict[str, SeenOnce]:
    """The latencies of one visit, by program."""
    taken = grouped((sample.program, sample) for sample in visit.samples if sample.latency)
    return {name: _once(visit, own) for name, own in taken.items()}


def _once(visit: Record, samples: Sequence[Sample]) -> SeenOnce:
    ns, tail = (median(sample.latency[place] for sample in samples) / NS for place in range(2))
    return SeenOnce(ns, tail, median(moved(visit, sample) for sample in samples))


def moved(visit: Record, sample: Sample) -> float:
    """GB/s of the load from or to memory. An append counts only what it stores: its float32 rows
    are the same in every pass of a layer, and so stay in caches.
    """
    stores = isinstance(visit.point, Point) and visit.point.op == _STORES
    if not stores or sample.program not in _OWN:
        return sample.load
    own = visit.traffic[OWN]
    return sample.load * (own.bytes_kv + own.bytes_scales) / own.bytes_compulsory


def _launches(records: Iterable[Record]) -> Iterable[list[Record]]:
    """The records of each launch. Parts of a launch count as one launch."""
    return grouped((record.launch, record) for record in records if record.chase).values()


def _chased(point: Point, chase: Chase, launches: Sequence["_Launch"]) -> Chased:
    seen = {
        name: _seen([launch.steps[name] for launch in launches]) for name in (*_TWICE, *_LOADED)
    }
    return Chased(
        point=point,
        chase=chase,
        rounds=sum(launch.rounds for launch in launches),
        idle=seen[IDLE],
        spin=seen[SPIN],
        drift=Estimate.of_ratios([launch.drift for launch in launches]),
        loads={(load, share): seen[loaded(load, share)] for load in LOADS for share in SHARES},
        busy=_at([launch.busy() for launch in launches]),
        alike=_at([launch.alike() for launch in launches]),
        slowed=Estimate.of_ratios([launch.slowed for launch in launches]),
    )


def _at(found: Iterable[tuple[float, float]]) -> At:
    times, rates = zip(*found, strict=True)
    return At(Estimate.of_ratios(times), Estimate.of(rates))


@dataclass(frozen=True, slots=True)
class _Step:
    """The latency beside one load, in one launch or one round."""

    ns: float
    tail: float
    load: float
    times: float

    @property
    def gbps(self) -> float:
        return self.load + LINE / self.ns


def _seen(steps: Sequence[_Step]) -> Seen:
    ns, tail, load, total = (
        Estimate.of([getattr(step, name) for step in steps])
        for name in ("ns", "tail", "load", "gbps")
    )
    return Seen(ns, tail, load, total, Estimate.of_ratios([step.times for step in steps]))


@dataclass(frozen=True, slots=True)
class _Launch:
    """The chase in one launch. `steps`: by program; those of idle and spin are means of the two
    samples in a round.
    """

    steps: Mapping[str, _Step]
    drift: float
    slowed: float
    rounds: int

    @classmethod
    def of(cls, records: Iterable[Record]) -> "_Launch | None":
        """The launch from its records; None if no round has all programs."""
        rounds = [
            _Round({sample.program: sample for sample in taken}, record)
            for record in records
            for taken in grouped((sample.round, sample) for sample in record.samples).values()
        ]
        whole = [each for each in rounds if each.whole]
        if not whole:
            return None
        steps = {name: _median([each.step(name) for each in whole]) for name in (*_TWICE, *_LOADED)}
        drift, slowed = (median(getattr(each, name) for each in whole) for name in _OF_ROUND)
        return cls(steps, drift, slowed, len(whole))

    def busy(self) -> tuple[float, float]:
        """The busy latency over the idle one, and the GB/s at which it holds."""
        rate = MOST * self._most(READ)
        return self._ns(READ, rate) / self.steps[IDLE].ns, rate

    def alike(self) -> tuple[float, float]:
        """The latency beside the point over that beside plain reads, and the GB/s at which it
        holds.
        """
        both = min(self._most(READ), self._most(OWN))
        return self._ns(OWN, both) / self._ns(READ, both), both

    def _most(self, load: str) -> float:
        return max(self.steps[loaded(load, share)].gbps for share in SHARES)

    def _ns(self, load: str, rate: float) -> float:
        """Latency when load and chase together move `rate`. Steps of equal rate are averaged."""
        steps = [self.steps[IDLE], *(self.steps[loaded(load, share)] for share in SHARES)]
        by_rate = grouped((step.gbps, step.ns) for step in steps)
        rates = sorted(by_rate)
        return float(np.interp(rate, rates, [mean(by_rate[each]) for each in rates]))


def _median(steps: Sequence[_Step]) -> _Step:
    return _Step(
        *(median(getattr(step, name) for step in steps) for name in ("ns", "tail", "load", "times"))
    )


_OF_ROUND = ("drift", "slowed")


class _Round:
    """The samples of one round, by program."""

    def __init__(self, samples: Mapping[str, Sample], record: Record) -> None:
        self._samples, self._record = samples, record

    @property
    def whole(self) -> bool:
        """Whether no program is missing and every load moved something."""
        chases = [self._samples.get(name) for name in (*_LOADED, *_TWICE, *map(_after, _TWICE))]
        if OWN not in self._samples or not all(each and each.latency for each in chases):
            return False
        return all(self._samples[name].load > 0 for name in _LOADED)

    @property
    def drift(self) -> float:
        return self._latency(_after(IDLE))[0] / self._latency(IDLE)[0]

    @property
    def slowed(self) -> float:
        count = self._record.traffic[OWN].bytes_compulsory
        return self._samples[loaded(OWN, SHARES[-1])].load / gbps(count, self._samples[OWN].each)

    def step(self, program: str) -> _Step:
        """The latency of a program. Programs that a round samples twice have the mean of both."""
        idle, _ = self._twice(IDLE)
        if program in _TWICE:
            ns, tail = self._twice(program)
            return _Step(ns / NS, tail / NS, 0.0, ns / idle)
        ns, tail = self._latency(program)
        load = moved(self._record, self._samples[program])
        return _Step(ns / NS, tail / NS, load, ns / idle)

    def _twice(self, kind: str) -> tuple[float, float]:
        first, last = self._latency(kind), self._latency(_after(kind))
        return mean((first[0], last[0])), mean((first[1], last[1]))

    def _latency(self, program: str) -> tuple[float, float]:
        half, most = self._samples[program].latency
        return half, most


def _after(kind: str) -> str:
    return Role(kind, AFTER).name
