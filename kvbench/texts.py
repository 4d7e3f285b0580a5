"""Make texts fit to be shown, of which others may have written a part (names of runs, files,
suites, CPUs).
"""

import csv
import io
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

WIDTH = 96  # letters in a line of a terminal; a page shows it behind four spaces

_SIGNS = re.compile(r"([\\`*_\[\]<>#|~$&])")  # signs with a meaning in Markdown

# Cells that a spreadsheet may run as a formula; a number or a single sign is not one.
_FORMULA = re.compile(r"[=@＝＋－＠]|[+-](?!(?:[\d.]+(?:e[+-]?\d+)?|inf|nan)?$)")


def shown(text: str) -> str:
    """Lines that every terminal, browser and XML reader shows and none obeys. Blanks become spaces.
    Control characters, halves of characters and marks that turn the direction of text become
    Python's escapes.
    """
    if text.replace("\n", "").isprintable():
        return text
    spelt: dict[str, str | int | None] = {
        sign: " " if sign.isspace() else ascii(sign)[1:-1]
        for sign in set(text)
        if not sign.isprintable()
    }
    return text.translate(str.maketrans(spelt | {"\n": "\n"}))


def printable(text: str) -> str:
    """shown() in one line."""
    return shown(" ".join(text.split()))


def resume_command(command: str, run: Path | str) -> str:
    """The full command that finishes a run of `kvbench command`."""
    return f"kvbench {command} --out {shlex.quote(str(run))} --resume"


def wrapped(sentences: Iterable[str], indent: str = "  ", hanging: int = 2) -> Iterator[str]:
    """Sentences as lines of a terminal; further lines of a sentence are indented by `hanging`
    letters.
    """
    for sentence in sentences:
        yield from textwrap.wrap(
            sentence, WIDTH, initial_indent=indent, subsequent_indent=indent + " " * hanging
        )


def markdown(text: str) -> str:
    """One line of text without Markdown, formulas or mentions by "@"."""
    return _SIGNS.sub(r"\\\1", printable(text)).replace("@", "@<!-- -->")


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table. Its cells are Markdown already."""
    for row in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(row)} |"


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(cell, row) for row in rows)
    return text.getvalue()


def table_csv(table: Any) -> str:
    """A pandas table as CSV. Whole numbers stay whole even if their column has gaps, for which
    pandas stores floats.
    """
    numbers = table.select_dtypes("float")
    whole = ((numbers % 1 == 0) & (numbers.abs() < 1 << 53) | numbers.isna()).all()
    table = table.astype(dict.fromkeys(numbers.columns[whole], "Int64"))
    texts = table.select_dtypes(exclude=["number", "bool"])
    fits = {
        value: cell(value)
        for name in texts
        for value in texts[name].unique()
        if isinstance(value, str)
    }
    odd = {value: fit for value, fit in fits.items() if fit != value}
    return (table.replace(odd) if odd else table).rename(columns=cell).to_csv(index=False)


def cell(value: Any) -> Any:
    """A value as CSV may hold it. Text that would be a formula begins with an apostrophe, as OWASP
    advises.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(text) else text
