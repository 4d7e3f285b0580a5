"""Cells and titles that tables of a run share."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from kvbench.analysis.answers.answer import Answer, Figure, Reason
from kvbench.analysis.judge import COVERAGE as CERTAIN
from kvbench.analysis.means.beside import Rule
from kvbench.analysis.measured.ceilings import COVERAGE
from kvbench.report.sheet import Cell, Columns, Sheet, sheet
from kvbench.report.words import said
from kvbench.report.words.phrases import bare, ends, narrow

NOTHING = Answer.untested("", Reason.NOT_MEASURED)


@cache
def texts(name: str) -> tuple[str, str]:
    """The title of a table, and the text that explains it."""
    found = tomllib.loads(files(__package__).joinpath("tables.toml").read_text(encoding="utf-8"))[
        name
    ]
    numbers = {"certain": CERTAIN, "coverage": COVERAGE, "rule": Rule()}
    return found["title"], found.get("about", "").format(**numbers)


def titled(name: str, columns: Columns, rows: Sequence[dict[str, Any]], *more: Any) -> Sheet:
    return sheet(name, *texts(name), columns, rows, *more)


def answered(
    name: str, write: Callable[[Figure], str] = bare
) -> tuple[Callable[[Mapping[str, Any]], Cell | None], Callable[[Any], str]]:
    """A column: the figure of an answer, without its unit; empty if it has none."""

    def read(row: Mapping[str, Any]) -> Cell | None:
        found = row[name].figure
        return Cell(write(found), found.value) if found else None

    return read, str


def told(name: str) -> tuple[Callable[[Mapping[str, Any]], Cell | None], Callable[[Any], str]]:
    """A column: a figure with its interval, without its unit; empty if it is None."""

    def read(row: Mapping[str, Any]) -> Cell | None:
        found = row[name]
        return Cell(narrow(found), found.value) if found else None

    return read, str


def worded(
    name: str, topic: str, macro: str
) -> tuple[Callable[[Mapping[str, Any]], Cell], Callable[[Any], str]]:
    """A column: a fact in the words of a macro, by which the column is also sorted."""

    def read(row: Mapping[str, Any]) -> Cell:
        found = said(topic, macro, row[name])
        return Cell(found, found)

    return read, str


def within(answer: Answer) -> Cell | None:
    found = answer.figure
    return Cell(ends(found), found.low) if found and ends(found) else None
