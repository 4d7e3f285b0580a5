"""Sample strips: every sample of the cells whose numbers are least certain, in the order in which they were taken."""

import math
import textwrap
from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import table
from kvbench.analysis.measured.launches import FAR_OUT, SPREAD
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import FAINT, INK, SHADES, Look, legend_below, panels, rate_axis, tag
from kvbench.units import counted

MOST = 6  # strips
_TICKS = 12  # launches that can be named below a strip
_LETTERS = 50  # that fit above one

COLUMNS = {
    "row": "Int64",  # of the points' table
    **dict.fromkeys(("name", "short", "dtype", "why"), "str"),
    **dict.fromkeys(("launch", "part", "round", "place"), "Int64"),  # place: in the order in which they were taken
    "gbps": "float64",
    "witness": "str",  # the program measured in the same rounds: its rate is witness_gbps
    "witness_gbps": "float64",
    "witness_scaled": "float64",  # to the same median
    "disturbed": "boolean",
}


def noise(found: Findings, look: Look) -> Figure:
    flagged = _flagged(found.points)
    rows = [row for place, point in flagged.iterrows() for row in _strip(place, point, found.samples)]
    missing = "" if rows else "No point has a sample: run kvbench sweep quick."
    about = (
        "Every sample in the order in which it was taken, launch by launch. Grey: the twin (of a store, the copy) "
        "measured in the same rounds, scaled to the same median: where both move together, the machine did it. "
        f"{_counts(found.points, flagged)}"
    )
    return Figure(
        "noise", "Samples of the least certain points", about, table(rows, COLUMNS), lambda t: _draw(t, look), missing
    )


def _flagged(points: pd.DataFrame) -> pd.DataFrame:
    """Unstable ones first, then those with launches that lie far outside, then those with the widest interval."""
    taken = points[points["samples"] > 0]
    ranks = pd.DataFrame(
        {
            "unstable": taken["unstable"].fillna(False).astype(bool),
            "outliers": taken["outliers"].fillna(0).astype(int),
            "spread": taken["spread"].fillna(0.0),
            "disturbed": taken["disturbed"].fillna(0.0),
        }
    )
    return taken.loc[ranks.sort_values(list(ranks), ascending=False, kind="stable").index[:MOST]]


def _why(point: pd.Series) -> str:
    if point["unstable"] is not pd.NA and point["unstable"]:
        return "unstable"
    if point["outliers"] is not pd.NA and point["outliers"] > 0:
        return f"{counted(int(point['outliers']), 'launch')} far outside the others"
    if not math.isnan(point["spread"]):
        return f"interval {point['spread']:.0%} of the median"
    return f"{counted(int(point['launches']), 'launch')}: no interval"


def _counts(points: pd.DataFrame, flagged: pd.DataFrame) -> str:
    unstable, outlying = int(points["unstable"].fillna(False).sum()), int((points["outliers"].fillna(0) > 0).sum())
    return (
        f"Of {counted(len(points), 'point')}, {unstable} unstable: the middle half of the launches' times spreads over "
        f"more than {SPREAD:.0%} of their median; {outlying} with launches far outside the others, beyond the "
        f"quartiles by more than {FAR_OUT:g} times the width of the middle half. Shown: {len(flagged)}, in this order, "
        "then those with the widest intervals over the launches."
    )


def _strip(row: Any, point: pd.Series, samples: pd.DataFrame) -> Iterator[dict[str, Any]]:
    own = samples[samples["name"] == point["name"]].sort_values(["launch", "part"], kind="stable")
    beside = own[own["program"] == point["witness"]]
    rounds = zip(beside["launch"], beside["part"], beside["round"], strict=True)
    rates = dict(zip(rounds, beside["gbps"], strict=True))
    facts = {"row": row, "why": _why(point)} | {name: point[name] for name in ("name", "short", "dtype", "witness")}
    taken = own[own["program"] == "point"]
    scale = taken["gbps"].median() / beside["gbps"].median()
    for place, sample in enumerate(taken.itertuples()):
        when = (sample.launch, sample.part, sample.round)
        rate = rates.get(when, math.nan)
        yield facts | {
            **dict(zip(("launch", "part", "round"), when, strict=True)),
            "place": place,
            "gbps": sample.gbps,
            "witness_gbps": rate,
            "witness_scaled": rate * scale,
            "disturbed": sample.disturbed,
        }


# ---- how it is drawn -------------------------------------------------------------------------------------------------


def _draw(rows: pd.DataFrame, look: Look) -> Canvas:
    strips = [own for _, own in rows.groupby("row", sort=False)]
    figure, every, columns = panels(len(strips), 2.5)
    for place, (axes, own) in enumerate(zip(every, strips, strict=True)):
        _launch_areas(axes, own)
        _marks(axes, own, look)
        name = textwrap.shorten(own["short"].iloc[0], _LETTERS * 2 // columns, placeholder=" …")
        axes.set_title(f"{name}\n{own['why'].iloc[0]}", fontsize=9)
        rate_axis(axes, "GB/s" if place % columns == 0 else "")
        axes.set_xlabel("launch" if place >= len(strips) - columns else "")
    legend_below(figure, columns=4, handles=_legend())
    return figure


def _launch_areas(axes: Axes, own: pd.DataFrame) -> None:
    spans = own.groupby("launch", sort=True)["place"].agg(["min", "max"]).astype(float)
    for place, span in enumerate(spans.itertuples()):
        axes.axvspan(span.min - 0.5, span.max + 0.5, color=SHADES[place % len(SHADES)], lw=0, zorder=0)
    middles, step = (spans["min"] + spans["max"]) / 2, math.ceil(len(spans) / _TICKS)
    axes.set_xticks(middles[::step], [str(launch) for launch in spans.index[::step]])
    axes.set_xlim(spans["min"].min() - 0.5, spans["max"].max() + 0.5)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")


def _marks(axes: Axes, own: pd.DataFrame, look: Look) -> None:
    places, rates = own["place"].astype(float), own["gbps"]
    axes.plot(places, own["witness_scaled"], ".", color=FAINT, ms=3.5, zorder=2)
    (drawn,) = axes.plot(places, rates, "o", color=look.colour(own["dtype"].iloc[0]), ms=4, mew=0, zorder=3)
    tag(drawn, int(own["row"].iloc[0]))
    hit = own["disturbed"].fillna(False).astype(bool)
    axes.plot(places[hit], rates[hit], "x", color=INK, ms=6, mew=1, zorder=4)
    for _, launch in own.groupby("launch"):
        ends = launch["place"].min() - 0.4, launch["place"].max() + 0.4
        axes.plot(ends, [launch["gbps"].median()] * 2, color=INK, lw=1.2, zorder=3.5)


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], color=INK, ls="", marker="o", ms=4, label="sample, in the colour of its dtype"),
        Line2D([], [], color=FAINT, ls="", marker=".", label="twin or copy, scaled to the same median"),
        Line2D([], [], color=INK, lw=1.2, label="median of a launch"),
        Line2D([], [], color=INK, ls="", marker="x", ms=6, mew=1, label="disturbed"),
    ]
