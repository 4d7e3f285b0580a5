"""Decode speed by working set: is it faster if a layer fits in a cache? Reads are shown beside
it.
"""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import staircase as shown
from kvbench.report.figures import look as style
from kvbench.report.figures.look import Figure, Look
from kvbench.units import counted

_WIDE = 0.05  # share of the axis: a wider level has room for its name
_BESIDE = 1.3  # if another state of memory is at most this much faster, a name goes below its line
_NAME: dict[str, Any] = {
    "xycoords": ("axes fraction", "data"),
    "textcoords": "offset points",
    "color": style.FAINT,
}
_WORDS = {"DRAM": "memory", "mixed": "between"}


def staircase(found: Findings, look: Look) -> Figure:
    table = shown.staircase(found)
    points = table[table["kind"] == shown.POINT]
    about = (
        f"The fastest point of each size; {_setting(points)}. Filled: one layer again and again."
        " Hollow: so many layers in turn that they do not fit in the caches. Dots: a plain read of"
        " the same rows. Black: the fastest read of this size, in visits of its own. Dashed: plain"
        " reads of memory in all visits; grey: the range of nine visits of ten. Bars: intervals"
        " over launches."
    )
    missing = "" if len(points) else "No decode has a rate: run kvbench sweep quick."
    title = "Does decode get faster where a layer fits in a cache?"
    return Figure("staircase", title, about, table, lambda shown: _draw(shown, look), missing)


def _setting(points: pd.DataFrame) -> str:
    """What the points have in common: "2 threads, 32 query heads on 8 KV heads of 128, flash,
    avx2".
    """
    if points.empty:
        return ""
    row = points.iloc[0]
    heads = (
        points[["q_heads", "kv_heads", "head_dim"]]
        .drop_duplicates()
        .itertuples(index=False, name=None)
    )
    words = (
        counted(int(row["threads"]), "thread"),
        " and ".join(f"{q:.0f} query heads on {kv:.0f} KV heads of {d:.0f}" for q, kv, d in heads),
        row["variant"],
        f"batch {row['batch']:.0f}" if row["batch"] != 1 else "",
        f"window {row['window']:.0f}" if row["window"] else "",
        row["isa"],
        f"{row['pages']} pages",
    )
    return ", ".join(filter(None, words))


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    figure, (axes,) = style.canvas(height=4.6)
    points, reads = table[table["kind"] == shown.POINT], table[table["kind"] == shown.READ]
    style.rate_axis(axes, "GB/s", log=True)
    _background(axes, table[table["kind"] == shown.LEVEL])
    axes.plot(
        reads["footprint"], reads["gbps"], color=style.INK, lw=1.2, marker="_", ms=8, zorder=2
    )
    for column in ("gbps_low", "gbps_high"):
        axes.plot(reads["footprint"], reads[column], "_", color=style.INK, ms=5, zorder=2)
    axes.vlines(reads["footprint"], reads["gbps_low"], reads["gbps_high"], color=style.INK, lw=1.4)
    states = table[table["kind"] == shown.MEMORY]
    for state in states.itertuples():
        axes.axhspan(state.gbps_low, state.gbps_high, color=style.GRID, lw=0, zorder=0.5)
        axes.axhline(state.gbps, color=style.INK, lw=0.9, ls=(0, (5, 4)), zorder=1)
        if state.visits < state.of_visits:
            words = f"memory in {state.visits:.0f} of {state.of_visits:.0f} visits"
            below = states["gbps"].between(state.gbps, _BESIDE * state.gbps, "right").any()
            end, aside = (state.gbps_low, (0, -11)) if below else (state.gbps_high, (0, 2))
            axes.annotate(words, (0.01, end), aside, fontsize=8.5, **_NAME)
    for _, series in points.groupby(["dtype", "group"], sort=True):
        _series(axes, series.sort_values("footprint"), look, points["group"].nunique() > 1)
    top = max(points["gbps_high"].max(), reads["gbps_high"].max(), 0)
    axes.set_ylim(points["gbps_low"].min() / 1.6, 1.5 * top)
    style.bytes_axis(axes, "working set: bytes read before the first is read again")
    dot: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6.5, "mew": 1.6}
    warm = points["residency"] == style.HOT
    lines: dict[str, dict[str, Any]] = {
        **({"one layer again and again": dot} if warm.any() else {}),
        **({"several layers in turn": dot | {"mfc": style.PAPER}} if not warm.all() else {}),
        "plain read of the same rows": {"color": style.FAINT, "ls": "", "marker": ".", "ms": 5},
        "fastest read of such a size": {"lw": 1.2, "marker": "_"},
        "plain read of memory": {"lw": 0.9, "ls": (0, (5, 4))},
    }
    dtypes = dict.fromkeys(points["dtype"])
    patches = [Patch(color=look.colour(dtype), label=dtype) for dtype in dtypes]
    style.legend_below(figure, 4, [*patches, *style.legend_lines(lines)])
    return figure


def _background(axes: Axes, levels: pd.DataFrame) -> None:
    low, high = levels["footprint"].min(), levels["footprint_end"].max()
    axes.set_xlim(low, high)
    at: dict[str, Any] = {
        "transform": axes.get_xaxis_transform(),
        "ha": "center",
        "va": "top",
        "fontsize": 9,
        "color": style.FAINT,
    }
    for place, level in enumerate(levels.itertuples()):
        axes.axvspan(
            level.footprint, level.footprint_end, color=style.SHADES[place % 2], lw=0, zorder=0
        )
        if math.log(level.footprint_end / level.footprint) > _WIDE * math.log(high / low):
            axes.text(
                math.sqrt(level.footprint * level.footprint_end),
                0.985,
                _WORDS.get(level.short, level.short),
                **at,
            )


def _series(axes: Axes, series: pd.DataFrame, look: Look, named: bool) -> None:
    colour, warm = look.colour(series["dtype"].iloc[0]), series[series["residency"] == style.HOT]
    axes.plot(series["footprint"], series["twin_gbps"], ".", color=style.FAINT, ms=5, zorder=2)
    axes.plot(warm["footprint"], warm["gbps"], color=colour, lw=1.4, zorder=3)
    for point in series.itertuples():
        fill = colour if point.residency == style.HOT else style.PAPER
        drawn = axes.plot(
            [point.footprint] * 2, [point.gbps_low, point.gbps_high], color=colour, lw=0.8, zorder=3
        )
        drawn += axes.plot(
            point.footprint, point.gbps, "o", ms=6.5, color=colour, mfc=fill, mew=1.6, zorder=4
        )
        for part in drawn:
            style.tag(part, int(point.row))
    if named and len(warm):
        first = warm.iloc[0]
        at: dict[str, Any] = {
            "xytext": (0, -9),
            "textcoords": "offset points",
            "ha": "center",
            "va": "top",
            "fontsize": 8.5,
        }
        heads = counted(int(first["group"]), "query head")
        axes.annotate(
            f"{first['dtype']}, {heads} a KV head", (first["footprint"], first["gbps_low"]), **at
        )
