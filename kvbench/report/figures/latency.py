"""Latency of memory against the GB/s that a load beside it moves: a panel for each point beside
which a thread chases, a line for each load.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.answers.latency import Latency
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import latency as shown
from kvbench.model.chases import COPY, IDLE, READ, SPIN
from kvbench.report.figures.look import (
    FAINT,
    INK,
    Figure,
    Look,
    canvas,
    legend_below,
    legend_lines,
    tag,
)
from kvbench.report.words import said

_HEIGHT = 3.4  # inches of a panel
_COLUMNS = 3  # panels beside each other
_ROOM = 1.2  # times the highest of all: words stand above it
# marks of plain loads are hollow, and stand around those that lie on them
_PLAIN: dict[str, Any] = {"mfc": "none", "ms": 8}
_READ: dict[str, Any] = {"color": INK, "marker": "o", "ls": "-"} | _PLAIN
_COPY: dict[str, Any] = {"color": FAINT, "marker": "s", "ls": (0, (4, 1.5))} | _PLAIN
_MARK = ("color", "marker", "mfc", "ms")
_TAIL: dict[str, Any] = {"lw": 0.7, "marker": ""}
_LEVELS: dict[str, Any] = {  # strokes of horizontal lines
    IDLE: (0, (5, 3)),
    SPIN: (0, (3, 2, 1, 2)),
    shown.L3: (0, (1, 2)),
}


def latency(found: Findings, look: Look) -> Figure:
    own = found.answers.latency
    return Figure(
        "latency",
        said("latency", "title", own),
        said("latency", "about", own, found.answers.virtual),
        shown.latency(found),
        lambda table: _draw(table, own, look),
    )


def _draw(table: pd.DataFrame, found: Latency, look: Look) -> Canvas:
    places = [rows for _, rows in table.groupby("place")]
    columns = min(len(places), _COLUMNS)
    figure, every = canvas(-(-len(places) // columns), columns, _HEIGHT, sharex=True, sharey=True)
    lines = _lines(table, look)
    for axes in every[len(places) :]:
        axes.set_visible(False)
    for number_, (axes, place, rows) in enumerate(zip(every, found.places, places, strict=False)):
        _panel(axes, rows, lines)
        axes.set_title(said("latency", "place", found, place), fontsize=9.5)
        if number_ % columns == 0:
            axes.set_ylabel("ns of a load (less is better)")
        if number_ + columns >= len(places):
            axes.set_xlabel("GB/s, load and chase")
            axes.tick_params(labelbottom=True)
    every[0].set_xlim(0, 1.05 * table["gbps_high"].max())
    every[0].set_ylim(0, _ROOM * table[["ns_high", "ns_p95_high", "ns"]].max(axis=None))
    tail = {"thin: 95% of the steps take no longer": {"color": INK, "lw": 0.7}}
    legend_below(figure, 4, legend_lines(lines | tail))
    return figure


def _lines(table: pd.DataFrame, look: Look) -> dict[str, dict[str, Any]]:
    """How each load looks, by its name; a point has the look of its dtype."""
    found = dict[str, dict[str, Any]]()
    for load, op, dtype in dict.fromkeys(zip(table["load"], table["op"], table["dtype"])):
        if load in (READ, COPY, op):
            own = {"color": look.colour(dtype), "marker": look.mark(dtype), "ls": "-", "ms": 5}
            name = said("latency", "load", load, dtype)
            found[name] = {READ: _READ, COPY: _COPY}.get(load, own) | {"lw": 1.4}
    return found


def _panel(axes: Axes, rows: pd.DataFrame, lines: dict[str, dict[str, Any]]) -> None:
    idle = rows[rows["load"] == IDLE].iloc[0]
    _levels(axes, rows[rows["load"].isin(_LEVELS)])
    for row in rows[rows["load"] == shown.BUSY].itertuples():
        axes.axvline(row.gbps, color=FAINT, lw=0.9, ls=(0, (1, 2)))
        axes.annotate(
            said("latency", "mark", row.times_idle),
            (row.gbps, 1),
            (-3, -3),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8.5,
            in_layout=False,
        )
    for (load, dtype), own in rows.groupby(["load", "dtype"], sort=False):
        line = lines.get(said("latency", "load", load, dtype))
        if line:
            _curve(axes, idle, own, line)


def _levels(axes: Axes, rows: pd.DataFrame) -> None:
    """Horizontal lines; the curves lie above those of memory, so that their name stands below."""
    for row in rows.itertuples():
        axes.axhline(row.ns, color=FAINT, lw=1.1, ls=_LEVELS[row.load], zorder=1)
    found = dict(zip(rows["load"], rows["ns"]))
    memory = [found[name] for name in (IDLE, SPIN) if name in found]
    _name(axes, min(memory), said("latency", "levels", *memory), below=True)
    if shown.L3 in found:
        _name(axes, found[shown.L3], said("latency", "near", shown.L3, found[shown.L3]))


def _name(axes: Axes, height: float, words: str, below: bool = False) -> None:
    axes.annotate(
        words,
        (0, height),
        (4, -3 if below else 3),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="top" if below else "bottom",
        fontsize=8.5,
        in_layout=False,
    )


def _curve(axes: Axes, idle: Any, own: pd.DataFrame, line: dict[str, Any]) -> None:
    """From the idle chase on."""
    stroke = {name: line[name] for name in ("color", "ls", "lw")}
    across = [idle.gbps, *own["gbps"]]
    axes.plot(across, [idle.ns, *own["ns"]], **stroke)
    axes.plot(own["gbps"], own["ns_p95"], **(stroke | _TAIL))
    for row in own.itertuples():
        drawn = axes.plot([row.gbps] * 2, [row.ns_low, row.ns_high], color=INK, lw=0.8, zorder=3)
        drawn += axes.plot(
            row.gbps, row.ns, **{name: line[name] for name in _MARK if name in line}, ls=""
        )
        for part in drawn:
            tag(part, int(row.row))
