"""A model of bigger servers: tokens per second of a core by memory bandwidth of a core."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.answers.servers import MOST
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import servers as shown
from kvbench.report.figures.look import (
    FAINT,
    INK,
    PAPER,
    Figure,
    Look,
    canvas,
    legend_below,
    legend_lines,
    rate_axis,
    spread,
    tag,
)
from kvbench.report.words.phrases import number

_NAME = 0.05  # height of a name, as a share of the axes' height
_NARROW = 0.14  # share of the axes' width: a narrower stretch has no room for its words
_TICKS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 40)
_ABOUT = (
    "A model, not a measurement: tokens per second of a core are the smaller of two values. One is"
    " memory bandwidth of a core over the bytes that a token reads in all layers. The other is core"
    " speed, measured here from a private cache. To the right of a mark, the core limits. The model"
    " leaves out weights, traffic of other sockets and cores, threads that share a core, gains from"
    " L3, and another clock. For a server with N cores: kvbench explain MODEL --cores N --bandwidth"
    " GBPS."
)


def servers(found: Findings, look: Look) -> Figure:
    table, page = shown.servers(found), found.answers.workload
    title = "Which dtype is fastest on a server with other memory bandwidth a core?"
    missing = "No decode of a known model has a core speed: run kvbench sweep quick."
    about = _ABOUT
    if lacking := shown.lacking(found):
        about += f" Without a core speed: {', '.join(lacking)}."
    if len(table):
        title += f" {page.model}, {page.context:,} tokens"
    return Figure(
        "servers",
        title,
        about,
        table,
        lambda rows: _draw(rows, look),
        "" if len(table) else missing,
    )


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    figure, (axes,) = canvas(height=4.8)
    axes.set_xscale("log")
    rate_axis(axes, "tokens/s a core, reading the KV cache only", log=True)
    lines = table[table["kind"] == shown.LINE]
    for dtype, line in lines.groupby("dtype"):
        _line(axes, str(dtype), line, look)
    for here in table[table["kind"] == shown.HERE].itertuples():
        axes.axvline(here.bandwidth, color=INK, lw=1.2, ls=(0, (5, 3)))
        axes.text(
            here.bandwidth,
            0.02,
            f" this machine, {number(here.bandwidth)}",
            transform=axes.get_xaxis_transform(),
            fontsize=9,
        )
    low, high = axes.get_ylim()
    axes.set_ylim(low, 2.2 * high)
    for place, (dtype, start, end) in enumerate(_stretches(table[table["kind"] == shown.FASTEST])):
        _stretch(axes, place, dtype, start, end)
    _names(axes, lines[lines["bandwidth"] == MOST], look)
    axes.set_xlim(1, MOST)
    axes.set_xticks(_TICKS, [str(each) for each in _TICKS])
    axes.minorticks_off()
    axes.set_xlabel("GB/s of memory bandwidth a core")
    meanings: dict[str, dict[str, Any]] = {
        dtype: {"color": look.colour(dtype), "marker": look.mark(dtype), "mfc": PAPER, "lw": 1.6}
        for dtype in dict.fromkeys(lines["dtype"])
    }
    legend_below(figure, 8, legend_lines(meanings))
    return figure


def _line(axes: Axes, dtype: str, line: pd.DataFrame, look: Look) -> None:
    colour = look.colour(dtype)
    drawn = axes.plot(line["bandwidth"], line["tokens_per_second"], color=colour, lw=1.6)
    knee = line[line["knee"]]
    drawn += axes.plot(
        knee["bandwidth"],
        knee["tokens_per_second"],
        look.mark(dtype),
        color=colour,
        mfc=PAPER,
        ms=7,
        mew=1.6,
    )
    for part in drawn:
        tag(part, int(line["row"].iloc[0]))


def _names(axes: Axes, ends: pd.DataFrame, look: Look) -> None:
    """Write names to the right of the lines, each with a thin line to its end."""
    low, high = (math.log(end) for end in axes.get_ylim())
    ends = ends.sort_values("tokens_per_second")
    wanted = [(math.log(rate) - low) / (high - low) for rate in ends["tokens_per_second"]]
    for row, height in zip(ends.itertuples(), spread(wanted, _NAME), strict=True):
        axes.annotate(
            f"{row.dtype} {number(row.tokens_per_second)}",
            (MOST, row.tokens_per_second),
            (1.03, height),
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            arrowprops={
                "arrowstyle": "-",
                "color": look.colour(row.dtype),
                "lw": 0.8,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def _stretches(fastest: pd.DataFrame) -> Iterator[tuple[str, float, float]]:
    ends = [*fastest["bandwidth"], MOST]
    for dtype, (start, end) in zip(fastest["dtype"], pairwise(ends), strict=True):
        yield dtype, start, end


def _stretch(axes: Axes, place: int, dtype: str, start: float, end: float) -> None:
    """Name the fastest dtype of a stretch above all lines, and mark where the next one begins."""
    at: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "va": "top", "fontsize": 9}
    share = math.log(end / start) / math.log(MOST)
    words = f"{dtype} is fastest" if share > _NARROW else dtype if share > _NARROW / 2 else ""
    axes.text((start * end) ** 0.5, 0.99, words, ha="center", **at)
    if end < MOST:
        axes.axvline(end, color=FAINT, lw=0.8, ls=":")
        side = "left" if math.log(MOST / end) / math.log(MOST) > _NARROW else "right"
        height = 0.93 - 0.05 * (place % 2)
        axes.text(end, height, f" {number(end)} GB/s ", color=FAINT, ha=side, **at)
