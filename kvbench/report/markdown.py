"""A report in a few screens of Markdown, for a pull request or an issue."""

import re
from collections.abc import Iterator, Sequence

from kvbench.analysis.findings import Findings
from kvbench.report import tables
from kvbench.report.gaps import gaps
from kvbench.report.heading import subtitle, title
from kvbench.report.tables import Table
from kvbench.store import Manifest
from kvbench.texts import printable

_MOST = 60  # rows of a table
_SIGNS = re.compile(r"([\\`*_\[\]<>#|~$&@])")


def markdown(found: Findings, manifest: Manifest) -> str:
    return "\n".join(_lines(found, manifest)) + "\n"


def _lines(found: Findings, manifest: Manifest) -> Iterator[str]:
    yield from (f"# {_plain(title(found.machine))}", "", _plain(subtitle(found, manifest)), "")
    for sentence in gaps(found, manifest):
        yield from (f"> **Missing:** {_plain(sentence)}", "")
    yield from (f"- **{sentence.topic.capitalize()}:** {_plain(sentence.text)}" for sentence in found.diagnosis)
    for table in tables.every(found):
        if table.rows:
            yield from ("", "<details>", f"<summary>{table.title}</summary>", "", _plain(table.about), "")
            yield from (*_table(table), "", "</details>")
    yield from ("", f"Measured by: {_plain(manifest.command)}")


def _table(table: Table) -> Iterator[str]:
    yield _row(table.heads)
    yield _row(["---"] * len(table.heads))
    for row in table.rows[:_MOST]:
        yield _row([_plain(cell.text) for cell in row])
    if len(table.rows) > _MOST:
        yield from ("", f"{len(table.rows) - _MOST} more rows are in the other forms of this report.")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """In one line, of which no sign means anything to Markdown, nor to what mentions people or draws formulas."""
    return _SIGNS.sub(r"\\\1", printable(text))
