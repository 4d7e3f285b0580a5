"""GB/s of the threads of each NUMA node from the memory of each node: a cell for each pair."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.report.figures.look import INK, PAPER, Figure, Look, canvas

_DARK = 0.6  # share of the fastest cell of a row: from there on, numbers are light
_CELL, _HEAD = 0.42, 1.6  # inches of a row, and of the frame
_PANELS = (("read", "Plain reads of the same rows, GB/s"), ("gbps", "Decode, GB/s"))


def numa(found: Findings, look: Look) -> Figure:
    table = pd.DataFrame(list(found.placed))
    about = (
        "Rows: where the threads run, one on each core. Columns: where the memory lies: on one"
        " node, on all nodes page by page (interleave), or each KV head's rows on the node that"
        " reads them (local). In each row, darker is faster. Both panels were timed in the same"
        " rounds."
    )
    return Figure("numa", "What does memory of another node cost?", about, table, _draw)


def _draw(table: pd.DataFrame) -> Canvas:
    rows, columns = (list(dict.fromkeys(table[name])) for name in ("threads", "memory"))
    figure, panels = canvas(1, 2, _HEAD + _CELL * len(rows))
    for axes, (of, title) in zip(panels, _PANELS, strict=True):
        cells = table.pivot(index="threads", columns="memory", values=of).reindex(
            index=rows, columns=columns
        )
        _panel(axes, cells.astype(float), title)
    return figure


def _panel(axes: Axes, cells: pd.DataFrame, title: str) -> None:
    shares = cells.div(cells.max(axis=1), axis=0)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_title(title)
    axes.set_xlabel("memory")
    axes.set_ylabel("threads")
    axes.set_xticks(range(len(cells.columns)), cells.columns, rotation=45, ha="right")
    axes.set_yticks(range(len(cells.index)), cells.index)
    axes.grid(False)
    for y, row in enumerate(cells.index):
        for x, column in enumerate(cells.columns):
            if pd.notna(value := cells.loc[row, column]):
                colour = PAPER if shares.loc[row, column] > _DARK else INK
                axes.text(
                    x,
                    y,
                    f"{value:.{0 if value >= 10 else 1}f}",
                    ha="center",
                    va="center",
                    color=colour,
                )
