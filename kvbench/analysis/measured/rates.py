"""What the launches of a run say of one point: seconds, rates, and shares of its witnesses."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.speeds import at_speed
from kvbench.grouping import grouped
from kvbench.model import AGAIN, NEIGHBOUR, PACE, Point, Record, Role, Sample, quotients
from kvbench.model.chases import of_chase
from kvbench.model.program import ALONE, CORE, MEMORY, PARTS, ROTATED, SLICE

# its own kernel; reads of other rows
_OWN, _OTHER = ("point", AGAIN, ALONE, NEIGHBOUR, CORE, ROTATED), (SLICE, MEMORY)
# of a launch's rounds must have samples of about the same length, for the launch to have a share
_LEAST = 0.5

_Visit = dict[str, list[Sample]]  # by program


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
        """Programs beside the point that read its rows, or copy as much, and do no more; of a step
        plain reads of as many bytes.
        """
        if any(name in PARTS for name in self.seconds):
            return [MEMORY] if MEMORY in self.shares else []
        return [name for name in self.shares if Role.of(name).kind not in (*_OWN, *_OTHER)]

    @property
    def witness(self) -> str | None:
        """What efficiency is a share of: the faster form of these."""
        return max(self.witnesses, key=lambda name: self.rates[name].median, default=None)

    @property
    def core(self) -> str | None:
        """What core speed is: the form of which the point reaches the smaller share."""
        forms = (name for name in self.shares if Role.of(name).kind == CORE)
        return min(forms, key=lambda name: self.shares[name].median, default=None)


def measured(records: Sequence[Record]) -> PointRates:
    """`records`: those of one point that are complete, at least one."""
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
    """How many passes of the other program take as long as one of the first, round by round."""
    return quotients(visit.get(name, ()), visit.get(other, ()))


def by_launch(records: Iterable[Record]) -> dict[str, dict[int, float]]:
    """By the name of a point and the launch, the seconds of a pass: the medians that measured()
    takes its own of.
    """
    found = {}
    for point, visits in by_point(records).items():
        taken = ((visit.launch, s) for visit in visits for s in visit.samples)
        own = grouped((n, s.each) for n, s in taken if s.program == "point")
        found[point.name] = {launch: median(seconds) for launch, seconds in own.items()}
    return found


def by_point(records: Iterable[Record]) -> dict[Point, list[Record]]:
    """Its records that are complete, at the cores' full speed."""
    return grouped(
        (record.point, record)
        for record in at_speed(records)
        if isinstance(record.point, Point) and record.complete
    )
