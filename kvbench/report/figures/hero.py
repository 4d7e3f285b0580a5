"""Tokens per second by dtype: the fastest layout of each, beside what memory alone would allow."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import Bar, Headline
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import INK, PAPER, Look, canvas
from kvbench.report.words.headline import hero_about, hero_title
from kvbench.report.words.phrases import number

COLUMNS = ("dtype", "layout", "variant", "tokens_per_second", "low", "high", "gbps", "memory_allows", "max_abs_err",
           "bound", "point")  # fmt: skip
_ROW = 0.32  # inches


def hero(found: Findings, look: Look) -> Figure:
    head = found.headline
    rows = [_row(bar) for bar in head.bars]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    missing = "" if rows else "No decode of a known model was measured from memory: run kvbench sweep quick."
    return Figure("hero", hero_title(head), hero_about(head), table, lambda shown: _draw(shown, look, head), missing)


def _row(bar: Bar) -> tuple[object, ...]:
    rate = bar.tokens_per_second
    return (bar.dtype, bar.layout, bar.variant, rate.value, rate.low, rate.high, bar.gbps, bar.memory_allows,
            bar.max_abs_err, bar.bound, bar.name)  # fmt: skip


def _draw(table: pd.DataFrame, look: Look, head: Headline) -> Canvas:
    figure, (axes,) = canvas(height=0.9 + _ROW * len(table))
    at = np.arange(len(table))
    axes.barh(at, table["tokens_per_second"], 0.66, color=[look.colour(dtype) for dtype in table["dtype"]])
    for colour, wide in ((PAPER, 2.6), (INK, 1.0)):
        axes.hlines(at, table["low"], table["high"], color=colour, lw=wide)
    axes.plot(table["memory_allows"], at, "|", color=INK, ms=15, mew=2)
    most = max(
        table["high"].max(), table["memory_allows"].max(skipna=True) if table["memory_allows"].notna().any() else 0
    )
    for place, row in zip(at, table.itertuples(), strict=True):
        after = f"{number(row.tokens_per_second)} tokens/s, {number(row.gbps)} GB/s, error {row.max_abs_err:.0e}"
        axes.text(1.03 * most, place, after, va="center", fontsize=9, color=INK)
    axes.set_yticks(at, [f"{row.dtype}, {row.layout}" for row in table.itertuples()], fontsize=9)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.45 * most)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= most])
    axes.set_xlabel("tokens/s, reading the KV cache only")
    bar = Line2D([], [], color=INK, marker="|", ls="", ms=13, mew=2, label="what memory's read bandwidth allows")
    interval = Line2D([], [], color=INK, lw=1.2, label="interval over launches")
    figure.legend(handles=[bar, interval], loc="outside upper right", ncols=2)
    return figure
