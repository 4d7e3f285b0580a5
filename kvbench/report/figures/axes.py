"""Tokens per second by context, heads, dtype and layout: a panel for each axis of the run."""

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullLocator

from kvbench.analysis.answers.answer import Basis
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import axes as shown
from kvbench.report.figures.look import (
    PAPER,
    Figure,
    Look,
    legend_below,
    legend_lines,
    panels,
    rate_axis,
    tag,
    tokens,
)
from kvbench.report.words.phrases import listed
from kvbench.units import counted

_HEIGHT = 3.3  # inches of a panel
# distances on an axis of words, whose steps are 1: between dtypes, and between kernels of one dtype
_APART, _KERNELS = 0.08, 0.14
_FLAT = 3  # names of an axis; more are turned
_TITLES = {
    shown.CONTEXT: "By context",
    shown.HEADS: "By heads",
    shown.DTYPE: "By dtype, all kernels",
    shown.LAYOUT: "By layout, the fastest variant",
}
_ABOUT = (
    "Tokens per second of decodes from memory, KV cache only. A point has the same value in each"
    " panel. Filled marks: timed side by side. Hollow marks: timed in visits of their own, so a"
    " small difference may come from another state of memory. Lines: intervals over launches."
)


def axes(found: Findings, look: Look) -> Figure:
    table, page = shown.axes(found), found.answers.workload
    title = f"Tokens per second by {listed(dict.fromkeys(table['panel']))}"
    whose = f"{page.model}, {page.context:,} tokens unless named" if page.model else ""
    about = f"{whose or 'One layer'}; {counted(page.threads, 'thread')}. {_ABOUT}"
    missing = "No two decodes from memory differ in one of these: run kvbench sweep quick."
    return Figure(
        "axes",
        title,
        about,
        table,
        lambda rows: _draw(rows, look),
        "" if len(table) else missing,
    )


def _draw(table: pd.DataFrame, look: Look) -> Canvas:
    names = dict.fromkeys(table["panel"])
    figure, every, columns = panels(len(names), _HEIGHT)
    if len(names) % columns:
        _widen(every[-1])
    for axis, name in zip(every, names, strict=True):
        _PANELS[name](axis, table[table["panel"] == name], look)
        axis.set_title(_TITLES[name])
        rate_axis(axis, "tokens/s", log=name == shown.CONTEXT)
    meanings: dict[str, dict[str, Any]] = {
        dtype: {"color": look.colour(dtype), "marker": look.mark(dtype), "ls": ""}
        for dtype in dict.fromkeys(table["dtype"])
    }
    dot: dict[str, Any] = {"ls": "", "marker": "o"}
    bases = {
        "side by side": (Basis.ROUNDS, dot),
        "a visit of its own": (Basis.APART, dot | {"mfc": PAPER}),
    }
    meanings |= {
        name: how for name, (basis, how) in bases.items() if (table["basis"] == basis).any()
    }
    legend_below(figure, 5, legend_lines(meanings))
    return figure


def _widen(axis: Axes) -> None:
    """Widen the last panel to all columns, if it is alone in its row."""
    if grid := axis.get_gridspec():
        axis.set_subplotspec(grid[-1, :])


def _mark(axis: Axes, x: float, row: Any, look: Look) -> None:
    colour = look.colour(row.dtype)
    ends = [row.tokens_per_second_low, row.tokens_per_second_high]
    drawn = axis.plot([x, x], ends, color=colour, lw=0.9)
    fill = colour if row.basis == Basis.ROUNDS else PAPER
    drawn += axis.plot(
        x, row.tokens_per_second, look.mark(row.dtype), color=colour, mfc=fill, ms=6, mew=1.4
    )
    for part in drawn:
        tag(part, row.row)


def _contexts(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    axis.set_xscale("log", base=2)
    for dtype, own in rows.groupby("dtype"):
        axis.plot(own["context"], own["tokens_per_second"], color=look.colour(str(dtype)), lw=1.2)
        for row in own.itertuples():
            _mark(axis, row.context, row, look)
    places = sorted(set(rows["context"]))
    axis.set_xticks(places, [tokens(place) for place in places])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("tokens of context")


def _words(axis: Axes, rows: pd.DataFrame, places: list[str], look: Look) -> None:
    """Mark rows on an axis of words; dtypes of one word stand beside each other."""
    dtypes = list(dict.fromkeys(rows["dtype"]))
    names = list(dict.fromkeys(places))
    for place, row in zip(places, rows.itertuples(), strict=True):
        moved = dtypes.index(row.dtype) - (len(dtypes) - 1) / 2
        _mark(axis, names.index(place) + _APART * moved, row, look)
    axis.set_xticks(range(len(names)), names)
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.grid(visible=False, axis="x")


def _heads(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    whose = [
        f"{row.model or counted(row.group, 'query head')}\n{row.q_heads} on {row.kv_heads}"
        for row in rows.itertuples()
    ]
    _words(axis, rows, whose, look)
    axis.set_xlabel("query heads on KV heads")
    if len(set(whose)) > _FLAT:
        axis.tick_params(axis="x", rotation=20, labelsize=8)


def _dtypes(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    """Mark rows by dtype; kernels of a dtype stand beside each other, the fastest first."""
    names = list(dict.fromkeys(rows["dtype"]))
    for place, (_, own) in enumerate(rows.groupby("dtype", sort=False)):
        for moved, row in enumerate(own.itertuples()):
            _mark(axis, place + _KERNELS * (moved - (len(own) - 1) / 2), row, look)
    axis.set_xticks(range(len(names)), names)
    axis.grid(visible=False, axis="x")


def _layouts(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    _words(axis, rows, list(rows["layout"]), look)


_PANELS: dict[str, Callable[[Axes, pd.DataFrame, Look], None]] = {
    shown.CONTEXT: _contexts,
    shown.HEADS: _heads,
    shown.DTYPE: _dtypes,
    shown.LAYOUT: _layouts,
}
