"""Compare a point of a family with its base in the same rounds: several queries with one query, and
special scores with plain ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.families import by_queries, by_scores
from kvbench.grouping import grouped
from kvbench.model import Point, Record, Role, Sample, quotients
from kvbench.model.program import ALONE, CORE

_Visits = Mapping[Point, Sequence[Record]]
_Families = Mapping[Point, Sequence[Point]]


@dataclass(frozen=True, slots=True)
class Beside:
    """A point compared with its base.

    times: time of a pass over that of the base. core: time of a pass at core speed, in its faster
    form, over that of the base; None if not timed. rounds: behind `times`.
    """

    times: Estimate
    core: Estimate | None
    rounds: int


def beside_one(visits: _Visits) -> Iterator[tuple[Point, Point, Beside]]:
    """A point with one query, a point with several, and how they compare, for all that have a round
    in common. `visits`: by point.
    """
    yield from _of(by_queries(visits), visits)


def beside_plain(visits: _Visits) -> Iterator[tuple[Point, Point, Beside]]:
    """As beside_one(), for plain scores and for sinks, a cap, slopes or kept tokens."""
    yield from _of(by_scores(visits), visits)


def _of(families: _Families, visits: _Visits) -> Iterator[tuple[Point, Point, Beside]]:
    for base, members in families.items():
        for point in members:
            if found := _beside(visits.get(base, ()), visits[point]):
                yield base, point, found


def _beside(ones: Iterable[Record], own: Iterable[Record]) -> Beside | None:
    bases = {(record.launch, record.part): record for record in ones}
    both = [
        (record, bases[record.launch, record.part])
        for record in own
        if ALONE in record.traffic and (record.launch, record.part) in bases
    ]
    times = _quotients("point", both)
    if not times:
        return None
    names = {name for record, _ in both for name in record.traffic if Role.of(name).kind == CORE}
    forms = [_over_launches(found) for name in sorted(names) if (found := _quotients(name, both))]
    core = min(forms, key=lambda form: form.median, default=None)
    return Beside(_over_launches(times), core, sum(map(len, times.values())))


def _quotients(program: str, both: Iterable[tuple[Record, Record]]) -> dict[int, list[float]]:
    """By launch: the time of a pass of the program over that of the base's point."""
    return grouped(
        (record.launch, each)
        for record, base in both
        for each in quotients(_taken(program, record), _taken("point", base))
    )


def _taken(program: str, record: Record) -> list[Sample]:
    return [sample for sample in record.samples if sample.program == program]


def _over_launches(found: Mapping[int, Sequence[float]]) -> Estimate:
    return Estimate.of_ratios([median(own) for own in found.values()])
