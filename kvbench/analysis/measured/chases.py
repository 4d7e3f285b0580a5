"""What a chase beside a point saw: the latency of memory while the point, or plain reads or copies,
moved so many GB/s. All that is divided is of the same rounds, and all that is joined of the same
launch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np

from kvbench.analysis.measured.estimates import Estimate
from kvbench.grouping import grouped
from kvbench.model import Point, Record, Role, Sample
from kvbench.model.chases import AFTER, IDLE, LOADS, OWN, READ, SHARES, SPIN, loaded
from kvbench.units import gbps

LINE = 64  # bytes that a load of the chase moves
NS = 1e-9  # seconds
MOST = 0.9  # of what plain reads move beside a chase: where its latency is told
_PROGRAMS = (IDLE, SPIN, *(loaded(load, share) for load in LOADS for share in SHARES))


@dataclass(frozen=True, slots=True)
class Seen:
    """A chase beside one load, over launches. ns: of half of its steps at most; tail: of 95 % of
    them. load: GB/s that the load moved; gbps: with the chase's own, a line a load. times: ns over
    that of the idle chase, of the same rounds.
    """

    ns: Estimate
    tail: Estimate
    load: Estimate
    gbps: Estimate
    times: Estimate


@dataclass(frozen=True, slots=True)
class Chased:
    """A point beside which a thread chases. idle: while the point's CPUs sleep. spin: while they
    spin in L1. drift: the idle chase at the end of a round over that at its begin. loads: by load
    and share, as in model/chases.py.

    busy: latency over the idle one where plain reads move MOST of what they can. alike: latency
    beside the point over that beside plain reads that move as much: the lower of what both can.
    slowed: the point's rate beside the chase over its rate without one. Of a launch each is joined
    by straight lines.
    """

    point: Point
    records: tuple[Record, ...]
    idle: Seen
    spin: Seen
    drift: Estimate
    loads: Mapping[tuple[str, int], Seen]
    busy: Estimate
    alike: Estimate
    slowed: Estimate

    def falls(self) -> Iterator[tuple[str, int]]:
        """Loads and shares where latency is surely below that of the share before."""
        for load in LOADS:
            steps = [self.idle, *(self.loads[load, share] for share in SHARES)]
            for share, before, own in zip(SHARES, steps, steps[1:], strict=False):
                ratios = [b / a for a, b in zip(before.ns.values, own.ns.values, strict=True)]
                if Estimate.of_ratios(ratios).high < 1:
                    yield load, share


@dataclass(frozen=True, slots=True)
class _Step:
    """Of one launch."""

    ns: float
    tail: float
    load: float
    times: float

    @property
    def gbps(self) -> float:
        return self.load + LINE / self.ns


def chased(visits: Mapping[Point, Sequence[Record]]) -> Iterator[Chased]:
    """`visits`: by point. Of those with a chase that have all of its programs."""
    for point, records in visits.items():
        own = [record for record in records if record.chase]
        launches = [found for record in own if (found := _Launch.of(record))]
        if launches:
            yield _chased(point, own, launches)


def _chased(point: Point, records: Sequence[Record], launches: Sequence["_Launch"]) -> Chased:
    return Chased(
        point=point,
        records=tuple(records),
        idle=_seen(launch.steps[IDLE] for launch in launches),
        spin=_seen(launch.steps[SPIN] for launch in launches),
        drift=Estimate.of_ratios([launch.drift for launch in launches]),
        loads={
            (load, share): _seen(launch.steps[loaded(load, share)] for launch in launches)
            for load in LOADS
            for share in SHARES
        },
        busy=Estimate.of_ratios([launch.busy() for launch in launches]),
        alike=Estimate.of_ratios([launch.alike() for launch in launches]),
        slowed=Estimate.of_ratios([launch.slowed for launch in launches]),
    )


def _seen(steps: Iterable[_Step]) -> Seen:
    every = list(steps)
    ns, tail, load, total = (
        Estimate.of([getattr(step, name) for step in every])
        for name in ("ns", "tail", "load", "gbps")
    )
    return Seen(ns, tail, load, total, Estimate.of_ratios([step.times for step in every]))


@dataclass(frozen=True, slots=True)
class _Launch:
    """steps: by program; those of idle and spin are of the begin and the end of rounds together."""

    steps: Mapping[str, _Step]
    drift: float
    slowed: float

    @classmethod
    def of(cls, record: Record) -> "_Launch | None":
        """None where no round has all programs."""
        rounds = grouped((sample.round, sample) for sample in record.samples)
        count = record.traffic[OWN].bytes_compulsory
        whole = [each for own in rounds.values() if (each := _Round(own, count)).whole]
        if not whole:
            return None
        return cls(
            {name: _median([each.step(name) for each in whole]) for name in _PROGRAMS},
            median(each.drift for each in whole),
            median(each.slowed for each in whole),
        )

    def _at(self, load: str, gbps: float) -> float:
        """Latency, in ns, beside a load where all together move so much."""
        steps = [self.steps[IDLE], *(self.steps[loaded(load, share)] for share in SHARES)]
        steps.sort(key=lambda step: step.gbps)
        return float(np.interp(gbps, [s.gbps for s in steps], [s.ns for s in steps]))

    def _most(self, load: str) -> float:
        return max(self.steps[loaded(load, share)].gbps for share in SHARES)

    def busy(self) -> float:
        return self._at(READ, MOST * self._most(READ)) / self.steps[IDLE].ns

    def alike(self) -> float:
        both = min(self._most(READ), self._most(OWN))
        return self._at(OWN, both) / self._at(READ, both)


def _median(steps: Sequence[_Step]) -> _Step:
    return _Step(
        *(median(getattr(step, name) for step in steps) for name in ("ns", "tail", "load", "times"))
    )


class _Round:
    """Samples of a round. count: bytes of a pass of the point."""

    def __init__(self, samples: Iterable[Sample], count: float) -> None:
        own = {sample.program: sample for sample in samples}
        self._own = {name: sample for name, sample in own.items() if sample.latency}
        self._alone, self._count = own.get(OWN), count

    @property
    def whole(self) -> bool:
        names = [*_PROGRAMS, *map(_after, (IDLE, SPIN))]
        return self._alone is not None and all(name in self._own for name in names)

    @property
    def drift(self) -> float:
        return self._own[_after(IDLE)].latency[0] / self._own[IDLE].latency[0]

    @property
    def slowed(self) -> float:
        assert self._alone
        return self._own[loaded(OWN, SHARES[-1])].load / gbps(self._count, self._alone.each)

    def step(self, program: str) -> _Step:
        """What is asked twice is the mean of both."""
        names = [program, _after(program)] if program in (IDLE, SPIN) else [program]
        ns, tail = (
            mean(self._own[name].latency[place] for name in names) / NS for place in range(2)
        )
        load = mean(self._own[name].load for name in names)
        idle = mean(self._own[name].latency[0] for name in (IDLE, _after(IDLE))) / NS
        return _Step(ns, tail, 0.0 if program in (IDLE, SPIN) else load, ns / idle)


def _after(kind: str) -> str:
    return Role(kind, AFTER).name
