"""The buffers of an arena, in the order in which they lie: what each takes, and what was written of it."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import COLOURS, INK, MARKS, bytes_axis, canvas, legend_below
from kvbench.units import size

_BAR, _FRAME = 0.26, 1.1  # inches: of a bar with its gap, and of axis and legend


def arena(table: pd.DataFrame, about: str) -> Figure:
    """`table`: name, kind, size and written, in bytes, of every buffer."""
    return Figure("arena", "Buffers of a decoder in one block of memory", about, table, _draw)


def _draw(table: pd.DataFrame) -> Canvas:
    figure, (axes,) = canvas(height=_FRAME + _BAR * len(table))
    kinds = dict(zip(dict.fromkeys(table["kind"]), COLOURS, strict=False))
    rows = range(len(table))
    axes.barh(rows, table["size"], 0.7, color=[kinds[kind] for kind in table["kind"]])
    written = table["written"].where(table["written"] > 0)
    axes.plot(written, rows, ls="", marker=MARKS[2], ms=6, color=INK, label="of it written")
    axes.set_yticks(rows, table["name"])
    axes.invert_yaxis()
    _bytes(axes, table)
    handles = [Patch(color=colour, label=kind) for kind, colour in kinds.items()]
    legend_below(figure, columns=5, handles=[*handles, *axes.get_legend_handles_labels()[0]])
    return figure


def _bytes(axes: Axes, table: pd.DataFrame) -> None:
    bytes_axis(axes, "bytes")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", visible=False)
    least = table["size"].min()
    axes.set_xlim(least / 4, table["size"].max() * 8)
    for row, count in enumerate(table["size"]):
        axes.annotate(size(count), (count, row), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8.5)
