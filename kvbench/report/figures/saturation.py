"""What more threads bring, and how many are enough."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import POINT
from kvbench.analysis.measured.scaling import KNEE
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import FAINT, INK, Look, legend_below, panels, rate_axis, spread, tag, whiskers

MOST = 6  # series of a panel
_LINEAR = 16  # threads up to which their axis is linear
_LINE = 0.06  # of the height of a panel: of a label

# Of the points, beside what is found of each series.
_FACTS = ("op", "layout", "dtype", "residency", "context", "short")


def saturation(found: Findings, look: Look) -> Figure:
    facts = found.points[["name", *_FACTS]].assign(row=found.points.index)
    every = found.saturation.merge(facts, on="name").astype({"row": "Int64", "context": POINT["context"]})
    every = every[every["op"] == "decode"].assign(
        where=every["regime"].eq("DRAM").map({True: "memory", False: "a cache"})
    )
    chosen = _chosen(every)
    rows = every[every["series"].isin(chosen)].sort_values(
        ["where", "series", "threads"], ascending=[False, True, True]
    )
    about = (
        "GB/s of decode by number of threads, one context of each layout and dtype. Bars are intervals over launches. Dashed: the fastest read of memory by "
        f"the same threads. Ring: the fewest threads that reach {KNEE:.0%} of the best rate."
    )
    missing = "" if len(rows) else "No decode was measured with several numbers of threads: run kvbench sweep threads."
    return Figure(
        "saturation", "Do more threads help?", about, rows.reset_index(drop=True), lambda t: _draw(t, look), missing
    )


def _chosen(every: pd.DataFrame) -> list[str]:
    """Of each layout and dtype the series with most thread counts; of these those with most."""
    counts = every.groupby("series")["threads"].transform("nunique")
    last = every.assign(counts=-counts).drop_duplicates("series", keep="last").sort_values("counts", kind="stable")
    return last.drop_duplicates(["where", "layout", "dtype"]).groupby("where").head(MOST)["series"].tolist()


# ---- how it is drawn -------------------------------------------------------------------------------------------------


def _draw(rows: pd.DataFrame, look: Look) -> Canvas:
    every = [own for _, own in rows.groupby("where", sort=False)]
    figure, panels_, _ = panels(len(every), 3.6)
    for axes, own in zip(panels_, every, strict=True):
        _panel(axes, own, look)
        axes.set_title(f"Decode from {own['where'].iloc[0]}")
        rate_axis(axes, "GB/s")
        _threads_axis(axes, own["threads"])
    legend_below(figure, columns=2, handles=_legend(rows))
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, look: Look) -> None:
    """The lines join the fastest placement of each number of threads; the marks of slower ones stand below."""
    memory = rows[rows["where"] == "memory"].groupby("threads")["ceiling_gbps"].max()
    axes.plot(memory.index.astype(float), memory, color=FAINT, lw=1, ls=(0, (5, 3)), zorder=2)
    series = [own for _, own in rows.groupby("series", sort=False)]
    for own in series:
        fastest = own.loc[own.groupby("threads")["gbps"].idxmax()]
        colour = look.colour(own["dtype"].iloc[0])
        axes.plot(fastest["threads"].astype(float), fastest["gbps"], color=colour, lw=1.2, zorder=3)
        for point in own.itertuples():
            row, at = int(point.row), (point.threads, point.gbps)
            whiskers(axes, row, point.threads, (point.gbps_low, point.gbps_high), color=colour, zorder=3)
            tag(axes.plot(*at, "o", color=colour, ms=5, zorder=4)[0], row)
            if pd.notna(point.knee) and point.knee:
                tag(axes.plot(*at, "o", ms=12, color=INK, mfc="none", mew=1, zorder=3.5)[0], row)
    top = 1.12 * max(rows["gbps_high"].max(), memory.max() if len(memory) else 0)
    axes.set_ylim(0, top)
    ends = [own.loc[own["threads"].idxmax()] for own in series]
    for end, height in zip(ends, spread([end["gbps"] / top for end in ends], _LINE), strict=True):
        words = f"{end['dtype']}, {end['layout']}"
        axes.text(1.02, height, words, transform=axes.transAxes, va="center", fontsize=8.5)


def _threads_axis(axes: Axes, threads: pd.Series) -> None:
    if threads.max() > _LINEAR:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2, subs=(1.0,), numticks=10))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))
    axes.set_xlabel("threads")
    axes.margins(x=0.08)


def _legend(rows: pd.DataFrame) -> list[Line2D]:
    found = [Line2D([], [], color=INK, ls="", marker="o", ms=12, mfc="none", label=f"{KNEE:.0%} of the best rate")]
    if (rows["where"] == "memory").any():
        found.append(Line2D([], [], color=FAINT, lw=1, ls=(0, (5, 3)), label="fastest read of memory"))
    return found
