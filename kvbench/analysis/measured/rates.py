"""Compute the seconds, rates and shares of one point from the launches of a run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.speeds import at_speed
from kvbench.grouping import grouped
from kvbench.model import AGAIN, NEIGHBOUR, PACE, Point, Record, Role, Sample, quotients
from kvbench.model.chases import of_chase
from kvbench.model.program import ALONE, CORE, MEMORY, PARTS, ROTATED, SLICE

# programs of its own kernel; reads of other rows
_OWN, _OTHER = ("point", AGAIN, ALONE, NEIGHBOUR, CORE, ROTATED), (SLICE, MEMORY)
# the least share of a launch's rounds with comparable samples: below it, the launch has no share
_LEAST = 0.5

_Visit = dict[str, list[Sample]]  # by program


@dataclass(frozen=True, slots=True)
class PointRates:
    """By program: `seconds` of a pass, `rates` in GB/s, and `shares`, the point's rate over the
    program's.

    A share is formed within a round from samples of comparable length, so that whatever slows the
    whole round cancels. The share of a twin is a ratio of times: its bytes have no query and no
    output. near: the rate of plain reads of a slice in L3 over that of memory, likewise; None if
    not timed. uneven: launches in which a program has too few comparable samples for a share.
    """

    seconds: dict[str, Estimate]
    rates: dict[str, Estimate]
    shares: dict[str, Estimate]
    near: Estimate | None = None
    uneven: int = 0

    @property
    def witnesses(self) -> list[str]:
        """The programs that only read the point's rows, or copy as many bytes; for a step, plain
        reads of as many bytes.
        """
        if any(name in PARTS for name in self.seconds):
            return [MEMORY] if MEMORY in self.shares else []
        return [name for name in self.shares if Role.of(name).kind not in (*_OWN, *_OTHER)]

    @property
    def witness(self) -> str | None:
        """The witness of the efficiency: the fastest one."""
        return max(self.witnesses, key=lambda name: self.rates[name].median, default=None)

    @property
    def core(self) -> str | None:
        """The form of the core roof that gives the point the smaller share."""
        forms = (name for name in self.shares if Role.of(name).kind == CORE)
        return min(forms, key=lambda name: self.shares[name].median, default=None)


def measured(records: Sequence[Record]) -> PointRates:
    """The rates of one point. `records`: at least one, all of this point and complete."""
    visits_of = (
        (record.launch, grouped((s.program, s) for s in record.samples)) for record in records
    )
    launches = grouped(visits_of)
    bytes_of = {
        name: traffic.bytes_compulsory
        for name, traffic in records[0].traffic.items()
        if name != PACE and not of_chase(name)
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
        if found := [median(s.each for s in each) for each in own.values() if each]:
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


def _slower(visit: _Visit, name: str, other: str = "point") -> list[float]:
    """For each round: the time of a pass of program `name` over that of `other`."""
    return quotients(visit.get(name, ()), visit.get(other, ()))


def by_launch(records: Iterable[Record]) -> dict[str, dict[int, float]]:
    """Seconds of a pass by point name and launch. measured() takes the medians of these."""
    found = {}
    for point, visits in by_point(records).items():
        taken = ((visit.launch, s) for visit in visits for s in visit.samples)
        own = grouped((n, s.each) for n, s in taken if s.program == "point")
        found[point.name] = {launch: median(seconds) for launch, seconds in own.items()}
    return found


def by_point(records: Iterable[Record]) -> dict[Point, list[Record]]:
    """The complete records of each point in which the cores were not slow."""
    return grouped(
        (record.point, record)
        for record in at_speed(records)
        if isinstance(record.point, Point) and record.complete
    )
