"""Other engines beside ours: each cell a line, on it the share of a plain read that each engine
reaches.
"""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import peers as shown
from kvbench.model import AGAIN, OURS
from kvbench.report.figures.look import (
    COLOURS,
    INK,
    MARKS,
    PAPER,
    Figure,
    Look,
    canvas,
    legend_below,
    rows_axis,
    tag,
)
from kvbench.report.tables import texts
from kvbench.units import counted

_LINE, _FRAME = 0.26, 1.4  # inches: of a cell, and of what is around
_MISSING = "No peer was measured beside ours: run kvbench peers."


def peers(found: Findings, look: Look) -> Figure:
    table = shown.peers(found)
    return Figure("peers", *texts("peers"), table, _draw, "" if len(table) else _MISSING)


def _draw(rows: pd.DataFrame) -> Canvas:
    order = rows.drop_duplicates("cell").sort_values(["model", "threads", "dtype"], kind="stable")
    lines = {number: place for place, number in enumerate(order["cell"])}
    figure, (axes,) = canvas(height=_FRAME + _LINE * len(lines))
    named = rows[rows["engine"] != AGAIN]
    way = named["variant"].where(named["engine"] == OURS, named["layout"])
    named = named.assign(label=named["engine"] + ", " + way)
    for number, ((peer, label), own) in enumerate(
        named.groupby([named["engine"] != OURS, "label"])
    ):
        look: dict[str, Any] = {
            "color": COLOURS[number % len(COLOURS)] if peer else INK,
            "ms": 6 if peer else 8,
            "mec": PAPER,
        }
        for place, row in enumerate(own.itertuples()):
            look |= {"label": "" if place else label, "ls": "", "zorder": 3}
            tag(
                axes.plot(row.share, lines[row.cell], MARKS[number % len(MARKS)], **look)[0],
                int(row.row),
            )
    axes.axvline(1.0, color=INK, lw=1)
    names = [
        f"{row.model}, {row.dtype}, {counted(row.threads, 'thread')}" for row in order.itertuples()
    ]
    rows_axis(axes, names)
    axes.set_xlim(left=0)
    axes.set_xlabel("share of a plain read of the same rows")
    legend_below(figure, 4)
    return figure
