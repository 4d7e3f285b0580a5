"""Other engines beside ours: each cell a line, on it the share of a plain read that each engine reaches."""

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.peers import PEERS
from kvbench.model import AGAIN, OURS
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import COLOURS, INK, MARKS, PAPER, Look, canvas, legend_below, tag
from kvbench.report.words.peers import ABOUT, MISSING, TITLE
from kvbench.units import counted

_LINE, _FRAME = 0.26, 1.4  # inches: of a cell, and of what is around


def peers(found: Findings, look: Look) -> Figure:
    rows = found.peers[found.peers["share"].notna()]
    places = dict(zip(found.points["name"], found.points.index, strict=True))
    shown = rows.assign(row=rows["name"].map(places)) if len(rows) else pd.DataFrame(columns=[*PEERS, "row"])
    return Figure("peers", TITLE, ABOUT, shown, _draw, "" if len(rows) else MISSING)


def _draw(rows: pd.DataFrame) -> Canvas:
    order = rows.drop_duplicates("cell").sort_values(["model", "threads", "dtype"], kind="stable")
    lines = {number: place for place, number in enumerate(order["cell"])}
    figure, (axes,) = canvas(height=_FRAME + _LINE * len(lines))
    kinds = list(rows[["engine", "layout"]].drop_duplicates().itertuples(index=False, name=None))
    kinds = sorted((kind for kind in kinds if kind[0] not in (OURS, AGAIN)), key=str)
    for number, (engine, layout) in enumerate([(OURS, ""), *kinds]):
        own = rows[rows["engine"] == engine]
        own = own if engine == OURS else own[own["layout"] == layout]
        colour = INK if engine == OURS else COLOURS[(number - 1) % len(COLOURS)]
        label = engine if engine == OURS else f"{engine}, {layout}"
        for place, row in enumerate(own.itertuples()):
            facts = {"color": colour, "ms": 8 if engine == OURS else 6, "mec": PAPER, "ls": "", "zorder": 3}
            mark = axes.plot(
                row.share, lines[row.cell], MARKS[number % len(MARKS)], label="" if place else label, **facts
            )
            tag(mark[0], int(row.row))
    axes.axvline(1.0, color=INK, lw=1)
    names = [f"{row.model}, {row.dtype}, {counted(row.threads, 'thread')}" for row in order.itertuples()]
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("share of a plain read of the same rows")
    legend_below(figure, 4)
    return figure
