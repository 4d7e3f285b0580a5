"""The roofline: what memory, the caches and the core allow, and how near the fastest decode of each
dtype comes.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.limits.frames import decodes_of
from kvbench.analysis.means.findings import Findings
from kvbench.model import Ceiling
from kvbench.report.figures.look import (
    FAINT,
    INK,
    PAPER,
    Figure,
    Look,
    canvas,
    legend_below,
    legend_lines,
    rate_axis,
    tag,
)
from kvbench.report.words.first import machine, workload
from kvbench.report.words.phrases import number
from kvbench.units import counted, cpu_text

_LEVELS = ("L1", "L2", "L3", "DRAM")  # other regimes are no level of the machine
_NAMES = {"DRAM": "Memory"}
_WHERE = {"mixed": "partly cached"}
_CLOSE = 1.3  # times as fast: of lines that lie nearer the faster one is left out
_HEIGHT = 5.0  # inches
_LINE = 0.046  # of the height of the axes: of a label

_SAME = [
    "layout",
    "dtype",
    "group",
    "residency",
    "context",
    "footprint",
    "regime",
    "above",
    "ai",
    "ai_issued",
    "gflops",
    "gbps",
    "tokens_per_second",
]
COLUMNS = ["kind", "row", "short", *_SAME, "gflops_low", "gflops_high"]


def roofline(found: Findings, look: Look, day: str) -> Figure:
    """Of the CPU set with most threads. `day`: of the run."""
    every = decodes_of(found.points)
    every = every[every["ai"].notna()]
    own = (
        every[every["cpus"] == every.loc[every["threads"].idxmax(), "cpus"]]
        if len(every)
        else every
    )
    tokens = {bar.name: bar.tokens_per_second.value for bar in found.headline.bars}
    rows = [*_roofs(found.ceilings, own), *_points(own, tokens)] if len(own) else []
    about = (
        "Each mark is the fastest decode of a dtype (where heads differ, of each number of query"
        " heads a KV head): hollow from memory, filled with its data in a cache. Slanted lines:"
        " what reads from memory or a cache allow (bytes per second times FLOP per byte). Level"
        " line: multiply-add peak. Short bar: core speed, the same kernel in a private cache. All"
        " were measured in this run, by the same threads. A cross marks a point above a limit,"
        " explained in the table."
    )
    heading = f"Decode attention on {machine(found.answers)}{f', {day}' if day else ''} (kvbench)"
    heading += f"\ntokens/s: {workload(found.answers)}" if tokens else ""
    missing = "" if rows else "No decode has a rate: run kvbench sweep quick."
    title = "How near does each dtype come to what memory and the core allow?"
    table = pd.DataFrame(rows, columns=COLUMNS)
    return Figure(
        "roofline", title, about, table, lambda shown: _draw(shown, look, heading), missing
    )


def _points(points: pd.DataFrame, tokens: dict[str, float]) -> Iterator[dict[str, Any]]:
    """The fastest of each dtype and group, from memory and from caches; from memory rather one
    whose tokens per second are known.
    """
    rates = {f"gflops_{end}": points[f"gbps_{end}"] * points["ai"] for end in ("low", "high")}
    ranked = points.assign(**rates, tokens_per_second=points["name"].map(tokens).astype(float))
    ranked = ranked.assign(
        known=points["name"].isin(tokens), near=points["regime"] != "DRAM", row=points.index
    )
    ranked = ranked.sort_values(["known", "gflops"], ascending=False, kind="stable")
    for facts in ranked.drop_duplicates(["dtype", "group", "near"]).to_dict("records"):
        yield {"kind": "point", "short": facts["short"]} | {
            n: facts[n] for n in ("row", *_SAME, *rates)
        }


def _roofs(ceilings: Iterable[Ceiling], points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The best read of each level, and the FMA peak, by the instruction set and threads of the
    points.
    """
    first = points.iloc[0]
    own = [
        c
        for c in ceilings
        if (cpu_text(c.probe.cpus), c.probe.isa) == (first["cpus"], first["isa"])
    ]
    for level in _LEVELS:
        reads = [
            c
            for c in own
            if c.probe.op == "read" and c.level == level and c.probe.pages == first["pages"]
        ]
        if reads:
            yield {"kind": "read ceiling", "short": level, "gbps": max(c.median for c in reads)}
    for c in own:
        if c.probe.op == "flops":
            rates = {"gflops": c.median, "gflops_low": c.low, "gflops_high": c.high}
            yield {"kind": "FMA peak", "short": c.probe.isa} | rates
    known = points[points["core_gbps"].notna()]
    for (dtype, group), alike in known.assign(roof=known["core_gbps"] * known["ai"]).groupby(
        ["dtype", "group"]
    ):
        best = alike.loc[alike["roof"].idxmax()]
        same = {"short": best["short"], "dtype": dtype, "group": group, "ai": best["ai"]}
        yield {"kind": "core speed", "gflops": best["roof"]} | same


def _draw(table: pd.DataFrame, look: Look, heading: str) -> Canvas:
    points, reads = table[table["kind"] == "point"], table[table["kind"] == "read ceiling"]
    peaks, cores = table[table["kind"] == "FMA peak"], table[table["kind"] == "core speed"]
    figure, (axes,) = canvas(height=_HEIGHT)
    axes.set_xscale("log", base=2)
    rate_axis(axes, "GFLOP/s", log=True)
    left = points["ai"].min() / 6
    axes.set_xlim(left, points["ai"].max() * 1.6)
    tops = [*points["gflops_high"], *cores["gflops"], *peaks["gflops"]]
    axes.set_ylim(points["gflops_low"].min() / 5, 2.0 * max(tops))
    _slopes(axes, reads.sort_values("gbps"), peaks["gflops"].max())
    for peak in peaks.itertuples():
        axes.axhline(peak.gflops, color=INK, lw=1.4)
        words = f"Multiply-add peak ({peak.short}) {number(peak.gflops)} GFLOP/s"
        axes.text(left * 1.06, peak.gflops * 1.03, words, ha="left", va="bottom", fontsize=9)
    for core in cores.itertuples():
        axes.plot(
            [core.ai / 1.1, core.ai * 1.1], [core.gflops] * 2, color=look.colour(core.dtype), lw=2.4
        )
    for point in points.itertuples():
        _mark(axes, point, look)
    _labels(axes, points, look)
    axes.set_title(heading, fontsize=10.5, pad=10)
    axes.set_xlabel("FLOP per byte of K, V, scales, query, output and page table")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    dot: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6.5, "mew": 1.6}
    cross: dict[str, Any] = {"ls": "", "marker": "x", "ms": 8}
    shown = {
        "from memory": dot | {"mfc": PAPER},
        "core speed": {"lw": 2.4},
        **({"data in a cache": dot} if (points["regime"] != "DRAM").any() else {}),
        **({"above a limit": cross} if (points["above"] != "").any() else {}),
    }
    legend_below(figure, 4, legend_lines(shown))
    return figure


def _slopes(axes: Axes, reads: pd.DataFrame, peak: float) -> None:
    """They stop where the core stops them. A cache that reads hardly faster than the one behind it
    has none.
    """
    (left, right), (bottom, _), before = axes.get_xlim(), axes.get_ylim(), 0.0
    turned: dict[str, Any] = {
        "rotation_mode": "anchor",
        "transform_rotates_text": True,
        "ha": "left",
        "va": "bottom",
        "fontsize": 9,
    }
    for roof in reads.itertuples():
        start = max(left, bottom / roof.gbps)
        end = min(right, peak / roof.gbps) if not math.isnan(peak) else right
        if roof.gbps < _CLOSE * before or end < 1.5 * start:
            continue
        before = roof.gbps
        style = "-" if roof.short == "DRAM" else "--"
        axes.plot([start, end], [start * roof.gbps, end * roof.gbps], color=INK, lw=1.2, ls=style)
        words, at = (
            f"{_NAMES.get(roof.short, roof.short)} read {number(roof.gbps)} GB/s",
            1.1 * start,
        )
        axes.text(
            at, 1.08 * at * roof.gbps, words, rotation=math.degrees(math.atan(roof.gbps)), **turned
        )


def _mark(axes: Axes, point: Any, look: Look) -> None:
    colour = look.colour(point.dtype)
    drawn = axes.plot(
        [point.ai] * 2, [point.gflops_low, point.gflops_high], color=colour, lw=0.8, zorder=3
    )
    fill = PAPER if point.regime == "DRAM" else colour
    drawn += axes.plot(
        point.ai, point.gflops, "o", ms=6.5, color=colour, mfc=fill, mew=1.6, zorder=4
    )
    if point.above:
        drawn += axes.plot(point.ai, point.gflops, "x", ms=10, color=INK, zorder=5)
    for part in drawn:
        tag(part, int(point.row))


def _labels(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    """In a column to the right of all marks, each with a line to its own."""
    low, high = (math.log(end) for end in axes.get_ylim())
    points = points.sort_values("gflops")
    heights = spread([(math.log(rate) - low) / (high - low) for rate in points["gflops"]], _LINE)
    most = points["group"].mode()[0]
    for point, height in zip(points.itertuples(), heights, strict=True):
        heads = (
            "" if point.group == most else f", {counted(int(point.group), 'query head')} a KV head"
        )
        where = "" if point.regime == "DRAM" else f", {_WHERE.get(point.regime, point.regime)}"
        tokens = (
            ""
            if pd.isna(point.tokens_per_second)
            else f"{number(point.tokens_per_second)} tokens/s, "
        )
        words = f"{point.dtype}{heads}{where}: {tokens}{number(point.gbps)} GB/s"
        line = {
            "arrowstyle": "-",
            "color": FAINT,
            "lw": 0.6,
            "shrinkA": 4,
            "shrinkB": 5,
            "relpos": (0, 0.5),
        }
        axes.annotate(
            words,
            (point.ai, point.gflops),
            (1.04, height),
            textcoords="axes fraction",
            ha="left",
            va="center",
            fontsize=8.5,
            arrowprops=line,
            annotation_clip=False,
        )
        axes.plot(
            1.025,
            height,
            "o",
            ms=5,
            color=look.colour(point.dtype),
            transform=axes.transAxes,
            clip_on=False,
        )


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places near the wanted ones, which rise, each `gap` or more above the last, and none above
    all axes.
    """
    found: list[float] = []
    for place in wanted:
        found.append(max(place, found[-1] + gap) if found else place)
    shift = (sum(found) - sum(wanted)) / len(wanted)
    return [place - max(shift, found[-1] - 1) for place in found]
