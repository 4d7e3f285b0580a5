"""What more threads bring, and how many are enough."""

import textwrap
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import POINT
from kvbench.analysis.measured.scaling import KNEE
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import FAINT, INK, Look, legend_below, panels, rate_axis, tag, whiskers

MOST = 6  # panels, one series each
_LINEAR = 16  # threads up to which their axis is linear
_FAR = 1.6  # ceilings so many times above all else leave the picture
_LETTERS = 48  # that fit above half the width

# Of the points, beside what is found of each series.
_FACTS = ("op", "layout", "dtype", "residency", "context")


def saturation(found: Findings, look: Look) -> Figure:
    facts = found.points[["name", *_FACTS]].assign(row=found.points.index)
    every = found.saturation.merge(facts, on="name").astype({"row": "Int64", "context": POINT["context"]})
    chosen = _chosen(every)
    rows = every[every["series"].isin(chosen)].sort_values("series", key=lambda each: each.map(chosen.index))
    about = (
        "GB/s of compulsory bytes by number of threads; bars are intervals over launches. Grey: the twin, the same "
        "reads and nothing else. Dashed: the read ceiling (of stores, the copy ceiling) of such a footprint on the "
        "same threads; where it is far above all else it leaves the picture. Ring: the fewest threads that reach "
        f"{KNEE:.0%} of the best rate of the series; star: the best. "
        f"{_left_out(chosen, every)}"
    )
    missing = "" if len(rows) else "No point was measured with several numbers of threads: run kvbench sweep threads."
    title = "Bandwidth by number of threads"
    return Figure("saturation", title, about, rows.reset_index(drop=True), lambda t: _draw(t, look), missing)


def _chosen(every: pd.DataFrame) -> list[str]:
    """Series with most thread counts, one of each kind first; from memory before others."""
    counts = every.groupby("series")["threads"].transform("nunique")
    last = every.assign(counts=-counts, near=every["regime"] != "DRAM").drop_duplicates("series", keep="last")
    last = last.sort_values(["counts", "near"], kind="stable")
    last = last.assign(turn=last.groupby(["op", "dtype", "regime"]).cumcount())
    return last.sort_values(["counts", "turn", "near"], kind="stable")["series"].head(MOST).tolist()


def _left_out(chosen: list[str], every: pd.DataFrame) -> str:
    series = every["series"].nunique()
    if len(chosen) == series:
        return ""
    return f"{len(chosen)} of {series} series are shown, those with most thread counts; the table of points has all."


# ---- how it is drawn -------------------------------------------------------------------------------------------------


def _draw(rows: pd.DataFrame, look: Look) -> Canvas:
    series = [own for _, own in rows.groupby("series", sort=False)]
    figure, every, columns = panels(len(series), 2.7)
    for place, (axes, own) in enumerate(zip(every, series, strict=True)):
        _panel(axes, own.sort_values("threads", kind="stable"), look)
        axes.set_title(textwrap.fill(own["series"].iloc[0], _LETTERS * 2 // columns), fontsize=9.5)
        rate_axis(axes, "GB/s" if place % columns == 0 else "")
        _threads_axis(axes, own["threads"], place >= len(series) - columns)
    legend_below(figure, columns=3, handles=_legend())
    return figure


def _panel(axes: Axes, own: pd.DataFrame, look: Look) -> None:
    """The lines join the fastest placement of each number of threads; the marks of slower ones stand below."""
    fastest = own.loc[own.groupby("threads")["gbps"].idxmax()]
    axes.plot(_x(fastest), fastest["ceiling_gbps"], color=FAINT, lw=1, ls=(0, (5, 3)), marker="_", ms=9, zorder=2)
    axes.plot(_x(fastest), fastest["twin_gbps"], color=FAINT, lw=1, marker=".", ms=5, zorder=2)
    colour, mark = look.colour(own["dtype"].iloc[0]), look.mark(own["layout"].iloc[0])
    axes.plot(_x(fastest), fastest["gbps"], color=colour, lw=1.4, zorder=3)
    for point in own.fillna({"knee": False, "best": False}).itertuples():
        _point(axes, point, mark, colour)
    axes.margins(x=0.08)
    most = own[["gbps_high", "twin_gbps"]].max(axis=None)
    ceiling = min(own["ceiling_gbps"].max(), _FAR * most) if own["ceiling_gbps"].notna().any() else 0.0
    axes.set_ylim(top=1.18 * max(most, ceiling))


def _point(axes: Axes, point: Any, mark: str, colour: str) -> None:
    row, at, ends = int(point.row), (point.threads, point.gbps), (point.gbps_low, point.gbps_high)
    whiskers(axes, row, at, ends, color=colour, elinewidth=1, capsize=2.5, zorder=3)
    drawn: list[Artist] = axes.plot(*at, mark, color=colour, ms=5, zorder=4)
    if point.knee:
        drawn += axes.plot(*at, "o", ms=13, color=INK, mfc="none", mew=1, zorder=3.5)
    if point.best:
        above = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center", "va": "bottom"}
        drawn.append(axes.annotate("★", (point.threads, point.gbps_high), color=INK, fontsize=11, zorder=5, **above))
    for part in drawn:
        tag(part, row)


def _x(rows: pd.DataFrame) -> pd.Series:
    return rows["threads"].astype(float)


def _threads_axis(axes: Axes, threads: pd.Series, named: bool) -> None:
    if threads.max() > _LINEAR:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2, subs=(1.0,), numticks=10))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))
    axes.set_xlabel("threads" if named else "")


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], color=INK, lw=1.4, marker="o", ms=6, label="kernel, in the colour of its dtype"),
        Line2D([], [], color=FAINT, lw=1, marker=".", ms=5, label="twin"),
        Line2D([], [], color=FAINT, lw=1, ls=(0, (5, 3)), marker="_", ms=9, label="ceiling"),
        Line2D([], [], color=INK, ls="", marker="o", ms=12, mfc="none", label=f"knee: {KNEE:.0%} of the best rate"),
        Line2D([], [], color=INK, ls="", marker="*", ms=9, label="best"),
    ]
