"""Points over many runs: efficiency in the order of time, the level of each stretch, and the steps between them."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from kvbench.analysis.differs.trend import ACCEPTED, OPEN, Past, Trend
from kvbench.analysis.measured.columns import table
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import COLOURS, FAINT, INK, PAPER, SHADES, legend_below, panels, tag
from kvbench.units import counted

MOST, CALM = 16, 4  # panels; and of them, at most so many of points without a step: families have all
_COMMIT = 7  # letters of one
_LEVEL, _STEP = COLOURS[0], COLOURS[1]
_LETTERS = 54  # that fit above a panel
_DATE = 10  # characters of one

_RAN = ("run", "created", "environment", "commit")
COLUMNS = {
    "row": "Int64",  # of the points' table
    **dict.fromkeys(("name", "short"), "str"),
    "place": "Int64",  # in the order of time, over all runs of the machine
    **dict.fromkeys(_RAN, "str"),
    "efficiency": "float64",
    "level": "float64",  # median efficiency of the stretch between two steps
    "step": "float64",  # where one begins, as a share of the efficiency before
    "state": "str",  # of that step
}


def trend(past: Past, rows: Sequence[int], name: str, title: str) -> Figure:
    """`rows`: of the points' table, for each of its trends; none for its families."""
    trends, one = (past.trends, "point") if rows else (past.families, "family")
    chosen = _chosen(trends, CALM if rows else MOST)
    lines = [line for place in chosen for line in _lines(past, trends[place], rows[place] if rows else None)]
    shown, every = (sum(bool(each.steps) for each in of) for of in ([trends[place] for place in chosen], trends))
    left = len(trends) - len(chosen)
    about = (
        "Efficiency: the rate of a point as % of the rate of its witness in the same rounds (of a decode a read of the "
        "same rows, of a store a copy); one dot a run, in the order of time. Blue: the median between two steps. The "
        f"background changes where the environment changed. Shown: {shown} of {counted(every, one)} with steps, and "
        f"{len(chosen) - shown} without, those that last moved most. Not drawn: {counted(left, one)}."
    )
    missing = "" if lines else "No point has a rate beside a witness."
    return Figure(name, title, about, table(lines, COLUMNS), _draw, missing)


def _chosen(trends: Sequence[Trend], most_calm: int) -> list[int]:
    """Open steps that lead down first, then those that lead up, then accepted ones; then what moved most of late."""

    def rank(place: int) -> tuple[Any, ...]:
        own = trends[place]
        up = max((step.effect for step in own.open()), default=0.0)
        return (own.worst(), -up, not own.steps, -abs(own.change), own.series.point)

    ranked = sorted(range(len(trends)), key=rank)
    moved = [place for place in ranked if trends[place].steps][:MOST]
    calm = [place for place in ranked if not trends[place].steps]
    return moved + calm[: min(most_calm, MOST - len(moved))]


def _lines(past: Past, own: Trend, row: int | None) -> Iterator[dict[str, Any]]:
    series, steps = own.series, {step.run: step for step in own.steps}
    starts = [0, *(series.runs.index(step.run) for step in own.steps), len(series.runs)]
    levels = [float(np.median(series.efficiency[a:b])) for a, b in pairwise(starts)]
    facts = {"row": row, "name": series.point, "short": past.names[series.point]}
    stretch = -1
    for index, (place, efficiency) in enumerate(zip(series.runs, series.efficiency, strict=True)):
        stretch += index == starts[stretch + 1]
        ran, step = past.runs[place], steps.get(place)
        yield facts | {
            "place": place,
            **{name: getattr(ran, name) for name in _RAN},
            "efficiency": efficiency,
            "level": levels[stretch],
            "step": step.effect if step else math.nan,
            "state": step.state if step else "",
        }


# ---- how it is drawn -------------------------------------------------------------------------------------------------


def _draw(rows: pd.DataFrame) -> Canvas:
    every = [own for _, own in rows.groupby("name", sort=False)]
    figure, axes_of, columns = panels(len(every), 2.3)
    runs = rows.drop_duplicates("place").sort_values("place")
    for place, (axes, own) in enumerate(zip(axes_of, every, strict=True)):
        _grounds(axes, runs)
        _series(axes, own)
        _steps(axes, own)
        axes.set_title(textwrap.shorten(own["short"].iloc[0], _LETTERS * 2 // columns, placeholder=" …"), fontsize=9)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
        axes.set_ylabel("efficiency" if place % columns == 0 else "")
        _dates(axes, runs)
    legend_below(figure, columns=4, handles=_legend(rows, runs))
    return figure


def _grounds(axes: Axes, runs: pd.DataFrame) -> None:
    """One shade for each stretch of runs in one environment."""
    changed = (runs["environment"] != runs["environment"].shift()).cumsum()
    spans = runs.groupby(changed)["place"].agg(["min", "max"]).astype(float)
    for number, span in enumerate(spans.itertuples()):
        axes.axvspan(span.min - 0.5, span.max + 0.5, color=(PAPER, SHADES[1])[number % 2], lw=0, zorder=0)
    axes.set_xlim(spans["min"].min() - 0.5, spans["max"].max() + 0.5)
    axes.grid(visible=False, axis="x")


def _series(axes: Axes, own: pd.DataFrame) -> None:
    (drawn,) = axes.plot(own["place"], own["efficiency"], "o", ms=3, mew=0, color=FAINT)
    if own["row"].notna().all():
        tag(drawn, int(own["row"].iloc[0]))
    stretch = own["step"].notna().cumsum()
    for _, part in own.groupby(stretch):
        ends = [part["place"].iloc[0] - 0.4, part["place"].iloc[-1] + 0.4]
        axes.plot(ends, [part["level"].iloc[0]] * 2, color=_LEVEL, lw=2.2, solid_capstyle="butt")


def _steps(axes: Axes, own: pd.DataFrame) -> None:
    """A line before the first run after it, and above it what it is: words must not rest on colour."""
    low, high = own["efficiency"].min(), own["efficiency"].max()
    reach = max(high - low, 0.01)
    axes.set_ylim(low - 0.06 * reach, high + 0.3 * reach)
    for step in own[own["step"].notna()].itertuples():
        at, is_open = step.place - 0.5, step.state == OPEN
        axes.axvline(at, color=_STEP if is_open else FAINT, lw=1.4, ls="-" if is_open else "--")
        right = at > sum(axes.get_xlim()) / 2
        axes.annotate(f"{step.state} {100 * step.step:+.1f}% {step.commit[:_COMMIT]}".strip(), (at, high + 0.26 * reach), (-4 if right else 4, 0),
                      textcoords="offset points", fontsize=8, va="top", ha="right" if right else "left")  # fmt: skip


def _dates(axes: Axes, runs: pd.DataFrame) -> None:
    """The first day and the last."""
    ends = runs.iloc[[0, -1]] if len(runs) > 1 else runs
    axes.set_xticks(ends["place"].astype(float), [created[:_DATE] for created in ends["created"]], fontsize=8)
    for label, side in zip(axes.get_xticklabels(), ("left", "right"), strict=False):
        label.set_ha(side)


def _legend(rows: pd.DataFrame, runs: pd.DataFrame) -> list[Line2D | Patch]:
    found = [
        Line2D([], [], color=FAINT, ls="", marker="o", ms=4, label="a run"),
        Line2D([], [], color=_LEVEL, lw=2.2, label="median between steps"),
    ]
    if (rows["state"] == OPEN).any():
        found.append(Line2D([], [], color=_STEP, lw=1.4, label="open step"))
    if (rows["state"] == ACCEPTED).any():
        found.append(Line2D([], [], color=FAINT, lw=1.4, ls="--", label="accepted step"))
    if runs["environment"].nunique() > 1:
        found.append(Patch(facecolor=SHADES[1], edgecolor=INK, lw=0.5, label="another environment"))
    return found
