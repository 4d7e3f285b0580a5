"""Tokens per second by dtype: the fastest layout of each, beside what memory alone would allow."""

from dataclasses import asdict
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.report.figures.look import INK, Figure, Look, bars, canvas, legend_lines
from kvbench.report.words.phrases import number
from kvbench.units import counted

COLUMNS = [
    "row",
    "dtype",
    "layout",
    "variant",
    "tokens_per_second",
    "tokens_per_second_low",
    "tokens_per_second_high",
    "gbps",
    "memory_allows",
    "max_abs_err",
    "bound",
    "point",
]
_ROW = 0.32  # inches
_ABOUT = (
    "Fastest layout and variant of each dtype, one sequence, KV cache only: weights and all other"
    " work are left out. Error: the largest difference of an output to float64 arithmetic on the"
    " same codes."
)


def hero(found: Findings, look: Look) -> Figure:
    places, head = dict(zip(found.points["name"], found.points.index, strict=True)), found.headline
    rows = [
        asdict(bar)
        | {"row": places[bar.name], "point": bar.name, "tokens_per_second": rate.value}
        | {f"tokens_per_second_{end}": getattr(rate, end) for end in ("low", "high")}
        for bar in head.bars
        for rate in [bar.tokens_per_second]
    ]
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"memory_allows": float})
    missing = (
        ""
        if rows
        else "No decode of a known model was measured from memory: run kvbench sweep quick."
    )
    whose = (
        f" {head.model}, {head.context:,} tokens, {counted(head.threads, 'thread')}" if rows else ""
    )
    title = f"Which dtype gives most tokens per second?{whose}"
    return Figure("hero", title, _ABOUT, table, lambda shown: _draw(shown, look), missing)


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    figure, (axes,) = canvas(height=0.9 + _ROW * len(table))
    rows = list(table.itertuples())
    words = [
        f"{number(row.tokens_per_second)} tokens/s, {number(row.gbps)} GB/s, error"
        f" {row.max_abs_err:.0e}"
        for row in rows
    ]
    bars(
        axes,
        table,
        "tokens_per_second",
        [f"{row.dtype}, {row.layout}" for row in rows],
        words,
        look,
    )
    axes.plot(table["memory_allows"], range(len(rows)), "|", color=INK, ms=15, mew=2, zorder=2)
    axes.set_xlim(left=0)
    axes.set_xlabel("tokens/s, reading the KV cache only")
    shown: dict[str, dict[str, Any]] = {
        "what memory's read bandwidth allows": {"marker": "|", "ls": "", "ms": 13, "mew": 2},
        "interval over launches": {"lw": 1.2},
    }
    figure.legend(handles=legend_lines(shown), loc="outside upper right", ncols=2)
    return figure
