"""Points over many runs: those that moved first, each with the level between two steps."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.differs.trend import Past, Trend
from kvbench.analysis.measured.columns import table

# panels; and of them, at most so many of points without a step: families have all
MOST, CALM = 16, 4

COLUMNS = {
    "row": "Int64",  # of the points' table
    **dict.fromkeys(("name", "short"), "str"),
    "place": "Int64",  # in the order of time, over all runs of the machine
    **dict.fromkeys(("run", "created", "commit"), "str"),
    "efficiency": "float64",
    "level": "float64",  # median efficiency of the stretch between two steps
    "step": "float64",  # where one begins, as a share of the efficiency before
    "state": "str",  # of that step
}


@dataclass(frozen=True, slots=True)
class Trends:
    """How many trends have steps, are shown of those, and of those without; and are left out."""

    table: pd.DataFrame
    moved: int
    first: int
    calm: int
    left: int


def ordered(trends: Iterable[Trend]) -> list[Trend]:
    """What needs somebody's attention first."""
    return sorted(
        trends, key=lambda each: (each.worst(), not each.open(), not each.steps, -abs(each.change))
    )


def trend(past: Past, rows: Mapping[str, int]) -> Trends:
    """`rows`: of the points' table, by point; none for the families."""
    trends, calm = (past.trends, CALM) if rows else (past.families, MOST)
    moved, still = (
        [each for each in ordered(trends) if bool(each.steps) is stepped]
        for stepped in (True, False)
    )
    first = moved[:MOST]
    others = still[: min(calm, MOST - len(first))]
    shown = [*first, *others]
    lines = [line for each in shown for line in _lines(past, each, rows.get(each.series.point))]
    left = len(trends) - len(shown)
    return Trends(table(lines, COLUMNS), len(moved), len(first), len(others), left)


def _lines(past: Past, own: Trend, row: int | None) -> Iterator[dict[str, Any]]:
    series = own.series
    facts = {"row": row, "name": series.point, "short": past.names[series.point]}
    starts = [0, *(series.runs.index(step.run) for step in own.steps), len(series.runs)]
    for (start, end), step in zip(pairwise(starts), [None, *own.steps], strict=True):
        level = float(np.median(series.efficiency[start:end]))
        for at in range(start, end):
            own_step = step if at == start else None
            begins = {
                "step": own_step.effect if own_step else math.nan,
                "state": own_step.state if own_step else "",
            }
            ran = {
                name: getattr(past.runs[series.runs[at]], name)
                for name in ("run", "created", "commit")
            }
            yield (
                facts
                | {"place": series.runs[at], "efficiency": series.efficiency[at], "level": level}
                | ran
                | begins
            )
