"""Tokens per second by dtype: the fastest kernel of each, beside what memory alone would allow."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import hero as shown
from kvbench.report.figures.look import FAINT, INK, Figure, Look, bars, canvas, legend_lines
from kvbench.report.words.phrases import number
from kvbench.units import counted

_ROW, _FEWEST = 0.32, 2  # inches of a row; rows that fit at least
_COLUMN = 54  # points: width of a column of numbers beside the bars
_ABOUT = (
    "For each dtype, the kernel that was fastest in the planned launches; one sequence, KV cache"
    " only, without weights and all other work. Tick: tokens/s that memory allows, which are the"
    " kernel's tokens/s divided by its share of plain reads of memory in the same rounds. Format"
    " error: error of the output from the format alone, with normally distributed keys."
)


def hero(found: Findings, look: Look) -> Figure:
    table, page = shown.hero(found), found.answers.workload
    missing = "No decode of a known model was measured from memory: run kvbench sweep quick."
    title = "Which dtype gives most tokens per second?"
    if len(table):
        threads = counted(page.threads, "thread")
        title += f" {page.model}, {page.context:,} tokens, {threads}"
    return Figure(
        "hero", title, _ABOUT, table, lambda rows: _draw(rows, look), "" if len(table) else missing
    )


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    figure, (axes,) = canvas(height=1.05 + _ROW * max(len(table), _FEWEST))
    rows = list(table.itertuples())
    names = [f"{row.dtype} {row.variant}, {row.layout}" for row in rows]
    bars(axes, table, "tokens_per_second", names, [""] * len(rows), look)
    cells = {
        "tokens/s": [number(row.tokens_per_second) for row in rows],
        "GB/s": [number(row.gbps) for row in rows],
        "format\nerror": [f"{row.format_error:.0e}" if row.format_error else "0" for row in rows],
    }
    for column, (head, texts) in enumerate(cells.items(), 1):
        for place, text in enumerate((head, *texts), -1):
            axes.annotate(
                text,
                (1, place),
                (_COLUMN * column, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=9,
                color=INK if place >= 0 else FAINT,
                annotation_clip=False,
            )
    axes.plot(table["memory_allows"], range(len(rows)), "|", color=INK, ms=15, mew=2, zorder=2)
    axes.set_xlim(left=0)
    axes.set_xlabel("tokens/s, reading the KV cache only")
    meanings: dict[str, dict[str, Any]] = {"interval over launches": {"lw": 1.2}}
    if table["memory_allows"].notna().any():
        tick = {"marker": "|", "ls": "", "ms": 13, "mew": 2}
        meanings = {"what memory allows": tick} | meanings
    figure.legend(handles=legend_lines(meanings), loc="outside lower left", ncols=2)
    return figure
