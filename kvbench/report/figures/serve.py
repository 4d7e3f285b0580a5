"""The cost of padding a batch of real requests: the time of a step without and with padding."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from kvbench.analysis.answers.answer import State
from kvbench.analysis.answers.serving import Way
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import serve as shown
from kvbench.report.figures.look import (
    COLOURS,
    FAINT,
    INK,
    PAPER,
    Figure,
    Look,
    canvas,
    legend_below,
    tag,
)
from kvbench.report.words import said
from kvbench.report.words.phrases import number
from kvbench.units import counted

_LINE, _FRAME = 0.3, 1.2  # inches: of a bar, and of a panel's frame
_WORDS = 1.7  # times the longest bar: leaves room for words behind it
_LOOKS: dict[str, dict[str, Any]] = {
    Way.EVEN: {"facecolor": PAPER, "edgecolor": FAINT, "lw": 1.2},
    Way.AS_THEY_ARE: {"color": COLOURS[0]},
    Way.PADDED: {"color": COLOURS[4]},
}
_OPEN = {State.LEVEL: ": level", State.OPEN: ": not decided"}
_MEANINGS = {
    "requests without padding": Way.AS_THEY_ARE,
    "added by padding": Way.PADDED,
    "as many tokens, equal lengths": Way.EVEN,
}


def serve(found: Findings, look: Look) -> Figure:
    own = found.answers.serving
    return Figure(
        "serve",
        said("serve", "title", own),
        said("serve", "about", own),
        shown.serve(found),
        _draw,
    )


def _draw(table: pd.DataFrame) -> Canvas:
    panels = [rows for _, rows in table.groupby("dtype", sort=False)]
    lines = table["line"].max() + 1
    figure, every = canvas(1, len(panels), _FRAME + _LINE * lines, sharey=True, sharex=True)
    for axes, rows in zip(every, panels, strict=True):
        _panel(axes, rows)
    first, rows = every[0], panels[0]
    first.set_yticks(rows["line"], [_name(row) for row in rows.itertuples()], fontsize=9)
    first.set_ylim(lines - 0.4, 0)
    first.set_xlim(0, _WORDS * table["step_ms_high"].max())
    meanings = [Patch(label=name, **_LOOKS[way]) for name, way in _MEANINGS.items()]
    interval = Line2D([], [], color=INK, lw=1.0, label="interval over launches")
    legend_below(figure, handles=[*meanings, interval])
    return figure


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    for row in rows.itertuples():
        _bar(axes, row)
    for batch, own in rows.groupby("batch", sort=False):
        words = counted(int(batch), "request")
        axes.text(0, own["line"].min() - 0.6, words, fontsize=9.5, weight="bold", va="bottom")
    axes.set_title(f"{rows['dtype'].iloc[0]} cache")
    axes.set_xlabel("time of a step, ms (less is better)")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _bar(axes: Axes, row: Any) -> None:
    """Draw a bar. The part beyond the time without padding is added by padding."""
    drawn = [*axes.barh(row.line, row.step_ms, height=0.74, **_LOOKS[row.way])]
    if row.as_they_are_ms > 0:
        drawn += axes.barh(row.line, row.as_they_are_ms, height=0.74, **_LOOKS[Way.AS_THEY_ARE])
    for colour, wide in ((PAPER, 2.6), (INK, 1.0)):
        ends = [row.step_ms_low, row.step_ms_high]
        drawn += axes.plot(ends, [row.line] * 2, color=colour, lw=wide, solid_capstyle="butt")
    for part in drawn:
        tag(part, int(row.row))
    weight = "bold" if row.state == State.DECIDED else "normal"
    axes.annotate(
        _words(row),
        (row.step_ms_high, row.line),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        weight=weight,
    )


def _words(row: Any) -> str:
    found = f"{number(row.step_ms)} ms"
    if pd.isna(row.padding):
        return found
    return f"{found}, {row.padding:.2f}x as long{_OPEN.get(row.state, '')}"


def _name(row: Any) -> str:
    if row.way == Way.EVEN:
        return f"equal: {row.longest:,} each"
    if row.way == Way.PADDED:
        return f"padded: {row.longest:,} each"
    if row.batch == 1:
        return f"{row.longest:,} tokens"
    return f"not padded: {row.shortest:,} to {row.longest:,}"
