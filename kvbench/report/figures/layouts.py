"""Which layout is faster, for every shape that was measured in several of them."""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from kvbench.analysis.columns import table
from kvbench.analysis.contrasts import FASTER, SAME, SLOWER, UNKNOWN
from kvbench.analysis.findings import Findings
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import INK, PAPER, SHADES, Look, legend_below, panels, tag
from kvbench.units import counted

_NAMED = 0.08  # of a panel's width, that the name of a regime takes
_CLOSEST = 1.2  # ratios that the axis always reaches
_TICKS = (1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)  # above 1, and as many below
_CROWD = 60  # marks of a panel, beyond which they are small
_REGIMES = ("L1", "L2", "L3", "mixed", "DRAM")  # from near to far; any other word after them

COLUMNS = {
    **dict.fromkeys(("reference", "layout"), "str"),
    "row": "Int64",  # of the points' table: the point of `layout`
    **dict.fromkeys(("name", "reference_name", "shape", "op", "dtype", "regime"), "str"),
    # Seconds of the reference over those of the layout: above 1 the layout is faster.
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high"), "float64"),
    "word": "str",
    "place": "Int64",  # of the mark, from the left
}


def layouts(found: Findings, look: Look) -> Figure:
    pairs = found.contrasts[found.contrasts["factor"] == "layout"] if len(found.contrasts) else found.contrasts
    reference = _reference(pairs, found.points)
    rows = _placed(table(_rows(pairs, reference, found.points), COLUMNS))
    about = (
        f"Each mark is one shape: how many times as fast it runs as with layout {reference}, in the same launches "
        f"(seconds with {reference} over seconds with the other). Bars are intervals over launches; the longest may "
        "leave the picture. Filled: the interval lies on one side of 1. Hollow: the same within noise, or too few "
        f"launches to tell. Sorted by ratio within each regime. {_counts(rows)}"
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
    """From left to right by regime, and by ratio in each."""
    rows = rows.assign(rank=rows["regime"].map(_rank))
    rows = rows.sort_values(["layout", "rank", "regime", "ratio"], kind="stable", ignore_index=True)
    return rows.assign(place=rows.groupby("layout").cumcount())[list(COLUMNS)]


def _rank(regime: str) -> int:
    return _REGIMES.index(regime) if regime in _REGIMES else len(_REGIMES)


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
    for place, (axes, own) in enumerate(zip(every, others, strict=True)):
        _areas(axes, own)
        _points(axes, own, look)
        _ratio_axis(axes, rows, "times as fast" if place % columns == 0 else "")
        axes.set_title(f"{own['layout'].iloc[0]} against {own['reference'].iloc[0]}")
    handles = [Patch(color=look.colour(dtype), label=dtype) for dtype in sorted(set(rows["dtype"]))]
    differs = {"differs": INK, "same within noise, or too few launches": PAPER}
    handles += [Patch(facecolor=fill, edgecolor=INK, label=label) for label, fill in differs.items()]
    legend_below(figure, columns=5, handles=handles)
    return figure


def _areas(axes: Axes, own: pd.DataFrame) -> None:
    """Regimes; one that has no room for its name goes without."""
    ticks = {}
    for number, (regime, alike) in enumerate(own.groupby("regime", sort=False)):
        start, end = float(alike["place"].min()) - 0.5, float(alike["place"].max()) + 0.5
        axes.axvspan(start, end, color=SHADES[number % len(SHADES)], lw=0, zorder=0)
        if end - start >= _NAMED * len(own):
            ticks[(start + end) / 2] = regime
    axes.set_xticks(list(ticks), list(ticks.values()), fontsize=9)
    axes.set_xlim(-0.5, len(own) - 0.5)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.axhline(1, color=INK, lw=1, zorder=1)


def _points(axes: Axes, own: pd.DataFrame, look: Look) -> None:
    for point in own.itertuples():
        colour, sure = look.colour(point.dtype), point.word in (FASTER, SLOWER)
        drawn = [axes.vlines(point.place, point.ratio_low, point.ratio_high, color=colour, lw=1.2 if sure else 0.6)]
        style = {"color": colour, "mfc": colour if sure else PAPER, "ms": 5 if len(own) <= _CROWD else 3.5}
        drawn += axes.plot(point.place, point.ratio, "o", **style, clip_on=False)
        for part in drawn:
            tag(part, int(point.row))


def _ratio_axis(axes: Axes, rows: pd.DataFrame, label: str) -> None:
    """As far up as down, so that twice and half as fast look alike."""
    marks = max(rows["ratio"].max(), 1 / rows["ratio"].min(), _CLOSEST)
    reach = 1.08 * min(2 * marks, max(marks, rows["ratio_high"].max(), 1 / rows["ratio_low"].min()))
    ticks = [tick for tick in _TICKS if tick < reach][-3:]
    axes.set_yscale("log")
    axes.set_ylim(1 / reach, reach)
    axes.yaxis.set_major_locator(FixedLocator([1 / tick for tick in ticks] + [1, *ticks]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.3g}×"))
    axes.set_ylabel(label)
