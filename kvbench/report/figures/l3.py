"""How much faster a decode is if its layer stays in L3."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import l3 as shown
from kvbench.report.figures.look import (
    INK,
    PAPER,
    Figure,
    Look,
    canvas,
    legend_below,
    legend_lines,
    rows_axis,
    tag,
)
from kvbench.units import counted

_LINE, _FRAME = 0.5, 1.4  # inches: of a line, and of the frame
_BELOW = 0.25  # of a line: distance to the marks of the other layouts
_ABOUT = (
    "The speed of a decode of one layer that stays in L3, over the same decode from memory, by the"
    " same threads in the same rounds. Large filled mark: the layout of this page's answers, with"
    " its interval over launches. Small marks: the other layouts. At 1, L3 gives no gain."
)


def l3(found: Findings, look: Look) -> Figure:
    table = shown.l3(found)
    missing = "" if len(table) else "No layer in L3 was decoded: run kvbench sweep l3fit."
    title = "How much faster is decode from L3 than from memory?"
    return Figure("l3", title, _ABOUT, table, lambda rows: _draw(rows, look), missing)


def _draw(rows: pd.DataFrame, look: Look) -> Canvas:
    middle = rows[rows["middle"]]
    figure, (axes,) = canvas(height=_FRAME + _LINE * len(middle))
    others = rows[~rows["middle"]]
    for row in others.itertuples():
        (mark,) = axes.plot(
            row.gain,
            row.line + _BELOW,
            look.mark(row.dtype),
            ms=4.5,
            color=look.colour(row.dtype),
            mfc=PAPER,
        )
        tag(mark, row.row)
    for row in middle.itertuples():
        look_of: dict[str, Any] = {"color": look.colour(row.dtype), "zorder": 3}
        drawn = axes.plot([row.gain_low, row.gain_high], [row.line] * 2, lw=1.6, **look_of)
        drawn += axes.plot(row.gain, row.line, look.mark(row.dtype), ms=9, **look_of)
        for part in drawn:
            tag(part, row.row)
        words = f"{row.layout} {row.gain:.2f}x ({row.gain_low:.2f} to {row.gain_high:.2f})"
        small = others[others["line"] == row.line]
        words += "\n" * bool(len(small))
        words += ", ".join(f"{each.layout} {each.gain:.2f}" for each in small.itertuples())
        axes.text(
            1.02, row.line, words, transform=axes.get_yaxis_transform(), va="center", fontsize=9
        )
    axes.axvline(1.0, color=INK, lw=1.2)
    rows_axis(axes, [_name(row) for row in middle.itertuples()])
    axes.set_xlim(left=0)
    axes.set_xlabel("times as fast from L3 as from memory")
    dot: dict[str, Any] = {"ls": "", "marker": "o"}
    meanings = {
        "layout of the answer": dot | {"ms": 9},
        "other layouts": dot | {"ms": 4.5, "mfc": PAPER},
        "interval over launches": {"lw": 1.6},
        "as fast as memory": {"lw": 1.2},
    }
    legend_below(figure, 4, legend_lines(meanings))
    return figure


def _name(row: Any) -> str:
    whose = f"{row.model}, " if row.model else ""
    heads = counted(row.group, "query head")
    return f"{row.dtype}, {heads} a KV head\n{whose}{row.context:,} tokens"
