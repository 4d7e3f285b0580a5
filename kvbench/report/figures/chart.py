"""A figure of simple panels that draw columns of its table as lines or bars."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullLocator

from kvbench.report.figures import look as style
from kvbench.report.figures.look import Figure
from kvbench.units import size

_HEIGHT = 3.2  # inches of a panel
_TICKS = 9  # values that an axis names one by one, at most
_NAMED = 1.1  # ratio to the value named before it, at least, for a name on a log axis
_MARKED = 40  # points of a line, at most, for each to get a mark
_WIDE = 0.8  # share of the room that bars beside each other fill


@dataclass(frozen=True, slots=True)
class Panel:
    """`y` over `x`, columns of the table, with a line (or `bars`) for each value of `by`.

    low, high: columns with the interval of y. where: a column and the value of the rows to show.
    log: logarithmic axes, such as "xy". text: writes a value of x. levels: heights to mark, each
    with its name. If the table has a column `row`, marks are linked to that row of the points'
    table.
    """

    x: str
    y: str
    x_label: str
    y_label: str
    title: str = ""
    by: str = ""
    low: str = ""
    high: str = ""
    where: tuple[str, Any] | None = None
    bars: bool = False
    log: str = ""
    text: Callable[[Any], str] = "{}".format
    levels: tuple[tuple[float, str], ...] = ()


def chart(
    name: str,
    title: str,
    about: str,
    table: pd.DataFrame,
    shown: Sequence[Panel],
    colours: Mapping[str, str] = MappingProxyType({}),
    missing: str = "",
) -> Figure:
    """A figure of these panels. `colours`: by value of `by`; other values take the default colours
    in turn. `missing`: the text of a figure without rows.
    """
    draw = partial(_draw, shown=tuple(shown), colours=colours)
    return Figure(name, title, about, table, draw, "" if len(table) else missing)


def _draw(table: pd.DataFrame, shown: tuple[Panel, ...], colours: Mapping[str, str]) -> Canvas:
    figure, every, _ = style.panels(len(shown), _HEIGHT)
    for axes, panel in zip(every, shown, strict=True):
        own = table if panel.where is None else table[table[panel.where[0]] == panel.where[1]]
        names = list(dict.fromkeys(table[panel.by])) if panel.by else [""]
        _panel(axes, panel, own[own[panel.y].notna()], names, colours)
    style.legend_below(figure)
    return figure


def _panel(
    axes: Axes, panel: Panel, rows: pd.DataFrame, names: list[Any], colours: Mapping[str, str]
) -> None:
    numeric = not panel.bars and pd.api.types.is_numeric_dtype(rows[panel.x])
    places = sorted(set(rows[panel.x])) if numeric else list(dict.fromkeys(rows[panel.x]))
    series = [
        (n, name, rows[rows[panel.by] == name] if panel.by else rows)
        for n, name in enumerate(names)
    ]
    series = [each for each in series if len(each[2])]
    for turn, (number, name, own) in enumerate(series):
        look: dict[str, Any] = {
            "color": colours.get(name, style.COLOURS[number % len(style.COLOURS)]),
            "label": str(name) or None,
        }
        at = np.array([x if numeric else places.index(x) for x in own[panel.x]])
        if panel.bars:
            width = _WIDE / len(series)
            at = at + (turn + 0.5) * width - _WIDE / 2
            axes.bar(at, own[panel.y], 0.92 * width, **look)
        else:
            mark = style.MARKS[number % len(style.MARKS)] if len(own) <= _MARKED else None
            axes.plot(at, own[panel.y], marker=mark, ms=4.5, lw=1.4, **look)
            for x, y, row in zip(at, own[panel.y], own.get("row", [None] * len(own)), strict=True):
                if mark and pd.notna(row):
                    style.tag(axes.plot(x, y, mark, ms=4.5, color=look["color"])[0], int(row))
        if panel.low:
            for colour, wide in (
                ((style.PAPER, 2.4), (style.INK, 0.8)) if panel.bars else ((style.INK, 0.8),)
            ):
                axes.vlines(at, own[panel.low], own[panel.high], color=colour, lw=wide, zorder=3)
    axes.set_title(panel.title)
    _across(axes, panel, places, numeric)
    _up(axes, panel, rows[panel.y])


def _across(axes: Axes, panel: Panel, places: list[Any], numeric: bool) -> None:
    axes.set_xlabel(panel.x_label)
    if not numeric:
        axes.set_xticks(range(len(places)), [panel.text(place) for place in places])
        axes.grid(axis="x", visible=False)
    elif panel.text is size:
        style.bytes_axis(axes, panel.x_label)
    elif "x" in panel.log or len(places) <= _TICKS:
        apart = places
        if "x" in panel.log:  # names of near ones would overlap
            axes.set_xscale("log", base=2)
            apart = places[:1]
            for place in places[1:]:
                apart += [place] if place > _NAMED * apart[-1] else []
        chosen = apart[:: -(-len(apart) // _TICKS) or 1]
        axes.set_xticks(chosen, [panel.text(place) for place in chosen])
        axes.xaxis.set_minor_locator(NullLocator())


def _up(axes: Axes, panel: Panel, heights: pd.Series) -> None:
    log = "y" in panel.log
    style.rate_axis(axes, panel.y_label, log=log)
    if not log:
        axes.set_ylim(bottom=min(0, heights.min()) if len(heights) else 0)
    elif panel.bars and len(heights):  # they begin below the least of them
        axes.set_ylim(bottom=10 ** math.floor(math.log10(heights.min() / 3)))
    for height, name in panel.levels:
        if log:
            low, high = axes.get_ylim()
            axes.set_ylim(min(low, height / 1.5), max(high, height * 2))
        axes.axhline(height, color=style.FAINT, lw=1, ls=(0, (5, 3)))
        axes.annotate(
            name,
            (0.99, height),
            (0, 3),
            ("axes fraction", "data"),
            "offset points",
            fontsize=8.5,
            color=style.FAINT,
            ha="right",
            bbox={"fc": style.PAPER, "ec": "none", "pad": 0.6},
        )
