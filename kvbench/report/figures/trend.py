"""Points over many runs: efficiency in the order of time, the median between steps, and the
steps.
"""

import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from kvbench.analysis.differs.trend import OPEN, Past
from kvbench.analysis.shown import trend as shown
from kvbench.report.figures.look import (
    COLOURS,
    FAINT,
    Figure,
    legend_below,
    legend_lines,
    panels,
    tag,
)
from kvbench.units import counted

_COMMIT = 7  # letters of one
_LEVEL, _STEP = COLOURS[0], COLOURS[1]
_LETTERS = 54  # that fit above a panel
_DATE = 10  # characters of one


def trend(past: Past, rows: Mapping[str, int], name: str, title: str) -> Figure:
    """The figure of points or families. `rows`: rows of the points' table by point; empty for
    families.
    """
    own, one = shown.trend(past, rows), "point" if rows else "family"
    about = (
        "Efficiency: the rate of a point as % of the rate of its witness in the same rounds (for a"
        " decode, a read of the same rows; for a store, a copy; for a step, a plain read of"
        " memory). One dot for each run, in the order of time."
        f" Blue: the median between two steps. Shown: {own.first} of {counted(own.moved, one)}"
        f" with steps, and {own.calm} without, whose latest run changed most. Not"
        f" drawn: {counted(own.left, one)}."
    )
    missing = "" if len(own.table) else "No point has a rate beside a witness."
    return Figure(name, title, about, own.table, _draw, missing)


def _draw(rows: pd.DataFrame) -> Canvas:
    every = [own for _, own in rows.groupby("name", sort=False)]
    figure, axes_of, columns = panels(len(every), 2.3)
    runs = rows.drop_duplicates("place").sort_values("place").iloc[[0, -1]].drop_duplicates()
    for axes, own in zip(axes_of, every, strict=True):
        (drawn,) = axes.plot(own["place"], own["efficiency"], "o", ms=3, mew=0, color=FAINT)
        if own["row"].notna().all():
            tag(drawn, int(own["row"].iloc[0]))
        axes.step(own["place"], own["level"], where="mid", color=_LEVEL, lw=2.2)
        _steps(axes, own)
        axes.set_title(
            textwrap.shorten(own["short"].iloc[0], _LETTERS * 2 // columns, placeholder=" …"),
            fontsize=9,
        )
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        axes.set_ylabel("efficiency")
        axes.grid(visible=False, axis="x")
        axes.set_xlim(runs["place"].min() - 0.5, runs["place"].max() + 0.5)
        axes.set_xticks(
            runs["place"].astype(float),
            [created[:_DATE] for created in runs["created"]],
            fontsize=8,
        )
        for label, side in zip(axes.get_xticklabels(), ("left", "right"), strict=False):
            label.set(ha=side)
    shown: dict[str, dict[str, Any]] = {
        "a run": {"color": FAINT, "ls": "", "marker": "o", "ms": 4},
        "median between steps": {"color": _LEVEL, "lw": 2.2},
        **{f"{state} step": _step(state) for state in filter(None, rows["state"])},
    }
    legend_below(figure, 4, legend_lines(shown))
    return figure


def _step(state: str) -> dict[str, Any]:
    return {"color": _STEP, "lw": 1.4} if state == OPEN else {"color": FAINT, "lw": 1.4, "ls": "--"}


def _steps(axes: Axes, own: pd.DataFrame) -> None:
    """Mark each step by a line before the first run after it, with its state in words, so that
    colour alone tells nothing.
    """
    low, high = own["efficiency"].min(), own["efficiency"].max()
    reach = max(high - low, 0.01)
    axes.set_ylim(low - 0.06 * reach, high + 0.3 * reach)
    for step in own[own["step"].notna()].itertuples():
        axes.axvline(step.place - 0.5, **_step(step.state))
        right = step.place > own["place"].mean()
        axes.annotate(
            f"{step.state} {100 * step.step:+.1f}% {step.commit[:_COMMIT]}".strip(),
            (step.place - 0.5, high + 0.26 * reach),
            (-4 if right else 4, 0),
            textcoords="offset points",
            fontsize=8,
            va="top",
            ha="right" if right else "left",
        )
