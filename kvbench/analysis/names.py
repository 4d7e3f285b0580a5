"""Names for people. Of points: what varies between those of a run, and of shapes what is not the usual one."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from kvbench.analysis.columns import POINT, facts, table
from kvbench.model import Machine, Point
from kvbench.units import counted

# In the order of a name, with how a value is written where it does not speak for itself.
_WORDS = {
    **dict.fromkeys(("op", "variant", "layout"), "{}"),
    "inner": "inner {}",
    "block_tokens": "block={}",
    "shuffle": "shuffle={}",
    "dtype": "{}",
    "scale": "{} scales",
    "isa": "{}",
    "batch": "batch={}",
    "q_heads": "q={}",
    "kv_heads": "kv={}",
    "head_dim": "d={}",
    "context": "t={}",
    "capacity": "cap={}",
    "window": "win={}",
    "residency": "{}",
    "layers_asked": "layers={}",
    "prefetch": "{}",
    "distance": "ahead={}",
    "pad": "pad={}",
    "deterministic": "deterministic",
    "pages": "{}",
    "threads": "{}",
    "cpus": "CPUs {}",
}
_UNUSUAL = ("variant", "batch", "q_heads", "kv_heads", "head_dim")  # said where it is not that of most points
_ALWAYS = ("layout", "dtype")  # so that no name is empty
_MOST = 0.5  # of the points of an op
_UNSAID = {"window": 0, "layers_asked": 0, "distance": 0, "deterministic": False}  # the usual

# What means something only beside equals in these columns. All else is compared with the points of the same op.
_BESIDE = {
    **dict.fromkeys(("inner", "block_tokens", "shuffle"), ("op", "layout")),
    "scale": ("op", "dtype"),
    "distance": ("op", "prefetch"),
    "cpus": ("op", "threads"),
}


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
    values = points.groupby(list(_BESIDE.get(name, ("op",))))[name]
    varies = values.transform("nunique", dropna=False) > 1
    if name in _UNUSUAL:
        most = values.transform(lambda own: own.map(own.value_counts(normalize=True)) > _MOST)
        varies &= ~most.astype(bool)
    return list(varies)


def _name(row: dict[str, Any], shown: list[str]) -> str:
    if row["capacity"] == row["context"]:
        shown = [name for name in shown if name != "capacity"]
    said = [name for name in shown if row[name] not in (None, "", "-") and _UNSAID.get(name) != row[name]]
    return " ".join(_word(name, row[name]) for name in said)


def _word(name: str, value: Any) -> str:
    return counted(value, "thread") if name == "threads" else _WORDS[name].format(value)
