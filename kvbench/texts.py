"""Texts of which somebody else may have written a part (names of runs, files, suites, CPUs), fit to be shown."""

import csv
import io
from collections.abc import Iterable
from typing import Any

_FORMULA = tuple("=+-@＝＋－＠")  # what a spreadsheet may run as a formula begins with one of these


def shown(text: str) -> str:
    """Lines that no terminal, browser or XML reader obeys or refuses. Blanks other than spaces become spaces; control
    characters, halves of characters and marks that turn the direction of text become Python's escapes."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign == "\n" else _spelt(sign) for sign in text)


def printable(text: str) -> str:
    """The same, in one line."""
    return shown(" ".join(text.split()))


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(cell, row) for row in rows)
    return text.getvalue()


def table_csv(table: Any) -> str:
    """Of a pandas table."""
    texts = table.select_dtypes(exclude=["number", "bool"])
    fits = {value: cell(value) for name in texts for value in texts[name].unique() if isinstance(value, str)}
    odd = {value: fit for value, fit in fits.items() if fit != value}
    return (table.replace(odd) if odd else table).rename(columns=cell).to_csv(index=False)


def cell(value: Any) -> Any:
    """A value as CSV may hold it: text that would be a formula begins with an apostrophe, as OWASP advises."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text[1:] and text.startswith(_FORMULA) and not _number(text) else text


def _spelt(sign: str) -> str:
    return " " if sign.isspace() else ascii(sign)[1:-1]


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
