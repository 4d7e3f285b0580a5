"""A table for people: each cell has a text and a value to sort by, made from rows of facts."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeGuard

import pandas as pd

from kvbench.report.words.phrases import between

_Row = Mapping[str, Any]
_Read = str | Callable[[_Row], Any]
# by head: the key of a row's value, or a function that reads it; and how to write the value
Columns = dict[str, tuple[_Read, Callable[[Any], str]]]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: the `text` to show, and `order`, a number or a text to sort by."""

    text: str
    order: float | str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. `facts`: for each row, words to filter by. `places`: for each row, the number of its
    point, or None.
    """

    name: str
    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    places: tuple[int | None, ...]
    facts: tuple[dict[str, str], ...]


def sheet(
    name: str,
    title: str,
    about: str,
    columns: Columns,
    rows: Sequence[_Row],
    places: Sequence[int | None] = (),
    facts: Sequence[dict[str, str]] = (),
) -> Sheet:
    reads = [
        (itemgetter(read) if isinstance(read, str) else read, write)
        for read, write in columns.values()
    ]
    cells = (tuple(cell(read(row), write) for read, write in reads) for row in rows)
    places, facts = places or [None] * len(rows), facts or [{}] * len(rows)
    return Sheet(name, title, about, tuple(columns), tuple(cells), tuple(places), tuple(facts))


def plain(*names: str) -> Columns:
    """Columns whose head is also their key in the rows, such as words and counts."""
    return {name: (name, str) for name in names}


def interval(
    name: str, write: Callable[[Any], str] | None = None
) -> tuple[_Read, Callable[[Any], str]]:
    """A column of intervals: both ends in one cell, sorted by the low end."""

    def read(row: _Row) -> Cell | None:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        if not (known(low) and known(high)):
            return None
        return Cell(f"{write(low)} to {write(high)}" if write else between(low, high), float(low))

    return read, str


def cell(value: Any, write: Callable[[Any], str] = str) -> Cell:
    """The cell of a value; empty if the value is not known."""
    if isinstance(value, Cell):
        return value
    if not known(value):
        return Cell("", "")
    return Cell(
        write(value), float(f"{value:.6g}") if isinstance(value, int | float) else str(value)
    )


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def known(value: Any) -> TypeGuard[Any]:
    return (
        value is not None
        and value is not pd.NA
        and not (isinstance(value, float) and math.isnan(value))
    )
