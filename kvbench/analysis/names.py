"""Names for people. Of points: what varies between those of a run, and of shapes what is not the usual one."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from kvbench.analysis.columns import BY_COLUMN, POINT, facts, table
from kvbench.model import Field, Machine, Point
from kvbench.units import counted

_WORDS = {column: field for column, field in BY_COLUMN.items() if field.short}
_ALWAYS = ("layout", "dtype")  # so that no name is empty
_MOST = 0.5  # of the points of an op: what they have is not said of a usual field


def machine_name(machine: Machine) -> str:
    fact = machine.facts.get("brand")
    return str(fact.value) if fact and fact.value else "a machine without a name"


def names(points: Iterable[Point]) -> dict[str, str]:
    """Short ones, by the points' own."""
    found = table(map(facts, points), POINT)
    return dict(zip(found["name"], short_names(found), strict=True)) if len(found) else {}


def short_names(points: pd.DataFrame) -> list[str]:
    """One for each row of the points' table, no two the same."""
    shown = {name: _varies(points, name) for name in _WORDS}
    facts = points[list(_WORDS)].astype(object).where(points[list(_WORDS)].notna(), None).to_dict("records")
    return [_name(row, [name for name in _WORDS if shown[name][place]]) for place, row in enumerate(facts)]


def names_without(points: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """As short_names, but silent about these columns: points that differ in nothing else have one name."""
    if points.empty:
        return []
    return short_names(points.assign(**{name: points[name].iloc[0] for name in columns}))


def _varies(points: pd.DataFrame, name: str) -> list[bool]:
    """Whether each row has others beside it that differ in this."""
    if name in _ALWAYS:
        return [True] * len(points)
    if name == "op":
        return [points["op"].nunique() > 1] * len(points)
    field = _WORDS[name]
    values = points.groupby(list(dict.fromkeys(("op", field.within or "op"))))[name]
    varies = values.transform("nunique", dropna=False) > 1
    if field.usual:
        most = values.transform(lambda own: own.map(own.value_counts(normalize=True)) > _MOST)
        varies &= ~most.astype(bool)
    return list(varies)


def _name(row: dict[str, Any], shown: list[str]) -> str:
    if row["capacity"] == row["context"]:
        shown = [name for name in shown if name != "capacity"]
    return " ".join(_word(name, row[name]) for name in shown if not _unsaid(_WORDS[name], row[name]))


def _unsaid(field: Field, value: Any) -> bool:
    """What there is none of, unless none is not the usual."""
    return value in (None, "", "-") or not value and value == field.default


def _word(name: str, value: Any) -> str:
    return counted(value, "thread") if name == "threads" else _WORDS[name].short.format(value)
