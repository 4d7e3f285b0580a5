"""Arithmetic intensity against FLOP/s: which roof a point is under, and how far below it."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from kvbench.analysis.means.diagnosis.bandwidth import decodes_of
from kvbench.analysis.means.findings import Findings
from kvbench.model import Ceiling
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import GRID, INK, PAPER, Look, canvas, legend_below, rate_axis, tag
from kvbench.units import counted, cpu_text

_LEVELS = ("L1", "L2", "L3", "DRAM")  # other regimes are no level of the machine
_CLOSE, _ASIDE = 1.25, 2.0  # lines nearer than that have their labels so far apart
_MARGIN = 2.5  # times the intensity at the left end: room for a label beside the first mark
_LABEL = 0.06  # of all points' room, what the name of a group takes

COLUMNS = ("kind", "row", "label", "layout", "dtype", "group", "residency", "context", "footprint", "regime", "above")
COLUMNS += ("ai", "ai_issued", "gflops", "gflops_low", "gflops_high", "gbps")


def rooflines(found: Findings, look: Look) -> list[Figure]:
    """One for each CPU set, the one with most threads first; at least one, which may have nothing to show."""
    every = decodes_of(found.points)
    every = every[every["ai"].notna()]
    if every.empty:
        return [_figure("roofline", "", [], look, "No decode point has a rate: run kvbench sweep quick.")]
    sets = every[["threads", "cpus"]].drop_duplicates().sort_values(["threads", "cpus"], ascending=[False, True])
    figures = []
    for place, (threads, cpus) in enumerate(zip(sets["threads"].tolist(), sets["cpus"], strict=True)):
        own = every[every["cpus"] == cpus]
        rows = [*_roofs(found.ceilings, own), *_cores(own), *_points(own)]
        name = "roofline" if not place else f"roofline-cpu{cpus.replace(',', '.')}"
        figures.append(_figure(name, f"{counted(threads, 'thread')}, CPU{'s' * (threads > 1)} {cpus}", rows, look))
    return figures


def _figure(name: str, whose: str, rows: Sequence[dict[str, Any]], look: Look, missing: str = "") -> Figure:
    about = (
        "Horizontal: FLOP per compulsory byte. Vertical: FLOP/s. Slanted: the read ceilings of the run's own probes on "
        "the same threads, by level; level: FMA peak, measured too; short bars: the core roof, the same kernel on data "
        "that never leave a private cache, the highest of its dtype and G. Filled marks: one slice again and again (hot); "
        "hollow: all layers in turn. "
        "A cross marks a point above a roof, explained in the table."
    )
    title = f"Roofline: {whose}" if whose else "Roofline"
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return Figure(name, title, about, table, lambda t: _draw(t, look), missing)


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def _roofs(ceilings: Iterable[Ceiling], points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The best read of each level, and FMA peak, by the tier and threads of the points."""
    first = points.iloc[0]
    own = [c for c in ceilings if (cpu_text(c.probe.cpus), c.probe.isa) == (first["cpus"], first["isa"])]
    for level in _LEVELS:
        reads = [c for c in own if c.probe.op == "read" and c.level == level and c.probe.pages == first["pages"]]
        if reads:
            best = max(reads, key=lambda c: c.median)
            yield {"kind": "read ceiling", "label": level, "gbps": best.median}
    for c in own:
        if c.probe.op == "flops":
            rates = {"gflops": c.median, "gflops_low": c.low, "gflops_high": c.high}
            yield {"kind": "FMA peak", "label": f"FMA {c.probe.isa}"} | rates


def _cores(points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """What the core alone allows of each dtype and number of query heads on a KV head."""
    known = points[points["core_gbps"].notna()]
    rates = known.assign(roof=known["core_gbps"] * known["ai"])
    for (dtype, group), own in rates.groupby(["dtype", "group"]):
        best = own.loc[own["roof"].idxmax()]
        same = {"label": best["short"], "dtype": dtype, "group": group}
        yield {"kind": "core roof", "ai": own["ai"].max(), "gflops": best["roof"]} | same


def _points(points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    same = ("layout", "dtype", "group", "residency", "context", "footprint", "regime", "above")
    same += ("ai", "ai_issued", "gflops", "gbps")
    for row, facts in zip(points.index, points.to_dict("records"), strict=True):
        rates = {f"gflops_{end}": facts[f"gbps_{end}"] * facts["ai"] for end in ("low", "high")}
        yield {"kind": "point", "row": row, "label": facts["short"]} | {n: facts[n] for n in same} | rates


# ---- how it is drawn -------------------------------------------------------------------------------------------------


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    points, reads = table[table["kind"] == "point"], table[table["kind"] == "read ceiling"]
    peak = table.loc[table["kind"] == "FMA peak", "gflops"].max()
    figure, (axes, strips) = canvas(2, height=4.4, height_ratios=(3, 2))
    axes.set_xscale("log", base=2)
    rate_axis(axes, "GFLOP/s", log=True)
    places = _places(reads["gbps"].tolist())
    low, high = _limits(axes, points, reads, peak, max(places, default=0))
    for roof, place in zip(reads.itertuples(), places, strict=True):
        _slope(axes, roof, (low, high), peak, place)
    for roof in table[table["kind"] == "FMA peak"].itertuples():
        axes.axhline(roof.gflops, color=INK, lw=1.4)
        axes.text(high, roof.gflops, f"{roof.label} {roof.gflops:.3g} GFLOP/s ", ha="right", va="bottom", fontsize=9)
    for core in table[table["kind"] == "core roof"].itertuples():
        axes.plot([core.ai / 1.12, core.ai * 1.12], [core.gflops] * 2, color=look.colour(core.dtype), lw=2.4)
    for point in points.sort_values("gflops").itertuples():
        _mark(axes, point, point.ai, look)
    _strips(strips, points, table[table["kind"] == "core roof"], look)
    axes.set_xlabel("FLOP per compulsory byte (K and V once, scales, query, output, page table)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    legend_below(figure, columns=5, handles=_legend(points, look))
    return figure


def _limits(axes: Axes, points: pd.DataFrame, reads: pd.DataFrame, peak: float, last: int) -> tuple[float, float]:
    """The ends of the horizontal axis: all points, labels left of them up to place `last`, and ridges that are near: of
    the slowest roof, and of the fastest."""
    least, most = points["ai"].min(), points["ai"].max()
    ridges = peak / reads["gbps"] if len(reads) and not math.isnan(peak) else points["ai"]
    low = min(least / _MARGIN / _ASIDE**last, max(ridges.min() / _MARGIN, least / 8))
    high = max(2 * most, min(1.5 * ridges.max(), 8 * most))
    rates = [points["gflops_low"].min() / 1.5, *(low * reads["gbps"])]
    tops = [points["gflops_high"].max(), *([peak] if not math.isnan(peak) else high * reads["gbps"])]
    axes.set_xlim(low, high)
    axes.set_ylim(min(rates), 1.8 * max(tops))
    return low, high


def _places(rates: list[float]) -> list[int]:
    """Which of several places along its line each label takes: lines that lie close together take turns."""
    order = sorted(range(len(rates)), key=lambda number: rates[number])
    places = [0] * len(rates)
    for before, number in pairwise(order):
        places[number] = places[before] + 1 if rates[number] < _CLOSE * rates[before] else 0
    return places


def _slope(axes: Axes, roof: Any, ends: tuple[float, float], peak: float, place: int) -> None:
    """It stops where the core stops it. One that has no room for its label would not be known: it is not drawn."""
    low, high = ends
    end = min(high, peak / roof.gbps) if not math.isnan(peak) else high
    where = low * 1.06 * _ASIDE**place
    if end < _ASIDE * where:
        return
    axes.plot([low, end], [low * roof.gbps, end * roof.gbps], color=INK, lw=1, ls="-" if roof.label == "DRAM" else "--")
    text = f"{roof.label} read {roof.gbps:.3g} GB/s"
    turned = {"rotation": math.degrees(math.atan(roof.gbps)), "rotation_mode": "anchor", "transform_rotates_text": True}
    over = {"bbox": {"fc": PAPER, "ec": "none", "pad": 0}}
    axes.text(where, 1.02 * where * roof.gbps, text, ha="left", va="bottom", fontsize=8.5, **turned, **over)


def _mark(axes: Axes, point: Any, where: float, look: Look) -> None:
    colour = look.colour(point.dtype)
    drawn = axes.plot([where] * 2, [point.gflops_low, point.gflops_high], color=colour, lw=0.7, zorder=3)
    fill = look.fill(point.dtype, point.residency)
    drawn += axes.plot(where, point.gflops, look.mark(point.layout), ms=5.5, color=colour, mfc=fill, zorder=4)
    if point.above:
        drawn += axes.plot(where, point.gflops, "x", ms=9, color=INK, zorder=5)
    for part in drawn:
        tag(part, int(point.row))


def _strips(axes: Axes, points: pd.DataFrame, cores: pd.DataFrame, look: Look) -> None:
    """The same points, of which many share an intensity: side by side, the smaller footprints to the left. A group has
    room for its name."""
    groups = list(points.sort_values("ai").groupby(["group", "dtype"], sort=False))
    least = _LABEL * sum(len(own) + 2 for _, own in groups)
    left, ticks, labels = 0.0, [], []
    for (group, dtype), own in groups:
        width = max(len(own) + 2, least)
        start, end = left + (width - len(own) + 1) / 2, left + (width + len(own) - 1) / 2
        for place, point in enumerate(own.sort_values(["footprint", "context", "layout"]).itertuples()):
            _mark(axes, point, start + place, look)
        for core in cores[(cores["group"] == group) & (cores["dtype"] == dtype)].itertuples():
            axes.plot([start - 0.6, end + 0.6], [core.gflops] * 2, color=look.colour(dtype), lw=2.4)
        ticks.append(left + width / 2)
        labels.append(f"{dtype}\nG={group:g}")
        left += width
        axes.axvline(left, color=GRID, lw=0.6)
    axes.set_xticks(ticks, labels)
    axes.set_xlim(0, left)
    axes.grid(False, axis="x")
    axes.set_title("The same, side by side: dtype and query heads on a KV head (G), larger footprints to the right")
    rate_axis(axes, "GFLOP/s")


def _legend(points: pd.DataFrame, look: Look) -> list[Artist]:
    found = [*look.legend(points), Line2D([], [], color=INK, lw=2.4, label="core roof")]
    if (points["above"] != "").any():
        found.append(Line2D([], [], color=INK, ls="", marker="x", ms=8, label="above a roof"))
    return found
