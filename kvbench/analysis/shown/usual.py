"""Choose the points that a figure shows if a run has more kinds than one picture can hold."""

from collections.abc import Collection
from typing import Any

import pandas as pd

from kvbench.analysis.answers.answer import Answer
from kvbench.analysis.measured.columns import BY_COLUMN, within

# Columns that figures compare. A difference in any other column makes another experiment.
_COMPARED = (
    "op",
    "layout",
    "dtype",
    "context",
    "capacity",
    "layers",
    "residency",
    "threads",
    "cpus",
    "group",
)
_SETTING = [name for name in BY_COLUMN if name not in _COMPARED]
_FREE = within("dtype", "layout")  # columns that may differ between dtypes or layouts


def usual(points: pd.DataFrame, free: Collection[str] = ()) -> pd.DataFrame:
    """The points with the most common setting: they differ only in columns that figures compare.

    free: columns of the setting that may differ anyway.
    """
    for name in (name for name in _SETTING if name not in free):
        if points.empty:
            break
        beside = points[_FREE[name]] if name in _FREE else pd.Series("", points.index)
        values = points[name].astype(object).where(points[name].notna(), None).map(repr)
        most = values.groupby(beside).agg(lambda each: each.value_counts().index[0])
        points = points[values == beside.map(most)]
    return points


def places(points: pd.DataFrame) -> dict[str, int]:
    """The row number of each point, by its name. Marks in figures refer to it."""
    return dict(zip(points["name"], map(int, points.index), strict=True))


def enclosed(name: str, answer: Answer, scale: float = 1.0) -> dict[str, Any]:
    """The figure of an answer and its interval as columns; None if nothing was found."""
    ends = {"": "value", "_low": "low", "_high": "high"}
    return {
        f"{name}{end}": scale * getattr(answer.figure, at) if answer.figure else None
        for end, at in ends.items()
    }
