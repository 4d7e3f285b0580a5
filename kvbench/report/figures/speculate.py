"""How much longer attention takes for several queries a step: a panel for each kind of heads and
context, a line for each dtype.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullLocator

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import speculate as shown
from kvbench.report.figures.look import (
    FAINT,
    INK,
    PAPER,
    Figure,
    Look,
    canvas,
    legend_below,
    legend_lines,
    tag,
    tokens,
)
from kvbench.report.words import said
from kvbench.units import counted

_HEIGHT = 3.0  # inches of a panel
_COLUMNS = 3  # panels beside each other
_TICKS = (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_ROOM = 1.15  # times the highest value: top of the panels
_STYLES = ("-", (0, (4, 1.5)), (0, (1, 1)))  # strokes of lines with the same dtype
_FREE: dict[str, Any] = {"color": FAINT, "lw": 1.2, "ls": (0, (5, 3))}
_NOTHING: dict[str, Any] = {"color": FAINT, "lw": 1.2, "ls": (0, (1, 2))}
_MEANINGS: dict[str, dict[str, Any]] = {
    "as long as so many steps: no gain": _NOTHING,
    "as long as 1 query: verifying is free": _FREE,
    "hollow: the core limits": {"color": INK, "marker": "o", "mfc": PAPER, "ls": ""},
}
_CORE = ("core", "both")  # limits whose marks are hollow


def speculate(found: Findings, look: Look) -> Figure:
    own = found.answers.speculation
    return Figure(
        "speculate",
        said("speculate", "title", own),
        said("speculate", "about", own),
        shown.speculate(found),
        lambda table: _draw(table, look),
    )


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    places = table.groupby(["context", "group", "model"], sort=True)
    kinds = len(set(zip(table["group"], table["model"])))
    columns = min(kinds if kinds > 1 else len(places), _COLUMNS)
    rows = -(-len(places) // columns)
    figure, every = canvas(rows, columns, _HEIGHT, sharex=True, sharey=True)
    counts, most = sorted(set(table["queries"])), _ROOM * table["times_high"].max()
    lines = _lines(table, look)
    for number, axes in enumerate(every):
        axes.set_visible(number < len(places))
    for number, (axes, (place, own)) in enumerate(zip(every, places, strict=False)):
        _panel(axes, own, counts, most, lines)
        context, group, _ = place
        heads = counted(int(group), "query head")
        axes.set_title(f"{heads} a KV head, {tokens(int(context))} tokens", fontsize=9.5)
        if number % columns == 0:
            axes.set_ylabel("times as long as 1 query")
        if number + columns >= len(places):
            axes.set_xlabel("queries a step (drafts + 1)")
            axes.tick_params(labelbottom=True)
    legend_below(figure, 4, legend_lines(lines | _MEANINGS))
    return figure


def _lines(table: pd.DataFrame, look: Look) -> dict[str, dict[str, Any]]:
    """The look of each line. Lines of one dtype have different strokes."""
    found, drawn = dict[str, dict[str, Any]](), dict[str, int]()
    for line, dtype in dict(zip(table["line"], table["dtype"])).items():
        drawn[dtype] = drawn.get(dtype, -1) + 1
        stroke = _STYLES[drawn[dtype] % len(_STYLES)]
        found[line] = {"color": look.colour(dtype), "marker": look.mark(dtype), "ls": stroke}
    return found


def _panel(
    axes: Axes,
    rows: pd.DataFrame,
    counts: list[int],
    most: float,
    lines: dict[str, dict[str, Any]],
) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.plot(counts, counts, **_NOTHING)
    axes.axhline(1, **_FREE)
    for name, own in rows.groupby("line", sort=False):
        line = lines[str(name)]
        # reindex leaves a gap in the line at numbers of queries without a result
        heights = own.set_index("queries")["times"].reindex(counts)
        axes.plot(counts, heights, color=line["color"], lw=1.4, ls=line["ls"])
        for row in own.itertuples():
            _mark(axes, row, line)
    axes.set_xticks(counts, [str(count) for count in counts])
    ticks = [tick for tick in _TICKS if tick <= most]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set_ylim(0.9, most)


def _mark(axes: Axes, row: Any, line: dict[str, Any]) -> None:
    colour = line["color"]
    drawn = axes.plot(
        [row.queries] * 2, [row.times_low, row.times_high], color=INK, lw=0.8, zorder=3
    )
    fill = PAPER if row.limit in _CORE else colour
    drawn += axes.plot(
        row.queries, row.times, line["marker"], color=colour, mfc=fill, ms=5, mew=1.3
    )
    for part in drawn:
        tag(part, int(row.row))
