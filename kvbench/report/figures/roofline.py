"""The roofline: what memory, caches and the core allow, and how near the fastest decode of each
dtype comes to that.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import roofline as shown
from kvbench.report.figures.look import (
    FAINT,
    GRID,
    INK,
    PAPER,
    Figure,
    Look,
    canvas,
    legend_below,
    legend_lines,
    rate_axis,
    spread,
    tag,
)
from kvbench.report.words.first import machine, workload
from kvbench.report.words.phrases import number, peak
from kvbench.units import counted

_WHERE = {"mixed": "partly cached"}
_HEIGHT = 5.4  # inches
_LINE = 0.042  # height of a label, as a share of the axes' height
_WIDE = 1.03  # ratio from the middle of a core's bar to its end
_BESIDE = 1.3  # if another line is at most this many times as high, a line's name goes below it
_APART = 1.7  # horizontal lines must be this many times apart for two names between them


def roofline(found: Findings, look: Look, day: str) -> Figure:
    """The figure. `day`: the date of the run."""
    table = shown.roofline(found)
    about = (
        "Each mark is a decode. Hollow: the fastest kernel of a dtype, from memory. Filled: decodes"
        " from a cache that this page's answers use. Slanted lines: what plain reads allow (bytes"
        " per second times FLOP per byte); grey: the range of nine visits of ten. Short bar: core"
        " speed of the mark below it, with a dotted line up to the peak of its instructions. All"
        " were measured in this run."
    )
    if (table["suspect"] != "").any():
        about += " Cross: faster than its limit; see Suspects."
    if left := shown.left_out(found, table):
        about += f" Not drawn, because they do no arithmetic: {', '.join(left)}."
    heading = f"Decode attention on {machine(found.answers)}{f', {day}' if day else ''} (kvbench)"
    rows, threads = found.answers.decodes.rows, found.answers.workload.threads
    heading += f"\n{workload(found.answers) if rows else counted(threads, 'thread')}"
    missing = "" if len(table) else "No decode has a rate: run kvbench sweep quick."
    title = "How near does each dtype come to what memory and the core allow?"
    return Figure("roofline", title, about, table, lambda rows: _draw(rows, look, heading), missing)


def _draw(table: pd.DataFrame, look: Look, heading: str) -> Canvas:
    kinds = {kind: table[table["kind"] == kind] for kind in set(table["kind"])}
    nothing = table.iloc[:0]
    points, cores = kinds[shown.POINT], kinds.get(shown.CORE, nothing)
    peaks = kinds.get(shown.PEAK, nothing)
    figure, (axes,) = canvas(height=_HEIGHT)
    axes.set_xscale("log", base=2)
    rate_axis(axes, "GFLOP/s", log=True)
    axes.set_xlim(points["ai"].min() / 4, points["ai"].max() * 2)
    tops = [*points["gflops_high"], *cores["gflops"], *peaks["gflops_high"]]
    axes.set_ylim(points["gflops_low"].min() / 7, 1.6 * max(tops))
    for kind, line in ((shown.MEMORY, "-"), (shown.CACHE, "--")):
        roofs = kinds.get(kind, nothing)
        for roof in roofs.itertuples():
            below = roofs["gbps"].between(roof.gbps, _BESIDE * roof.gbps, inclusive="right").any()
            _slope(axes, roof, peaks["gflops"].max(), line, below)
    _peaks(axes, peaks)
    heights = dict(zip(peaks["computes"], peaks["gflops"], strict=True))
    for core in cores.itertuples():
        _core(axes, core, heights.get(core.computes), look)
    for point in points.itertuples():
        _mark(axes, point, look)
    _labels(axes, points, look)
    axes.set_title(heading, fontsize=10.5, pad=10)
    axes.set_xlabel("FLOP per byte of K, V, scales, query, output and page table")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    legend_below(figure, 5, legend_lines(_meanings(points, cores)))
    return figure


def _meanings(points: pd.DataFrame, cores: pd.DataFrame) -> dict[str, dict[str, Any]]:
    dot: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6.5, "mew": 1.6}
    return {
        "from memory": dot | {"mfc": PAPER},
        **({"from a cache": dot} if (points["regime"] != "DRAM").any() else {}),
        **(
            {"core speed": {"lw": 2.4}, "to its peak": {"lw": 0.9, "ls": ":"}} if len(cores) else {}
        ),
        **(
            {"faster than its limit": {"ls": "", "marker": "x", "ms": 8}}
            if (points["suspect"] != "").any()
            else {}
        ),
    }


def _slope(axes: Axes, roof: Any, most: float, line: str, below: bool) -> None:
    """Draw a slanted line up to the highest peak. `below`: its name goes below it, because another
    line is close above.
    """
    (left, right), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    start = max(left, bottom / roof.gbps)
    end = right if math.isnan(most) else min(right, most / roof.gbps)
    if end < 1.5 * start:
        return
    ends = np.array([start, end])
    if roof.kind == shown.MEMORY:
        low, high = (ends * rate for rate in (roof.gbps_low, roof.gbps_high))
        axes.fill_between(ends, low, high, color=GRID, lw=0, zorder=0.5)
    axes.plot(ends, ends * roof.gbps, color=INK, lw=1.2, ls=line)
    at, words = (
        (1.4 if below else 1.1) * start,
        f"{roof.short or 'Memory'} {number(roof.gbps)} GB/s",
    )
    if roof.kind == shown.MEMORY and roof.visits < roof.of_visits:
        words += f" ({roof.visits} of {roof.of_visits} visits)"
    axes.text(
        at,
        at * roof.gbps * (1 / 1.08 if below else 1.08),
        words,
        rotation=math.degrees(math.atan(roof.gbps)),
        rotation_mode="anchor",
        transform_rotates_text=True,
        ha="left",
        va="top" if below else "bottom",
        fontsize=9,
    )


def _peaks(axes: Axes, peaks: pd.DataFrame) -> None:
    """Draw horizontal lines, each with its name above it. If lines are close together, the name of
    the lowest goes below it, and the other names go above the highest, in their order.
    """
    together = list[list[Any]]()
    for row in peaks.sort_values("gflops").itertuples():
        axes.axhline(row.gflops, color=INK, lw=1.4)
        if together and row.gflops < _APART * together[-1][-1].gflops:
            together[-1].append(row)
        else:
            together.append([row])
    for lowest, *others in together:
        _names(axes, [lowest], below=bool(others))
        if others:
            _names(axes, others)


def _names(axes: Axes, rows: list[Any], below: bool = False) -> None:
    words = [f"{peak(row.computes)} ({row.short}) {number(row.gflops)} GFLOP/s" for row in rows]
    axes.annotate(
        "\n".join(reversed(words)),
        (0.01, rows[-1].gflops),
        (0, -3 if below else 2),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="left",
        va="top" if below else "bottom",
        fontsize=9,
    )


def _core(axes: Axes, core: Any, most: float | None, look: Look) -> None:
    at, colour = core.ai, look.colour(core.dtype)
    drawn = axes.plot([at / _WIDE, at * _WIDE], [core.gflops] * 2, color=colour, lw=2.6, zorder=3)
    tag(drawn[0], core.row)
    if most:
        axes.plot([at, at], [core.gflops, most], color=colour, lw=0.9, ls=":", zorder=1)


def _mark(axes: Axes, point: Any, look: Look) -> None:
    at, colour, mark = point.ai, look.colour(point.dtype), look.mark(point.dtype)
    drawn = axes.plot(
        [at] * 2, [point.gflops_low, point.gflops_high], color=colour, lw=0.9, zorder=3
    )
    fill = PAPER if point.regime == "DRAM" else colour
    drawn += axes.plot(at, point.gflops, mark, ms=7, color=colour, mfc=fill, mew=1.6, zorder=4)
    if point.suspect:
        drawn += axes.plot(at, point.gflops, "x", ms=11, color=INK, mew=1.4, zorder=5)
    for part in drawn:
        tag(part, point.row)


def _labels(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    """Write labels in a column to the right of all marks, each with a line to its mark."""
    low, high = (math.log(end) for end in axes.get_ylim())
    points = points.sort_values("gflops")
    heights = spread([(math.log(rate) - low) / (high - low) for rate in points["gflops"]], _LINE)
    usual = points.mode().iloc[0]
    for point, height in zip(points.itertuples(), heights, strict=True):
        axes.annotate(
            _label(point, usual),
            (point.ai, point.gflops),
            (1.04, height),
            textcoords="axes fraction",
            ha="left",
            va="center",
            fontsize=8.5,
            arrowprops={
                "arrowstyle": "-",
                "color": FAINT,
                "lw": 0.5,
                "shrinkA": 4,
                "shrinkB": 5,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )
        axes.plot(
            1.025,
            height,
            look.mark(point.dtype),
            ms=5,
            color=look.colour(point.dtype),
            mfc=PAPER if point.regime == "DRAM" else look.colour(point.dtype),
            transform=axes.transAxes,
            clip_on=False,
        )


def _label(point: Any, usual: pd.Series) -> str:
    words = [f"{point.dtype} {point.variant}, {point.layout}"]
    if point.group != usual["group"]:
        words.append(f"{counted(point.group, 'query head')} a KV head")
    if point.threads != usual["threads"]:
        words.append(counted(point.threads, "thread"))
    if point.regime != "DRAM":
        words.append(_WHERE.get(point.regime, point.regime))
    tokens = (
        "" if pd.isna(point.tokens_per_second) else f"{number(point.tokens_per_second)} tokens/s, "
    )
    return f"{', '.join(words)}: {tokens}{number(point.gbps)} GB/s"
