"""Decode speed by working set: whether it gets faster where a layer fits in a cache, beside what
reads reach there.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from kvbench.analysis.limits.frames import decodes_of
from kvbench.analysis.means.findings import Findings
from kvbench.model import Ceiling, Machine
from kvbench.regime import classify
from kvbench.report.figures import look as style
from kvbench.report.figures.choice import setting, usual
from kvbench.report.figures.look import Figure, Look
from kvbench.units import counted, cpu_text

STEPS = 400  # of the axis, to find where levels begin and end
SPAN = 4.0  # a series climbs stairs where its working sets differ by more than this
_WIDE = 0.05  # of the axis: a level that has room for its name
_HEADS = ("q_heads", "kv_heads", "head_dim")
_WORDS = {"DRAM": "memory", "mixed": "between"}

_SAME = [
    "layout",
    "dtype",
    "group",
    "residency",
    "context",
    "regime",
    "gbps",
    "gbps_low",
    "gbps_high",
    "twin_gbps",
]
COLUMNS = ["kind", "row", "short", "threads", "cpus", *_SAME, "footprint", "footprint_end"]


def staircase(found: Findings, look: Look) -> Figure:
    points = _stairs(decodes_of(found.points))
    threads = int(points["threads"].iloc[0]) if len(points) else 0
    about = (
        f"The fastest point of each size, {counted(threads, 'thread')}; {setting(points)}. Filled:"
        " one layer again and again. Hollow: all layers in turn, as a decoder does. Dots: a plain"
        " read of the same rows. Black: the fastest read of such a size in this run. Dashed: the"
        " fastest read of memory. Bars: intervals over launches."
    )
    missing = "" if len(points) else "No decode has a rate: run kvbench sweep quick."
    table = pd.DataFrame(_rows(found, points) if len(points) else [], columns=COLUMNS)
    title = "Does decode get faster where a layer fits in a cache?"
    return Figure("staircase", title, about, table, lambda shown: _draw(shown, look), missing)


def _stairs(every: pd.DataFrame) -> pd.DataFrame:
    """Of the CPU set with most threads: dtypes and heads that were taken to several levels, or all
    where none was; of the heads that most points have, and of those with fewest query heads a KV
    head, where the core is least in the way.
    """
    if every.empty:
        return every
    points = usual(every, _HEADS)
    points = points[points["cpus"] == points.loc[points["threads"].idxmax(), "cpus"]]
    sizes = points.groupby(["dtype", *_HEADS])["footprint"]
    tall = points[sizes.transform("max") > SPAN * sizes.transform("min")]
    if len(tall):
        fewest = tall[tall["group"] == tall["group"].min()]
        points = tall.loc[sorted({*usual(tall).index, *usual(fewest).index})]
    fastest = points.assign(size=np.log2(points["footprint"].astype(float)).round(1))
    fastest = fastest.sort_values("gbps", ascending=False, kind="stable")
    fastest = fastest.drop_duplicates(["dtype", "group", "residency", "size"])
    return fastest.sort_values(["dtype", "group", "footprint"])


def _rows(found: Findings, points: pd.DataFrame) -> list[dict[str, Any]]:
    first = points.iloc[0]
    reads = list(_reads(found.ceilings, first))
    own = points.assign(kind="point", row=points.index)
    sizes = [*points["footprint"], *(read["footprint"] for read in reads)]
    cpus = found.cpus[first["name"]]
    levels = _levels(found.machine, cpus, min(sizes) / 1.5, max(sizes) * 1.5)
    rows = [*levels, *reads, *own[["kind", "row", "short", "footprint", *_SAME]].to_dict("records")]
    return [{"threads": int(first["threads"]), "cpus": first["cpus"]} | row for row in rows]


def _reads(ceilings: Iterable[Ceiling], point: pd.Series) -> Iterator[dict[str, Any]]:
    """Of the point's threads, instruction set and pages: the better form of each size."""
    own = [c for c in ceilings if c.probe.op == "read" and cpu_text(c.probe.cpus) == point["cpus"]]
    own = [c for c in own if (c.probe.isa, c.probe.pages) == (point["isa"], point["pages"])]
    for count, alike in groupby(
        sorted(own, key=lambda c: c.probe.bytes), key=lambda c: c.probe.bytes
    ):
        best = max(alike, key=lambda c: c.median)
        rates = {"gbps": best.median, "gbps_low": best.low, "gbps_high": best.high}
        yield {
            "kind": "read",
            "short": "fastest read",
            "regime": best.level,
            "footprint": count,
        } | rates


def _levels(
    machine: Machine, cpus: tuple[int, ...], low: float, high: float
) -> Iterator[dict[str, Any]]:
    """Where each begins and ends between two sizes."""
    start = low
    for word, sizes in groupby(
        np.geomspace(low, high, STEPS), lambda size: classify(machine, cpus, size).word
    ):
        *_, end = sizes
        yield {"kind": "level", "short": word, "footprint": start, "footprint_end": end}
        start = end


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    figure, (axes,) = style.canvas(height=4.6)
    points, reads = table[table["kind"] == "point"], table[table["kind"] == "read"]
    style.rate_axis(axes, "GB/s", log=True)
    _background(axes, table[table["kind"] == "level"])
    axes.plot(
        reads["footprint"], reads["gbps"], color=style.INK, lw=1.2, marker="_", ms=8, zorder=2
    )
    axes.vlines(reads["footprint"], reads["gbps_low"], reads["gbps_high"], color=style.INK, lw=0.8)
    memory = reads.loc[reads["regime"] == "DRAM", "gbps"].max()
    if not math.isnan(memory):
        axes.axhline(memory, color=style.INK, lw=0.9, ls=(0, (5, 4)), zorder=1)
    for _, series in points.groupby(["dtype", "group"], sort=True):
        _series(axes, series.sort_values("footprint"), look, points["group"].nunique() > 1)
    axes.set_ylim(
        points["gbps_low"].min() / 1.6, 1.5 * max(points["gbps_high"].max(), reads["gbps"].max(), 0)
    )
    style.bytes_axis(axes, "working set: bytes read before the first is read again")
    dot: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6.5, "mew": 1.6}
    warm = points["residency"] == style.HOT
    lines: dict[str, dict[str, Any]] = {
        **({"one layer again and again": dot} if warm.any() else {}),
        **({"all layers in turn": dot | {"mfc": style.PAPER}} if not warm.all() else {}),
        "plain read of the same rows": {"color": style.FAINT, "ls": "", "marker": ".", "ms": 5},
        "fastest read of such a size": {"lw": 1.2, "marker": "_"},
        "fastest read of memory": {"lw": 0.9, "ls": (0, (5, 4))},
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
