"""A report in a few screens of Markdown, for a pull request or an issue."""

from collections.abc import Iterator

from kvbench.analysis.means.findings import Findings
from kvbench.report import tables
from kvbench.report.drafts import drafting
from kvbench.report.formats import mixed
from kvbench.report.latency import chases
from kvbench.report.sheet import Sheet
from kvbench.report.words.findings import sentences
from kvbench.report.words.first import badge, hardware, subtitle, tiles, title, workload
from kvbench.report.words.gaps import gaps
from kvbench.store import Manifest
from kvbench.texts import markdown as plain
from kvbench.texts import markdown_table

_MOST = 60  # rows of a table


def markdown(found: Findings, manifest: Manifest) -> str:
    """The report of a run, as one Markdown text."""
    return "\n".join(_lines(found, manifest)) + "\n"


def _lines(found: Findings, manifest: Manifest) -> Iterator[str]:
    own = found.answers
    yield from (f"# {plain(title(found))}", "", plain(hardware(found.machine, found.checks)), "")
    yield from (f"Workload: {plain(workload(own))}. {plain(subtitle(found, manifest))}", "")
    for sentence in gaps(found, manifest):
        yield from (f"> **Missing:** {plain(sentence)}", "")
    grade, reason = badge(own)
    yield from (f"**{grade}** {plain(reason)}", "")
    for tile in tiles(own):
        yield f"- **{plain(tile.title)}: {plain(tile.value)}** {plain(tile.detail)}"
    for table in (mixed(own), drafting(own), chases(own), tables.dtypes(own), tables.steps(own)):
        if table.rows:
            yield from ("", *_table(table), "", plain(table.about), "")
    yield from (
        f"- **{sentence.topic.capitalize()}:** {plain(sentence.text)}"
        for sentence in sentences(found)
    )
    for table in tables.every(found):
        if table.rows:
            yield from (
                "",
                "<details>",
                f"<summary>{table.title}</summary>",
                "",
                plain(table.about),
                "",
            )
            yield from (*_table(table), "", "</details>")
    yield from ("", f"Measured by: {plain(manifest.command)}")


def _table(table: Sheet) -> Iterator[str]:
    shown = ([plain(cell.text) for cell in row] for row in table.rows[:_MOST])
    yield from markdown_table(table.heads, shown)
    if len(table.rows) > _MOST:
        yield from (
            "",
            f"{len(table.rows) - _MOST} more rows are in the other forms of this report.",
        )
