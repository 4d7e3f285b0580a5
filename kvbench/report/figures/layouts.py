"""Which layout is faster, for every shape that was measured in several of them."""

import math
import textwrap
from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from kvbench.analysis.columns import table
from kvbench.analysis.contrasts import SAME, UNKNOWN
from kvbench.analysis.findings import Findings
from kvbench.analysis.judge import FASTER, SLOWER
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import INK, MARKS, PAPER, SHADES, Look, legend_below, panels, tag
from kvbench.units import counted

_TAGS = 400  # marks that can each know their point
_LEAST = 0.11  # of a panel's width, for the name of a regime
_LETTERS = 110  # that fit above the whole width
_CLOSEST = 1.2  # ratios that the axis always reaches
_MOST = 0.9  # of the bars, that lie wholly inside
_ABREAST = 7  # words of the legend in a line
_TICKS = {
    1.5: (1.1, 1.2, 1.4),
    2.5: (1.25, 1.6, 2),
    5.0: (1.5, 2, 3, 4),
}  # and as many below 1; by how far the axis goes
_FAR = (2, 5, 10, 20, 50, 100)
_CROWD = 60  # marks of a panel, beyond which they are small
_REGIMES = ("L1", "L2", "L3", "mixed", "DRAM")  # from near to far; any other word after them
_TWO = "two"  # what a shape is called whose layouts lie in different regimes

COLUMNS = {
    **dict.fromkeys(("reference", "layout"), "str"),
    "row": "Int64",  # of the points' table: the point of `layout`
    **dict.fromkeys(("name", "reference_name", "shape", "op", "dtype", "regime"), "str"),
    # Seconds of the reference over those of the layout: above 1 the layout is faster.
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high"), "float64"),
    "word": "str",
    **dict.fromkeys(("place", "start", "end"), "float64"),  # of the mark, and of its regime, from the left
}


def layouts(found: Findings, look: Look) -> Figure:
    pairs = found.contrasts[found.contrasts["factor"] == "layout"] if len(found.contrasts) else found.contrasts
    reference = _reference(pairs, found.points)
    rows = _placed(table(_rows(pairs, reference, found.points), COLUMNS))
    longest = "Longer bars leave the picture. " if len(rows) and _outside(rows, _reach(rows)) else ""
    two = (rows["regime"].map(_area) == _TWO).any()
    apart = f"Last, as {_TWO}: shapes whose layouts lie in different regimes. " if two else ""
    about = (
        f"Each mark is one shape: how many times as fast it runs as with layout {reference}, in the same launches "
        f"(seconds with {reference} over seconds with the other). Bars are intervals over launches. {longest}Filled: "
        "the interval lies on one side of 1. Hollow: the same within noise, or too few launches to tell. Sorted by "
        f"ratio within each regime. {apart}{_counts(rows)}"
    )
    missing = "" if len(rows) else "No shape was measured in two layouts: run kvbench sweep layouts."
    return Figure("layouts", "Layouts side by side", about, rows, lambda t: _draw(t, look), missing)


def _reference(pairs: pd.DataFrame, points: pd.DataFrame) -> str:
    """The layout beside most others; of equals, the one with most points: what a run has most of is its usual one."""
    beside: dict[str, set[str]] = {}
    for base, other in zip(pairs["base"], pairs["other"], strict=True):
        beside.setdefault(base, set()).add(other)
        beside.setdefault(other, set()).add(base)
    counts = points["layout"].value_counts()
    return max(sorted(beside), key=lambda layout: (len(beside[layout]), counts.get(layout, 0)), default="")


def _rows(pairs: pd.DataFrame, reference: str, points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Pairs with the reference alone, whichever of the two was the base."""
    places = dict(zip(points["name"], points.index, strict=True))
    names = dict(zip(points["name"], points["short"], strict=True))
    for pair in pairs.to_dict("records"):
        if reference not in (pair["base"], pair["other"]) or math.isnan(pair["ratio"]):
            continue
        turned = pair["other"] == reference
        side, against = ("base", "other") if turned else ("other", "base")
        ends = ("ratio", "ratio_high", "ratio_low") if turned else ("ratio", "ratio_low", "ratio_high")
        name = pair[f"{side}_name"]
        yield {
            **{key: pair[key] for key in ("op", "dtype")},
            "regime": " and ".join(sorted(pair["regime"].split(" and "), key=_rank)),
            "reference": reference,
            "layout": pair[side],
            "row": places[name],
            "name": name,
            "reference_name": pair[f"{against}_name"],
            "shape": " ".join(word for word in names[name].split() if word != pair[side]),
            **{key: 1 / pair[end] if turned else pair[end] for key, end in zip(_ENDS, ends, strict=True)},
            "word": _TURNED.get(pair["word"], pair["word"]) if turned else pair["word"],
        }


_ENDS = ("ratio", "ratio_low", "ratio_high")
_TURNED = {FASTER: SLOWER, SLOWER: FASTER}


def _placed(rows: pd.DataFrame) -> pd.DataFrame:
    """From left to right by regime, and by ratio in each. A regime of few shapes gets the room that its name takes."""
    order = ["layout", "rank", "area", "ratio"]
    rows = rows.assign(area=rows["regime"].map(_area), rank=rows["regime"].map(_area).map(_rank))
    rows = rows.sort_values(order, kind="stable", ignore_index=True)
    for _, own in rows.groupby("layout"):
        others = own["area"].nunique() - 1
        least, start = _LEAST * len(own) / (1 - _LEAST * others), 0.0
        for _, alike in own.groupby(["rank", "area"], sort=True):
            width = max(len(alike), least)
            first = start + (width - len(alike)) / 2 + 0.5
            rows.loc[alike.index, "place"] = [first + step for step in range(len(alike))]
            rows.loc[alike.index, ["start", "end"]] = start, start + width
            start += width
    return rows[list(COLUMNS)]


def _area(regime: str) -> str:
    return _TWO if " and " in regime else regime


def _rank(area: str) -> int:
    return _REGIMES.index(area) if area in _REGIMES else len(_REGIMES) + (area == _TWO)


def _counts(rows: pd.DataFrame) -> str:
    said = []
    for layout, own in rows.groupby("layout"):
        counts = own["word"].value_counts()
        words = [f"{counts[word]} {word}" for word in (FASTER, SLOWER, SAME) if word in counts]
        words += [f"{counts[UNKNOWN]} with too few launches to tell"] if UNKNOWN in counts else []
        said.append(f"{layout}: of {counted(len(own), 'shape')}, {', '.join(words)}.")
    return " ".join(said)


# ---- how it is drawn -------------------------------------------------------------------------------------------------


def _draw(rows: pd.DataFrame, look: Look) -> Canvas:
    others = [own for _, own in rows.groupby("layout", sort=True)]
    figure, every, columns = panels(len(others), 3.7)
    dtypes = sorted(set(rows["dtype"]))
    marks = {dtype: MARKS[place % len(MARKS)] for place, dtype in enumerate(dtypes)}
    for place, (axes, own) in enumerate(zip(every, others, strict=True)):
        _areas(axes, own)
        _points(axes, own, marks, look, tagged=len(rows) <= _TAGS)
        _ratio_axis(axes, rows, "times as fast" if place % columns == 0 else "")
        axes.set_title(_title(own, _LETTERS // columns), fontsize=8.5)
    handles = _legend(marks, look)
    legend_below(figure, columns=len(handles) if len(handles) <= _ABREAST else _ABREAST - 2, handles=handles)
    return figure


def _title(own: pd.DataFrame, letters: int) -> str:
    """With the extremes: the marks alone do not say which they are."""
    lines = [f"{own['layout'].iloc[0]} against {own['reference'].iloc[0]}"]
    for word, row in (("most", own.loc[own["ratio"].idxmax()]), ("least", own.loc[own["ratio"].idxmin()])):
        lines.append(textwrap.shorten(f"{word}: {row['ratio']:.3g} × {row['shape']}", letters, placeholder=" …"))
    return "\n".join(lines if len(own) > 1 else lines[:2])


def _areas(axes: Axes, own: pd.DataFrame) -> None:
    areas = own.drop_duplicates("start")
    for place, area in enumerate(areas.itertuples()):
        axes.axvspan(area.start, area.end, color=SHADES[place % len(SHADES)], lw=0, zorder=0)
    axes.set_xticks((areas["start"] + areas["end"]) / 2, areas["regime"].map(_area), fontsize=9)
    axes.set_xlim(areas["start"].min(), areas["end"].max())
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.axhline(1, color=INK, lw=1, zorder=1)


def _points(axes: Axes, own: pd.DataFrame, marks: dict[str, str], look: Look, *, tagged: bool) -> None:
    differs = own["word"].isin((FASTER, SLOWER))
    for (dtype, sure), alike in own.groupby(["dtype", differs]):
        colour = look.colour(dtype)
        bar = {"color": colour, "lw": 1.2 if sure else 0.6}
        size = (5.5 if sure else 4.5) if len(own) <= _CROWD else 3.5
        style = {"color": colour, "mfc": colour if sure else PAPER, "marker": marks[dtype], "ms": size, "ls": ""}
        style["clip_on"] = False  # all lie inside, if only just
        if not tagged:
            axes.vlines(alike["place"], alike["ratio_low"], alike["ratio_high"], **bar)
            axes.plot(alike["place"], alike["ratio"], **style)
            continue
        for point in alike.itertuples():
            tag(axes.vlines(point.place, point.ratio_low, point.ratio_high, **bar), int(point.row))
            (drawn,) = axes.plot(point.place, point.ratio, **style)
            tag(drawn, int(point.row))


def _ratio_axis(axes: Axes, rows: pd.DataFrame, label: str) -> None:
    """As far up as down, so that twice and half as fast look alike."""
    reach = _reach(rows)
    axes.set_yscale("log")
    axes.set_ylim(1 / reach, reach)
    ticks = next((ticks for end, ticks in _TICKS.items() if reach < end), _FAR)
    axes.yaxis.set_major_locator(FixedLocator([1 / tick for tick in ticks] + [1, *ticks]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.3g}×"))
    axes.set_ylabel(label)


def _reach(rows: pd.DataFrame) -> float:
    """The ratio at the upper end: of all marks, and of most bars."""
    marks = max(rows["ratio"].max(), 1 / rows["ratio"].min())
    bars = max(rows["ratio_high"].quantile(_MOST), 1 / rows["ratio_low"].quantile(1 - _MOST))
    return 1.08 * max(marks, bars, _CLOSEST)


def _outside(rows: pd.DataFrame, reach: float) -> bool:
    return max(rows["ratio_high"].max(), 1 / rows["ratio_low"].min()) > reach


def _legend(marks: dict[str, str], look: Look) -> list[Line2D]:
    found = [
        Line2D([], [], color=look.colour(dtype), ls="", marker=mark, ms=5.5, label=dtype)
        for dtype, mark in marks.items()
    ]
    differs = {"differs": INK, "same within noise, or too few launches": PAPER}
    return found + [
        Line2D([], [], color=INK, ls="", marker="o", ms=5.5, mfc=fill, label=label) for label, fill in differs.items()
    ]
