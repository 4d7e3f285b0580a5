"""What a chase beside a point measured: the latency of memory while the point, or plain reads or
copies, moved so many GB/s. Every ratio is of the same rounds; every curve is of the same launch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Annotated

import numpy as np

from kvbench.analysis.judge import FASTER, LIMITS, discoveries, paired
from kvbench.analysis.measured.estimates import Estimate
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

LINE = 64  # bytes that a load of the chase moves
NS = 1e-9  # seconds
MOST = 0.9  # of what plain reads move beside a chase: where its latency is told
_TWICE = (IDLE, SPIN)  # sampled at the beginning of a round and at its end
_LOADED = tuple(loaded(load, share) for load in LOADS for share in SHARES)
_OWN = tuple(loaded(OWN, share) for share in SHARES)
_STORES = "append"  # the op of a point that stores


@dataclass(frozen=True, slots=True)
class Seen:
    """A chase beside one load, over launches. ns: latency; half of the steps take no longer. tail:
    95 % of them take no longer. load: GB/s, see moved(); gbps: those and the chase's own, a line an
    access. times: ns over that of the idle chase, in the same rounds.
    """

    ns: Estimate
    tail: Estimate
    load: Estimate
    gbps: Estimate
    times: Estimate


@dataclass(frozen=True, slots=True)
class SeenOnce:
    """The same in one visit: medians of its samples."""

    ns: Annotated[float, about("ns: a load of the chase, which half of its steps do not exceed")]
    tail: Annotated[float, about("ns: a load of the chase, which 95 % of its steps do not exceed")]
    load: Annotated[float, about("GB/s: what others moved meanwhile; an append: what it stored")]


@dataclass(frozen=True, slots=True)
class At:
    """A ratio of latencies where so many GB/s are moved."""

    times: Estimate
    gbps: Estimate


@dataclass(frozen=True, slots=True)
class Chased:
    """A point beside which a thread chases. rounds: number of those that have all programs. idle:
    while the point's CPUs sleep. spin: while they spin in L1. drift: idle latency at the end of a
    round over that at its beginning. loads: by load and share, as in model/chases.py.

    busy: latency where plain reads move MOST of what they can, over the idle one. alike: latency
    beside the point over that beside plain reads of the same GB/s: the most that both can move.
    slowed: the point's rate beside the chase over its rate without one. Between the shares of a
    launch latency is read off straight lines.
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
        """Whether so few cores work, with that of the chase, that they do not saturate memory."""
        core = {cpu.cpu: cpu.core for cpu in machine.cpus}
        return len({core.get(cpu, cpu) for cpu in (self.chase.cpu, *self.point.cpus)}) < MANY

    def falls(self, load: str) -> tuple[int, ...]:
        """Shares whose latency is surely below that of the share before it; the first share is
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
    """Points with a chase that have a round with all of its programs. `visits`: by point."""
    for point, records in visits.items():
        launches = [found for own in _launches(records) if (found := _Launch.of(own))]
        chase = next((record.chase for record in records if record.chase), None)
        if launches and chase:
            yield _chased(point, chase, launches)


def latencies(visit: Record) -> dict[str, SeenOnce]:
    """By program; of one visit."""
    taken = grouped((sample.program, sample) for sample in visit.samples if sample.latency)
    return {name: _once(visit, own) for name, own in taken.items()}


def _once(visit: Record, samples: Sequence[Sample]) -> SeenOnce:
    ns, tail = (median(sample.latency[place] for sample in samples) / NS for place in range(2))
    return SeenOnce(ns, tail, median(moved(visit, sample) for sample in samples))


def moved(visit: Record, sample: Sample) -> float:
    """GB/s of the load, from memory or to it: of an append what it stores. That comes from rows of
    float32, the same in every pass of a layer, which stay in caches.
    """
    stores = isinstance(visit.point, Point) and visit.point.op == _STORES
    if not stores or sample.program not in _OWN:
        return sample.load
    own = visit.traffic[OWN]
    return sample.load * (own.bytes_kv + own.bytes_scales) / own.bytes_compulsory


def _launches(records: Iterable[Record]) -> Iterable[list[Record]]:
    """Parts of a launch count as one launch."""
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
    """Of one launch, or of one round."""

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
    """steps: by program. Those of idle and spin are means of the two samples in a round."""

    steps: Mapping[str, _Step]
    drift: float
    slowed: float
    rounds: int

    @classmethod
    def of(cls, records: Iterable[Record]) -> "_Launch | None":
        """None where no round has all programs."""
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
        """Times as long as idle, and at which GB/s."""
        rate = MOST * self._most(READ)
        return self._ns(READ, rate) / self.steps[IDLE].ns, rate

    def alike(self) -> tuple[float, float]:
        """Times as long as beside plain reads, and at which GB/s."""
        both = min(self._most(READ), self._most(OWN))
        return self._ns(OWN, both) / self._ns(READ, both), both

    def _most(self, load: str) -> float:
        return max(self.steps[loaded(load, share)].gbps for share in SHARES)

    def _ns(self, load: str, rate: float) -> float:
        """Latency where load and chase move `rate`. Steps of one rate are averaged."""
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
    """Samples of a round, by program."""

    def __init__(self, samples: Mapping[str, Sample], record: Record) -> None:
        self._samples, self._record = samples, record

    @property
    def whole(self) -> bool:
        """Whether it has all programs, and all loads moved something."""
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
        """What a round samples twice is the mean of both."""
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
