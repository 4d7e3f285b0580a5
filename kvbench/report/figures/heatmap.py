"""Context against dtype, heads or threads: how much of its own regime's read ceiling each point reaches."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from kvbench.analysis.columns import table
from kvbench.analysis.findings import Findings
from kvbench.report.figures.choice import setting, usual
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import FAINT, GRID, PAPER, Look, canvas, tag
from kvbench.units import counted

PANELS, CELLS = 6, 400  # at most: of a figure, all its panels together
_LONG = 10_000  # tokens
_NEAR = 1.05  # times as long: nearly the same
WIDE = 14  # contexts of a panel, at most
_NARROW = 10  # contexts up to which two panels stand side by side
_MAP = "viridis"  # even to the eye, and to the colour-blind
_ROW, _FRAME, _BAR = 0.42, 0.7, 0.6  # inches: of a row of cells, a panel's title and axis, and the bar of colours

# What the rows of all panels may be: whichever gives most cells.
_ROWS = {
    "dtype": ("dtype", "scale"),
    "heads": ("q_heads", "kv_heads", "group", "head_dim"),
    "threads": ("threads", "cpus"),
}
_PANEL = ("layout", "dtype", "scale", "threads", "cpus", "residency", "q_heads", "kv_heads", "head_dim")

COLUMNS = {
    **dict.fromkeys(("panel", "line"), "str"),  # line: the row of cells
    **dict.fromkeys(("context", "column"), "Int64"),  # contexts that are nearly the same share a column
    "row": "Int64",  # of the points' table
    **dict.fromkeys(("name", "regime"), "str"),
    **dict.fromkeys(("gbps", "ceiling_gbps", "ceiling_fraction"), "float64"),  # the read ceiling of the cell's regime
    "unstable": "boolean",
    **dict.fromkeys(("above", "note"), "str"),  # note: why there is no number
}


def heatmap(found: Findings, look: Look) -> Figure:
    every = found.points[found.points["op"] == "decode"]
    options = [_panels(every, names) for names in _ROWS.values()]
    kind, panels = max(zip(_ROWS, options, strict=True), key=lambda both: (sum(map(len, both[1])), -len(both[1])))
    rows = [row for own in panels for row in _cells(own, kind, panels, look)]
    shown = sum(map(len, panels))
    left = (
        f" {shown} of {len(every)} decode points are shown; the table of points has all." if shown < len(every) else ""
    )
    about = (
        "Numbers are percent of the read ceiling of the cell's own regime, which the cell names: the run's own reads "
        "of such a footprint by the same threads, so that cells of different regimes have different ceilings. Thick "
        "lines: borders of regimes. Hatched: unstable, the launches differ too much. *: above a roof, see the table of "
        "points. Empty cells: not measured; x: failed; ?: no ceiling of this run fits. "
        f"{setting(every.loc[[own.index[0] for own in panels]]) if panels else ''}.{left}"
    )
    missing = "" if any(row["note"] == "" for row in rows) else _MISSING
    return Figure("heatmap", f"Context against {kind}", about, table(rows, COLUMNS), _draw, missing)


_MISSING = "No decode has a rate and a read ceiling that fits it: run kvbench sweep quick."


def _panels(points: pd.DataFrame, lines: Sequence[str]) -> list[pd.DataFrame]:
    """The richest ones: points that differ in context and `lines` alone, one for each cell."""
    points = usual(points, free=[name for names in _ROWS.values() for name in names])
    fixed = [name for name in _PANEL if name not in lines]
    points = points.assign(spare=points["capacity"] - points["context"]).sort_values("spare", kind="stable")
    points = points.drop_duplicates(subset=[*fixed, *lines, "context"])
    found = sorted((own for _, own in points.groupby(fixed, sort=True)), key=_rich, reverse=True)
    panels, cells = [], 0
    for own in (_narrowed(own) for own in found[:PANELS]):
        cells += len(own)
        if not panels or (cells <= CELLS and len(own) > 1):
            panels.append(own)
    return sorted(panels, key=lambda own: -len(own.drop_duplicates(list(lines))))


def _rich(own: pd.DataFrame) -> tuple[int, int]:
    return len(own), own["dtype"].nunique()


def _narrowed(own: pd.DataFrame) -> pd.DataFrame:
    """The contexts with most points, where there are too many for a panel."""
    most = own["context"].value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    return own[own["context"].isin(most.index[:WIDE])]


# ---- cells -----------------------------------------------------------------------------------------------------------


# What rows of cells are sorted by, so that all panels have one order; and whether the least comes first.
_ORDER = {"rank": True, "wide": False, "q_heads": False, "scale": True, "threads": True, "cpus": True}


def _cells(own: pd.DataFrame, kind: str, panels: Sequence[pd.DataFrame], look: Look) -> Iterator[dict[str, Any]]:
    every = pd.concat(panels)
    varying = {name for name in _PANEL if every[name].nunique() > 1} - {*_ROWS[kind]}
    if every.groupby("threads")["cpus"].nunique().max() == 1:
        varying -= {"cpus"}
    title, scaled = _title(own.iloc[0], kind, varying), every.groupby("dtype")["scale"].nunique()
    same = ("name", "context", "column", "regime", "gbps", "ceiling_gbps", "ceiling_fraction", "unstable", "above")
    wide, rank = own["kv_heads"] * own["head_dim"], own["dtype"].map(look.rank)
    own = own.assign(wide=wide, rank=rank, column=_columns(own, kind))
    for row, point in own.sort_values(list(_ORDER), ascending=list(_ORDER.values()), kind="stable").iterrows():
        found = {"panel": title, "line": _line(point, kind, scaled[point["dtype"]] > 1), "row": row}
        yield found | {name: point[name] for name in same} | {"note": _note(point)}


def _columns(own: pd.DataFrame, kind: str) -> pd.Series:
    """For each point the number of its column: of contexts nearly the same, as long as no line has two of them."""
    lines = own[list(_ROWS[kind])].astype(str).agg(" ".join, axis=1)
    columns: dict[int, int] = {}
    first, column, taken = 0, -1, set()
    for context, here in lines.groupby(own["context"], sort=True):
        if not first or context > _NEAR * first or taken & {*here}:
            first, column, taken = context, column + 1, set()
        taken |= {*here}
        columns[context] = column
    return own["context"].map(columns)


def _title(point: pd.Series, kind: str, varying: set[str]) -> str:
    words = [point["layout"], point["residency"]]
    words += [point["dtype"]] if kind != "dtype" else []
    words += [counted(int(point["threads"]), "thread")] if kind != "threads" else []
    words += [f"CPUs {point['cpus']}"] if "cpus" in varying else []
    words += [_heads(point)] if {"q_heads", "kv_heads", "head_dim"} & varying else []
    return ", ".join(words)


def _line(point: pd.Series, kind: str, scaled: bool) -> str:
    if kind == "heads":
        return _heads(point)
    if kind == "threads":
        return f"{counted(int(point['threads']), 'thread')}, CPUs {point['cpus']}"
    return f"{point['dtype']} {point['scale']}" if scaled else str(point["dtype"])


def _heads(point: pd.Series) -> str:
    return f"{point['q_heads']}/{point['kv_heads']} heads of {point['head_dim']}"


def _note(point: pd.Series) -> str:
    if math.isnan(point["gbps"]):
        return f"failed: {point['error']}"
    return "" if not math.isnan(point["ceiling_fraction"]) else f"no ceiling: {point['ceiling_note']}"


# ---- how they are drawn ----------------------------------------------------------------------------------------------

# A cell's colour says how large its number is, in the dark as well: what stands on it keeps its colour, too.
_DARK, _LIGHT = "#101214", "#fdfdfe"
_STEPS = 20  # of the colours: 5 % each


def _draw(rows: pd.DataFrame) -> Canvas:
    panels = [own for _, own in rows.groupby("panel", sort=False)]
    widest = max(own["column"].nunique() for own in panels)
    columns = 2 if len(panels) > 1 and widest <= _NARROW else 1
    lines = [own["line"].nunique() for own in panels]
    tallest = [max(lines[first : first + columns]) for first in range(0, len(lines), columns)]
    height = _FRAME + _ROW * sum(tallest) / len(tallest)
    figure, every = canvas(len(tallest), columns, height=height + _BAR / len(tallest), height_ratios=tallest)
    for axes in every[len(panels) :]:
        axes.set_visible(False)
    colours = ScalarMappable(Normalize(0, 100), matplotlib.colormaps[_MAP].resampled(_STEPS))
    for place, (axes, own) in enumerate(zip(every, panels, strict=False)):
        _panel(axes, own, colours)
        axes.set_xlim(-0.5, widest - 0.5)  # a cell is as large in every panel
        axes.set_ylim(tallest[place // columns] - 0.5, -0.5)
        axes.set_xlabel("context, in tokens" if place < columns else "", fontsize=9, loc="left")
    bar = figure.colorbar(colours, ax=every, location="bottom", shrink=0.5, aspect=40, pad=0.02)
    bar.set_label("% of the read ceiling of the cell's regime", fontsize=9)
    bar.outline.set_visible(False)
    return figure


def _panel(axes: Axes, own: pd.DataFrame, colours: ScalarMappable) -> None:
    lines, labels = list(dict.fromkeys(own["line"])), own.groupby("column", sort=True)["context"].agg(_tokens)
    regimes = {}
    for cell in own.itertuples():
        place = int(cell.column), lines.index(cell.line)
        regimes[place] = cell.regime
        _cell(axes, place, cell, colours)
    for place in regimes:
        _borders(axes, place, regimes)
    axes.set_xticks(labels.index.astype(int), labels, fontsize=8)
    axes.set_yticks(range(len(lines)), lines)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_title(own["panel"].iloc[0])


def _tokens(contexts: pd.Series) -> str:
    """ "512", "4k"; "≈4k" of several that are nearly the same, or where the number is too long for a cell."""
    low, high = int(contexts.min()), int(contexts.max())
    if low < high or (low >= _LONG and low % 1024):
        return f"≈{round(high / 1024)}k" if high >= 1024 else f"≈{high}"
    return str(low) if low < 1024 or low % 1024 else f"{low // 1024}k"


def _cell(axes: Axes, place: tuple[int, int], cell: Any, colours: ScalarMappable) -> None:
    x, y = place
    corner = (x - 0.5, y - 0.5)
    if cell.note:
        axes.add_patch(tag(Rectangle(corner, 1, 1, facecolor=PAPER, edgecolor=GRID, lw=0.6), int(cell.row)))
        axes.text(x, y, "x" if math.isnan(cell.gbps) else "?", color=FAINT, ha="center", va="center")
        return
    fill = colours.to_rgba(100 * cell.ceiling_fraction)
    ink = _DARK if _luminance(fill) > 0.18 else _LIGHT
    axes.add_patch(tag(Rectangle(corner, 1, 1, facecolor=fill, lw=0), int(cell.row)))
    if cell.unstable is not pd.NA and cell.unstable:
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor=ink, lw=0))
    at = {"ha": "center", "color": ink, "bbox": {"facecolor": fill, "lw": 0, "pad": 1}}
    axes.text(x, y + 0.02, f"{100 * cell.ceiling_fraction:.0f}{'*' if cell.above else ''}", va="bottom", **at)
    axes.text(x, y + 0.1, cell.regime if cell.regime != "unknown" else "", va="top", fontsize=7, **at)


def _luminance(colour: tuple[float, ...]) -> float:
    """As screens are seen (WCAG), from 0 to 1: at 0.18 black and white stand out as well."""
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3])
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _borders(axes: Axes, place: tuple[int, int], regimes: dict[tuple[int, int], str]) -> None:
    """To the next cell on the right and to the one below, where they lie in another regime."""
    x, y = place
    right, below = ([x + 0.5] * 2, [y - 0.5, y + 0.5]), ([x - 0.5, x + 0.5], [y + 0.5] * 2)
    for other, line in (((x + 1, y), right), ((x, y + 1), below)):
        if regimes.get(other, regimes[place]) != regimes[place]:
            axes.plot(*line, color=_LIGHT, lw=4, solid_capstyle="butt", zorder=3)
            axes.plot(*line, color=_DARK, lw=2, solid_capstyle="butt", zorder=4)
