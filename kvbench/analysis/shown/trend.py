"""Points over many runs, those that moved first, each with its level between two steps."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.differs.trend import Past, Trend
from kvbench.analysis.measured.columns import table

# panels; and the most of them for points without a step (for families: all)
MOST, CALM = 16, 4

COLUMNS = {
    "row": "Int64",  # row of the points' table
    **dict.fromkeys(("name", "short"), "str"),
    "place": "Int64",  # number of the run in the order of time, over all runs of the machine
    **dict.fromkeys(("run", "created", "commit"), "str"),
    "efficiency": "float64",
    "level": "float64",  # median efficiency between two steps
    "step": "float64",  # at the first run of a step: its effect, a share of the efficiency before
    "state": "str",  # state of that step
}


@dataclass(frozen=True, slots=True)
class Trends:
    """The trends to draw.

    moved: how many have steps. first: how many of those are shown. calm: how many without steps are
    shown. left: how many are left out.
    """

    table: pd.DataFrame
    moved: int
    first: int
    calm: int
    left: int


def ordered(trends: Iterable[Trend]) -> list[Trend]:
    """The trends that need attention first."""
    return sorted(
        trends, key=lambda each: (each.worst(), not each.open(), not each.steps, -abs(each.change))
    )


def trend(past: Past, rows: Mapping[str, int]) -> Trends:
    """The trends of a machine. `rows`: rows of the points' table, by point; empty for the
    families.
    """
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
