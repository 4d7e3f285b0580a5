"""Machines against machines: the same points, in GB/s and as shares of each machine's own ceilings."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.beside import common
from kvbench.analysis.findings import Findings
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import COLOURS, GRID, MARKS, canvas, legend_below

_MOST = 30  # points: those of the most different rates
_LETTERS = 64  # of a machine's name: of the widest, a line is full
_ROOM = 0.6  # of a point's, in which its machines lie one below the other


def beside(studies: Sequence[Findings], names: Sequence[str]) -> Figure:
    """`names`: what the machines are called, in the order of the runs."""
    every = common(studies)
    table = _clearest(every.assign(machine=every["study"].map(dict(enumerate(names)))))
    shown, all_ = table["place"].nunique(), every["place"].nunique()
    about = (
        f"Points that every run has: {shown} of {all_}, those whose rates differ most, of the machine's most or fewest "
        "threads. Left: GB/s of compulsory bytes, with intervals over launches. Right: the same as % of the machine's "
        "own ceiling, its reads (of stores: copies) of such a footprint by the same threads in the same run."
    )
    missing = "" if len(table) else "The runs have no point in common: measure the same suite on each machine."
    return Figure("machines", "The same points on each machine", about, table, _draw, missing)


def _clearest(rows: pd.DataFrame) -> pd.DataFrame:
    rates = rows.groupby("place")["gbps"]
    apart = (rates.max() / rates.min()).sort_values(ascending=False, kind="stable")
    return rows[rows["place"].isin(apart.index[:_MOST])]


def _draw(table: pd.DataFrame) -> Canvas:
    order = table.groupby("place")["gbps"].max().sort_values().index
    places, many = {place: number for number, place in enumerate(order)}, table["study"].nunique()
    figure, (rates, shares) = canvas(1, 2, height=1.3 + 0.24 * len(order) + 0.2 * many, sharey=True)
    for number, own in table.groupby("study"):
        where = own["place"].map(places) + _ROOM * ((many - 1) / 2 - number) / many
        look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)], "ls": "", "ms": 5}
        bars = [(own["gbps"] - own["gbps_low"]).abs(), (own["gbps_high"] - own["gbps"]).abs()]
        rates.errorbar(own["gbps"], where, xerr=bars, elinewidth=0.7, label=_short(own["machine"].iloc[0]), **look)
        shares.plot(100 * own["ceiling_fraction"], where, **look)
    first = table.drop_duplicates("place").set_index("place")
    labels = [f"{first.at[place, 'point']}, {first.at[place, 'role']}" for place in order]
    rates.set_yticks(range(len(order)), labels, fontsize=7.5)
    _axis(rates, "GB/s")
    _axis(shares, "% of the machine's own ceiling")
    legend_below(figure, columns=1)
    return figure


def _short(name: str) -> str:
    """Cut in the middle: names of machines differ at their ends."""
    half = _LETTERS // 2
    return name if len(name) <= _LETTERS else f"{name[:half]} … {name[-half:]}"


def _axis(axes: Axes, label: str) -> None:
    axes.set_xlabel(label)
    axes.set_xlim(left=0)
    axes.grid(axis="y", color=GRID, lw=0.4)
