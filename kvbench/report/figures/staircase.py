"""Bandwidth against footprint: which level feeds a slice, and how close the kernel comes to what it gives."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from kvbench.analysis.means.diagnosis.bandwidth import decodes_of
from kvbench.analysis.means.findings import Findings
from kvbench.model import Ceiling, Machine
from kvbench.regime import classify, levels
from kvbench.report.figures.choice import left_out, setting, usual
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import (
    FAINT,
    HOT,
    INK,
    PAPER,
    SHADES,
    Look,
    bytes_axis,
    canvas,
    legend_below,
    rate_axis,
    tag,
    whiskers,
)
from kvbench.units import counted, cpu_text

MOST_PANELS = 4  # thread counts: the fewest, the most, and some between
STEPS = 400  # of the footprint axis, to find where regimes begin and end
SPAN = 4.0  # a series climbs stairs where its footprints differ by more than this
_NAMES = 0.92  # of a panel's height: above it stand the names of regimes

_HEADS = ("q_heads", "kv_heads", "head_dim")

COLUMNS = ("kind", "row", "label", "threads", "cpus", "series", "layout", "dtype", "group", "residency", "context")
COLUMNS += ("regime", "bytes", "bytes_end", "gbps", "gbps_low", "gbps_high", "twin_gbps")


def staircase(found: Findings, look: Look) -> Figure:
    every = decodes_of(found.points)
    shown = _stairs(every)
    sets = _some(shown.sort_values(["threads", "cpus"])["cpus"].unique().tolist())
    shown = shown[shown["cpus"].isin(sets)]
    panels = {cpus: shown[shown["cpus"] == cpus] for cpus in sets}
    reads = {cpus: _reads(found.ceilings, points.iloc[0]) for cpus, points in panels.items()}
    sizes = [*shown["footprint"], *(c.probe.bytes for own in reads.values() for c in own)]
    ends = (min(sizes) / 1.5, max(sizes) * 1.5) if sizes else (0.0, 0.0)
    rows = [row for cpus in sets for row in _panel(found, panels[cpus], reads[cpus], ends)]
    about = (
        "Filled marks walk one layer's slice again and again, hollow ones all layers in turn, as a decoder does. Bars "
        "are intervals over launches. Grey lines: the twin, the same reads and nothing else. Line with ticks: the read "
        "ceiling, the run's own plain or prefetching reads of such a footprint by the same threads; where it is far "
        "above all else it leaves the picture; dashed: DRAM's. Vertical lines: what the caches of these threads "
        f"declare. G: query heads on each KV head. {setting(shown)}. {left_out(len(shown), every)}"
    )
    missing = "" if rows else "No decode point has a rate: run kvbench sweep quick."
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return Figure("staircase", "Bandwidth against footprint", about, table, lambda t: _draw(t, look), missing)


def _stairs(every: pd.DataFrame) -> pd.DataFrame:
    """Points of the layouts, dtypes and heads that were taken to several levels: of the heads that most points have, and
    of those with fewest query heads on a KV head, where the core is least in the way. Without any, all of the usual."""
    points = usual(every, _HEADS)
    alike = ["layout", "dtype", *_HEADS]
    far = points.groupby(alike)["footprint"].agg(lambda each: each.max() > SPAN * each.min())
    tall = points[[bool(far[key]) for key in points[alike].itertuples(index=False, name=None)]]
    if tall.empty:
        return usual(every)
    fewest = tall[tall["group"] == tall["group"].min()]
    return tall.loc[sorted({*usual(tall).index, *usual(fewest).index})]


def _some(sets: list[str]) -> list[str]:
    """Evenly chosen, with the first and the last."""
    if len(sets) <= MOST_PANELS:
        return sets
    return [sets[round(place)] for place in np.linspace(0, len(sets) - 1, MOST_PANELS)]


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def _panel(
    found: Findings, points: pd.DataFrame, reads: Sequence[Ceiling], ends: tuple[float, float]
) -> Iterator[dict[str, Any]]:
    """Rows of the table for one CPU set, whose ceilings are `reads`."""
    first = points.iloc[0]
    common = {"threads": int(first["threads"]), "cpus": first["cpus"]}
    cpus = found.cpu_sets[first["cpus"]]
    for kind, rows in (
        ("regime", _regimes(found.machine, cpus, *ends)),
        ("capacity", _capacities(found.machine, cpus)),
        ("ceiling", _ceilings(reads)),
        ("point", _points(points)),
    ):
        yield from ({"kind": kind} | common | row for row in rows)


def _reads(ceilings: Iterable[Ceiling], point: pd.Series) -> list[Ceiling]:
    """The read ceilings of the point's threads, tier and pages: the better form of each footprint."""
    best: dict[int, Ceiling] = {}
    for found in ceilings:
        probe = found.probe
        same = (cpu_text(probe.cpus), probe.isa, probe.pages) == (point["cpus"], point["isa"], point["pages"])
        if probe.op == "read" and same and len(probe.cpus) == point["threads"]:
            best[probe.bytes] = max(best.get(probe.bytes, found), found, key=lambda c: c.median)
    return [best[count] for count in sorted(best)]


def _regimes(machine: Machine, cpus: tuple[int, ...], low: float, high: float) -> Iterator[dict[str, Any]]:
    """Where each begins and ends between two footprints."""
    sizes = np.geomspace(low, high, STEPS)
    words = [classify(machine, cpus, size).word for size in sizes]
    start = 0
    for place in range(1, STEPS + 1):
        if place == STEPS or words[place] != words[start]:
            yield {"label": words[start], "bytes": sizes[start], "bytes_end": sizes[min(place, STEPS - 1)]}
            start = place


def _capacities(machine: Machine, cpus: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for level, caches in levels(machine, cpus).items():
        yield {"label": f"L{level}", "bytes": sum(cache.size for cache in caches)}


def _ceilings(reads: Iterable[Ceiling]) -> Iterator[dict[str, Any]]:
    for found in reads:
        rates = {"gbps": found.median, "gbps_low": found.low, "gbps_high": found.high}
        yield {"label": "read ceiling", "regime": found.level, "bytes": found.probe.bytes} | rates


def _points(points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    same = ("layout", "dtype", "group", "residency", "context", "regime", "gbps", "gbps_low", "gbps_high", "twin_gbps")
    for row, facts in zip(points.index, points.to_dict("records"), strict=True):
        series = " ".join(str(facts[name]) for name in ("layout", "dtype", "residency", *_HEADS))
        yield {name: facts[name] for name in same} | {
            "row": row,
            "label": facts["short"],
            "series": series,
            "bytes": facts["footprint"],
        }


# ---- how it is drawn -------------------------------------------------------------------------------------------------


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    panels = [own for _, own in table.groupby(["threads", "cpus"], sort=False)]
    figure, every = canvas(len(panels), sharex=True)
    for axes, own in zip(every, panels, strict=True):
        _background(axes, own)
        _ceiling_line(axes, own[own["kind"] == "ceiling"])
        _memory_line(axes, own)
        points = own[own["kind"] == "point"]
        if points["group"].nunique() > 1:
            _groups(axes, points)
        for _, series in points.groupby("series", sort=True):
            _series(axes, series.sort_values("bytes"), look)
        rate_axis(axes, "GB/s")
        axes.set_ylim(top=_top(own))
    bytes_axis(every[-1], "footprint: compulsory bytes that all threads walk before they begin anew, in whole lines")
    _contexts(every[0], table[table["kind"] == "point"])
    legend_below(figure, columns=4, handles=_legend(table[table["kind"] == "point"], look))
    return figure


def _top(own: pd.DataFrame) -> float:
    """Room for the names of the regimes. Ceilings far above all points (those of L1) may leave the picture."""
    points = own[own["kind"] == "point"]
    most = np.nanmax([points["gbps_high"].max(), points["twin_gbps"].max()])
    ceiling = own.loc[own["kind"] == "ceiling", "gbps"].max()
    return 1.18 * (most if math.isnan(ceiling) else max(most, min(ceiling, 1.6 * most)))


def _background(axes: Axes, own: pd.DataFrame) -> None:
    """Regimes as areas with their names, declared capacities as lines."""
    areas = own[own["kind"] == "regime"]
    axes.set_xlim(areas["bytes"].min(), areas["bytes_end"].max())
    for place, area in enumerate(areas.itertuples()):
        axes.axvspan(area.bytes, area.bytes_end, color=SHADES[place % 2], lw=0, zorder=0)
        wide = math.log2(area.bytes_end / area.bytes) > 0.05 * math.log2(
            areas["bytes_end"].max() / areas["bytes"].min()
        )
        if wide:
            middle = math.sqrt(area.bytes * area.bytes_end)
            at = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "top", **_over(SHADES[place % 2])}
            axes.text(middle, 0.985, area.label, fontsize=9, color=FAINT, **at)
    for capacity in own[own["kind"] == "capacity"].itertuples():
        if areas["bytes"].min() < capacity.bytes < areas["bytes_end"].max():
            axes.axvline(capacity.bytes, ymax=_NAMES, color=FAINT, lw=1)
            at = {"xycoords": axes.get_xaxis_transform(), "xytext": (4, 0), "textcoords": "offset points"}
            look = {"fontsize": 8, "color": FAINT, "va": "top", **_over(PAPER)}
            axes.annotate(f"{capacity.label} ends", (capacity.bytes, 0.9), **at, **look)


def _over(ground: str) -> dict[str, Any]:
    """The look of words that no line of a ceiling or a twin strikes through, and that hide no mark."""
    return {"bbox": {"fc": ground, "ec": "none", "pad": 1}, "zorder": 2.5}


def _ceiling_line(axes: Axes, ceilings: pd.DataFrame) -> None:
    if ceilings.empty:
        return
    look = {"color": INK, "lw": 1, "marker": "_", "ms": 8, "mew": 1.6, "elinewidth": 0.8, "zorder": 2}
    bars = [ceilings["gbps"] - ceilings["gbps_low"], ceilings["gbps_high"] - ceilings["gbps"]]
    axes.errorbar(ceilings["bytes"], ceilings["gbps"], np.abs(np.array(bars, dtype=float)), **look)


def _memory_line(axes: Axes, own: pd.DataFrame) -> None:
    """What memory gives, across all footprints. The title says it: near the line there are marks wherever words might
    stand."""
    threads = int(own["threads"].iloc[0])
    words = f"{counted(threads, 'thread')} on CPU{'s' * (threads > 1)} {own['cpus'].iloc[0]}"
    rate = own.loc[(own["kind"] == "ceiling") & (own["regime"] == "DRAM"), "gbps"].max()
    if not math.isnan(rate):
        axes.axhline(rate, color=INK, lw=0.9, ls=(0, (5, 4)), zorder=1)
        words += f"; dashed: DRAM read ceiling {rate:.3g} GB/s"
    axes.set_title(words)


def _series(axes: Axes, series: pd.DataFrame, look: Look) -> None:
    first = series.iloc[0]
    colour, mark = look.colour(first["dtype"]), look.mark(first["layout"])
    fill = look.fill(first["dtype"], first["residency"])
    axes.plot(series["bytes"], series["twin_gbps"], color=FAINT, lw=0.7, marker=".", ms=2.5, zorder=2)
    if fill == colour:
        axes.plot(series["bytes"], series["gbps"], color=colour, lw=1.2, zorder=3)
    for point in series.itertuples():
        row, at, ends = int(point.row), (point.bytes, point.gbps), (point.gbps_low, point.gbps_high)
        whiskers(axes, row, at, ends, color=colour, elinewidth=0.8, zorder=3)
        (drawn,) = axes.plot(*at, mark, ms=6, color=colour, mfc=fill, zorder=4)
        tag(drawn, row)


def _groups(axes: Axes, points: pd.DataFrame) -> None:
    """How many query heads each KV head has, where the hot points of each dtype and group begin."""
    for _, own in points[points["residency"] == HOT].groupby(["dtype", "group"]):
        first = own.sort_values(["bytes", "gbps"]).iloc[0]
        at = {"xytext": (-7, 0), "textcoords": "offset points", "ha": "right", "va": "center", "fontsize": 8.5}
        axes.annotate(f"G={first['group']:g}", (first["bytes"], first["gbps"]), **at, **_over(PAPER))


def _contexts(axes: Axes, points: pd.DataFrame) -> None:
    """A second axis: the context whose slice is as large, of the dtype that most hot points have."""
    hot = points[points["residency"] == HOT]
    if hot.empty:
        return
    dtype, group = hot[["dtype", "group"]].value_counts().index[0]
    own = hot[(hot["dtype"] == dtype) & (hot["group"] == group)]
    each = float((own["bytes"] / own["context"].astype(float)).median())
    upper = axes.secondary_xaxis("top", functions=(lambda x: x / each, lambda x: x * each))
    upper.set_xscale("log", base=2)
    bytes_axis(upper, "")
    upper.xaxis.set_major_formatter(lambda count, _: f"{count / 1024:g}k" if count >= 1024 else f"{count:g}")
    upper.set_xlabel(
        f"context, in tokens of {dtype} with G={group:g}, whose slice of one layer is as large", fontsize=9
    )
    axes.set_title(axes.get_title(loc="left"), pad=10)


def _legend(points: pd.DataFrame, look: Look) -> list[Artist]:
    twin = Line2D([], [], color=FAINT, lw=0.7, marker=".", ms=3, label="twin")
    return [*look.legend(points), twin, Line2D([], [], color=INK, lw=1.2, marker="_", label="read ceiling")]
