"""Compare the points of a family by the bytes that are read between passes: each with the same
point from memory, with the point that reads nothing between, and with the next smaller one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

import numpy as np
import pandas as pd

from kvbench.analysis.differs.contrasts import Row, row_of
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.families import families
from kvbench.analysis.measured.rates import by_point, measured
from kvbench.grouping import grouped
from kvbench.model import ROTATED, Point, Record, Sample, quotients
from kvbench.model.program import ALONE
from kvbench.units import size

BETWEEN, FAR, NOTHING = "between", "memory", "nothing"

_Visits = Mapping[Point, Sequence[Record]]


def betweens(records: Iterable[Record], rows: Mapping[str, Row], most: int) -> Iterator[Row]:
    """The rows of all families. `rows`: the table of points, by name."""
    visits = {point: own for point, own in by_point(records).items() if point.name in rows}
    for base, members in families(visits).items():
        before = None
        for point in members:
            yield from _beside(base, point, visits, rows, most)
            if before:
                yield from _next(before, point, visits, rows, most)
            before = point


def _beside(
    base: Point, point: Point, visits: _Visits, rows: Mapping[str, Row], most: int
) -> Iterator[Row]:
    """Compare a point with memory, and with the point that reads nothing between. The ratio to
    memory is that of the table of points.
    """
    found, row = measured(visits[point]), rows[point.name]
    if ROTATED in found.shares and pd.notna(row["l3_gain"]):
        ends = [row[f"l3_gain{end}"] for end in ("", "_low", "_high")]
        yield _row(found.shares[ROTATED], FAR, row, row, most, ends) | _taken(visits[point])
    if ALONE in found.shares and base.name in rows:
        yield _row(found.shares[ALONE], NOTHING, rows[base.name], row, most) | _taken(visits[point])


def _next(
    before: Point, point: Point, visits: _Visits, rows: Mapping[str, Row], most: int
) -> Iterator[Row]:
    """Compare a point with the one next smaller in bytes. The rounds of a family sample all its
    points.
    """
    beside = {(record.launch, record.part): record for record in visits[before]}
    both = [
        (record, beside[record.launch, record.part])
        for record in visits[point]
        if (record.launch, record.part) in beside
    ]
    times = grouped(
        (record.launch, each)
        for record, other in both
        for each in quotients(_own(other), _own(record))
    )
    if times:
        found = Estimate.of([median(each) for each in times.values()])
        one, other = rows[before.name], rows[point.name]
        rounds = {"rounds": sum(map(len, times.values()))}
        yield _row(found, size(before.streamed), one, other, most) | rounds


def _own(record: Record) -> list[Sample]:
    return [sample for sample in record.samples if sample.program == "point"]


def _row(
    share: Estimate, word: str, base: Row, other: Row, most: int, ends: Sequence[float] = ()
) -> Row:
    """A row of the table. `share`: the speed of the other over that of the base, by launch."""
    return row_of(-np.log(share.values), most, base, other, ends) | {
        "factor": BETWEEN,
        "base": word,
        "other": size(other["between"]),
        "visit": other["name"],
        "launches": share.launches,
    }


def _taken(visits: Iterable[Record]) -> dict[str, int]:
    return {"rounds": sum(len(_own(record)) for record in visits)}
