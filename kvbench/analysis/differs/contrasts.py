"""Compare points that were timed in the same rounds: how many times as fast one is as the other."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.judge import Difference, paired
from kvbench.analysis.looks import adjusted, outside
from kvbench.analysis.measured.columns import POINT, band, count, number, text
from kvbench.grouping import grouped
from kvbench.model import Contrast, Point, Record, Sample, quotients
from kvbench.model.contrast import FACTORS, KERNEL, value

# factors that are compared in other ways than in sets
_BESIDE = "residency", "between", "queries", "scores", "schedule", "chase"
RATIO = band("ratio", "ratio: seconds of base over those of other: above 1 other is faster")
CONTRAST = {
    "factor": text(
        f"how they differ: {', '.join((*FACTORS, KERNEL, *_BESIDE))}; step: a step and the sum of"
        " its parts timed alone; part of a step: a part within the step and alone"
    ),
    "base": text("value of the factor of the base point"),
    "other": text("value of the factor of the other point"),
    "base_name": text("name of the base point"),
    "other_name": text("name of the other point"),
    **{name: POINT[name] for name in ("op", "dtype", "layout", "variant")},  # of the base
    **{name: POINT[name] for name in ("context", "batch", "threads", "residency")},
    "other_context": count("tokens of every sequence of the other point"),
    "regime": text("level that feeds them; both levels if they differ"),
    "visit": text("name of the visit that times both; empty if there is none"),
    **RATIO,
    "launches": count("launches that measured both"),
    "rounds": count("rounds that sampled both"),
    "confidence": number("probability: with which low and high enclose the true ratio"),
    "chance": number("probability: of a difference at least this large if there were none"),
    "corrected": number("probability: the chance corrected over all rows of this table"),
    "word": text("faster, slower, level, open, or not tested"),
}

_ALIKE = 1.01  # byte counts within this ratio count as equal: they may differ by a page table

Row = dict[str, Any]
_Rounds = Mapping[str, Sequence[Sample]]  # by program


def contrasts(records: Iterable[Record], points: pd.DataFrame, most: int = 0) -> list[Row]:
    """One row for each two points of a set, from ratios formed within rounds.

    The base is the point whose value moves more compulsory bytes over all sets of the factor; if
    they are equal, the first by name. most: launches that the run can have, if launches are added
    until questions are decided; else 0. The columns that need all rows together are added later.
    """
    rows = {row["name"]: row for row in points[points["seconds"].notna()].to_dict("records")}
    visits = _visits(records)
    moved = _moved(visits, rows)
    return [
        row
        for visited, launches in visits.items()
        for pair in combinations([p for p in visited.points if p.name in rows], 2)
        if (row := _of_set(visited, pair, launches, rows, moved, most))
    ]


def row_of(logs: np.ndarray, most: int, base: Row, other: Row, ends: Sequence[float] = ()) -> Row:
    """The row of two points. `logs`: of other's time over base's, by launch. `ends`: the ratio and
    its interval, if they are known already.
    """
    found = paired(logs, outside(len(logs), most))
    if not ends:
        low, high = (found.low, found.high) if found.enclosed else (logs.min(), logs.max())
        ends = [math.exp(-each) for each in (found.estimate, high, low)]
    tested = found.enclosed
    return {name: base[name] for name in CONTRAST if name in POINT} | {
        "base_name": base["name"],
        "other_name": other["name"],
        "other_context": other["context"],
        "regime": " and ".join(dict.fromkeys((base["regime"], other["regime"]))),
        **dict(zip(RATIO, ends, strict=True)),
        "confidence": found.confidence,
        "chance": adjusted(two_sided(found), len(logs), most) if tested else math.nan,
    }


def two_sided(found: Difference) -> float:
    return min(1.0, 2 * float(min(found.slower, found.faster)))


# ---- sets ----------------------------------------------------------------------------------------


def _visits(records: Iterable[Record]) -> dict[Contrast, dict[int, dict[str, list[Sample]]]]:
    """Samples of sets by launch and program."""
    found: dict[Contrast, dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if isinstance(record.point, Contrast) and not record.error:
            found[record.point][record.launch] += record.samples
    return {
        visited: {
            launch: grouped((sample.program, sample) for sample in samples)
            for launch, samples in launches.items()
        }
        for visited, launches in found.items()
    }


def _moved(visits: Iterable[Contrast], rows: Mapping[str, Row]) -> dict[tuple[str, str], float]:
    """Compulsory bytes of each value of a factor, summed over all sets."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    for visited in visits:
        for point in visited.points:
            if point.name in rows:
                own = visited.factor, value(point, visited.factor)
                found[own] += rows[point.name]["bytes_compulsory"]
    return found


def _of_set(
    visited: Contrast,
    pair: Iterable[Point],
    launches: Mapping[int, _Rounds],
    rows: Mapping[str, Row],
    moved: Mapping[tuple[str, str], float],
    most: int,
) -> Row | None:
    """The row of two points of a set; None if no launch has rounds of both."""
    factor = visited.factor
    first, second = sorted(pair, key=lambda point: value(point, factor))
    one, two = (moved[factor, value(point, factor)] for point in (first, second))
    base, other = (second, first) if two > _ALIKE * one else (first, second)
    words = value(base, factor), value(other, factor)
    times = [
        quotients(*(samples.get(word, ()) for word in reversed(words)))
        for samples in launches.values()
    ]
    times = [own for own in times if own]
    if not times:
        return None
    logs = np.log([median(own) for own in times])
    # the line has the planned launches only, so there is one look
    found = row_of(logs, 0 if factor == KERNEL else most, rows[base.name], rows[other.name])
    return found | {
        "factor": factor,
        "base": words[0],
        "other": words[1],
        "visit": visited.name,
        "launches": len(times),
        "rounds": sum(map(len, times)),
    }
