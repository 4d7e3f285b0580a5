"""Latency of memory by the GB/s moved at the same time: a panel for each point with a chase, a line
for each load.
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
    spread,
    tag,
)
from kvbench.report.words import said

_HEIGHT = 3.4  # inches of a panel
_COLUMNS = 3  # panels beside each other
_ROOM = 1.2  # times the highest value: leaves room for words above it
_TALL = 1.6  # times the highest median: a longer p95 is cut off
_GAP = 0.08  # of a panel's height, between lines of words
# marks of plain loads are large and hollow, so that other marks show inside them
_PLAIN: dict[str, Any] = {"mfc": "none", "ms": 8}
_READ: dict[str, Any] = {"color": INK, "marker": "o", "ls": "-"} | _PLAIN
_COPY: dict[str, Any] = {"color": FAINT, "marker": "s", "ls": (0, (4, 1.5))} | _PLAIN
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
    _limits(every[0], table)
    lines = _lines(table, look)
    for axes in every[len(places) :]:
        axes.set_visible(False)
    for number, (axes, rows) in enumerate(zip(every, places, strict=False)):
        _panel(axes, rows, lines)
        place = found.places[number]
        name, away = said("latency", "named", found, place), said("latency", "away", place)
        axes.set_title(f"{name}\n{away}".strip(), fontsize=9.5)
        if number % columns == 0:
            axes.set_ylabel("latency, ns (less is better)")
        if number + columns >= len(places):
            axes.set_xlabel("GB/s, load and chase")
            axes.tick_params(labelbottom=True)
    tail = {"thin: 95% of the steps take no longer": {"color": INK, "lw": 0.7}}
    legend_below(figure, 4, legend_lines(lines | tail))
    return figure


def _limits(axes: Axes, table: pd.DataFrame) -> None:
    """Set the limits of the axes, which all panels share."""
    axes.set_xlim(0, 1.05 * table["gbps"].max())
    tall = min(table["ns_p95"].max(), _TALL * table["ns"].max())
    axes.set_ylim(0, _ROOM * max(tall, table["ns"].max()))


def _lines(table: pd.DataFrame, look: Look) -> dict[str, dict[str, Any]]:
    """The look of each load, by its name. A point has the look of its dtype."""
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
        _name(axes, 0.95, said("latency", "mark", row.times_idle))
    for (load, dtype), own in rows.groupby(["load", "dtype"], sort=False):
        line = lines.get(said("latency", "load", load, dtype))
        if line:
            _curve(axes, idle, own, line)


def _levels(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the horizontal lines. The name of the line of memory stands below it, because curves lie
    above it.
    """
    for row in rows.itertuples():
        axes.axhline(row.ns, color=FAINT, lw=1.1, ls=_LEVELS[row.load], zorder=1)
    found, top = dict(zip(rows["load"], rows["ns"])), axes.get_ylim()[1]
    memory = [found[name] for name in (IDLE, SPIN) if name in found]
    names = [(min(memory) / top - _GAP / 2, said("latency", "levels", *memory))]
    if shown.L3 in found:
        name = said("latency", "near", shown.L3, found[shown.L3])
        names.append((found[shown.L3] / top + _GAP / 2, name))
    wanted, words = zip(*sorted(names), strict=True)
    for height, text in zip(spread(wanted, _GAP), words, strict=True):
        _name(axes, height, text)


def _name(axes: Axes, height: float, text: str) -> None:
    """Write a name at the left, where few GB/s are moved. `height`: share of the panel's height."""
    written = axes.text(0.02, height, text, transform=axes.transAxes, va="center", fontsize=8.5)
    written.set_in_layout(False)


def _curve(axes: Axes, idle: Any, own: pd.DataFrame, line: dict[str, Any]) -> None:
    """Draw the curve of one load, from the idle latency on."""
    across = [idle.gbps, *own["gbps"]]
    axes.plot(across, [idle.ns, *own["ns"]], **(line | {"marker": ""}))
    axes.plot(own["gbps"], own["ns_p95"], **(line | _TAIL))
    for row in own.itertuples():
        drawn = axes.plot([row.gbps] * 2, [row.ns_low, row.ns_high], color=INK, lw=0.8, zorder=3)
        drawn += axes.plot(row.gbps, row.ns, **(line | {"ls": ""}))
        for part in drawn:
            tag(part, int(row.row))
