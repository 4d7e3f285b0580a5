"""Formats of K and V: tokens per second by the error of the output, a panel for each kind of
keys.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from kvbench.analysis.answers.mixed import Place
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import mixed as shown
from kvbench.model.point import CHANNEL
from kvbench.report.figures.look import (
    COLOURS,
    FAINT,
    INK,
    PAPER,
    Figure,
    Look,
    canvas,
    legend_below,
    legend_lines,
    tag,
)
from kvbench.report.words import said

_HEIGHT = 4.6  # inches of a panel
_ROOM = 1.7  # times the largest error: there is room for its name
_TOP, _BOTTOM = 1.06, 0.9  # times the fastest and the slowest
_LEAD = COLOURS[0]
_LOOKS: dict[str, dict[str, Any]] = {
    Place.LEADS: {"color": _LEAD, "mfc": _LEAD},
    Place.LEVEL: {"color": _LEAD, "mfc": PAPER},
    Place.BEHIND: {"color": FAINT, "mfc": PAPER},
}
_ONE, _PAIR, _BY_CHANNEL = "o", "D", "s"
_MEANINGS: dict[str, dict[str, Any]] = {
    "line: the fastest that an error allows": {"color": _LEAD, "lw": 1.4},
    "bar: 95% interval of tokens/s, over launches": {"marker": "|", "color": INK, "ms": 11},
    "filled: leads, faster than all with less error": {"marker": _ONE, **_LOOKS[Place.LEADS]},
    "hollow: one with less error may be as fast": {"marker": _ONE, **_LOOKS[Place.LEVEL]},
    "grey: another is faster with no more error": {"marker": _ONE, **_LOOKS[Place.BEHIND]},
    "round: K and V of one format": {"marker": _ONE, "color": INK, "mfc": PAPER},
    "diamond: a pair, K + V": {"marker": _PAIR, "color": INK, "mfc": PAPER},
    "square: scales of K by channel, of a pair or not": {
        "marker": _BY_CHANNEL,
        "color": INK,
        "mfc": PAPER,
    },
    "dot in a name: its kernel rounds queries and weights": {"marker": "", "color": INK},
}


def mixed(found: Findings, look: Look) -> Figure:
    own = found.answers.mixed
    return Figure(
        "mixed",
        said("mixed", "title", own),
        said("mixed", "about", own, found.answers.workload),
        shown.mixed(found),
        _draw,
    )


def _draw(table: pd.DataFrame) -> Canvas:
    kinds = list(dict.fromkeys(table["keys"]))
    figure, every = canvas(1, max(1, len(kinds)), _HEIGHT, sharex=True, sharey=True)
    first = every[0]
    first.set_xscale("log")
    first.set_xlim(table["error"].min() / _ROOM, table["error"].max() * _ROOM)
    rates = table["tokens_per_second_low"].min(), table["tokens_per_second_high"].max()
    first.set_ylim(_BOTTOM * rates[0], _TOP * rates[1])
    first.set_ylabel("tokens/s, attention alone (more is better)")
    for axes, keys in zip(every, kinds, strict=False):
        rows = table[table["keys"] == keys]
        axes.set_title(said("mixed", "panel", keys), fontsize=9.5)
        axes.set_xlabel("error, % of the output (less is better)")
        axes.xaxis.set_major_locator(LogLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        corners = _frontier(axes, rows)
        for row in rows.itertuples():
            _mark(axes, row)
        _named(axes, rows, corners)
    legend_below(
        figure,
        2,
        legend_lines(
            {name: {"ls": "", **how} if "marker" in how else how for name, how in _MEANINGS.items()}
        ),
    )
    return figure


def _frontier(axes: Axes, rows: pd.DataFrame) -> list[tuple[float, float]]:
    """Draw the line of the fastest format for each error, and return its corners in order."""
    own = rows[rows["place"] == Place.LEADS].sort_values("error")
    corners, below = list[tuple[float, float]](), axes.get_ylim()[0]
    for error, rate in zip(own["error"], own["tokens_per_second"], strict=True):
        corners += [(error, corners[-1][1] if corners else below), (error, rate)]
    if corners:
        corners.append((axes.get_xlim()[1], corners[-1][1]))
        axes.plot(*zip(*corners, strict=True), color=_LEAD, lw=1.4, zorder=1)
    return corners


def _mark(axes: Axes, row: Any) -> None:
    how = _LOOKS[row.place]
    ends = [row.tokens_per_second_low, row.tokens_per_second_high]
    drawn = axes.plot([row.error] * 2, ends, color=how["color"], lw=1.0, zorder=2)
    mark = _BY_CHANNEL if row.k_scale == CHANNEL else _PAIR if row.pair else _ONE
    drawn += axes.plot(
        row.error,
        row.tokens_per_second,
        mark,
        ms=7 if mark == _ONE else 6,
        mew=1.4,
        zorder=3,
        **how,
    )
    for part in drawn:
        tag(part, int(row.row))


# ---- names: each beside its mark, where nothing else stands --------------------------------------


class _Box(NamedTuple):
    """A rectangle, in points from the left and the bottom of a panel."""

    left: float
    bottom: float
    wide: float
    high: float

    def inside(self, wide: float, high: float) -> bool:
        across = self.left >= 0 and self.left + self.wide <= wide
        return across and self.bottom >= 0 and self.bottom + self.high <= high

    def meets(self, other: "_Box") -> bool:
        return (
            self.left < other.left + other.wide
            and other.left < self.left + self.wide
            and self.bottom < other.bottom + other.high
            and other.bottom < self.bottom + self.high
        )


_SIZE = 9.0  # points, of a letter
_WIDE, _HIGH = 0.58 * _SIZE, 1.15 * _SIZE  # of a letter and of a line, about
_MARK = 9.0  # of a mark with what should be free around it
_LINE = 2.0  # of a line likewise
_PANEL = 285.0, 250.0  # points of a panel, about
_STEPS = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5)  # lines up or down, the nearest first


def _named(axes: Axes, rows: pd.DataFrame, corners: Sequence[tuple[float, float]]) -> None:
    own = rows.sort_values("error").to_dict("records")
    marks = [_place(axes, row["error"], row["tokens_per_second"]) for row in own]
    taken = [_Box(x - _MARK / 2, y - _MARK / 2, _MARK, _MARK) for x, y in marks]
    taken += [_along(*ends) for ends in pairwise(_place(axes, *corner) for corner in corners)]
    for row, mark in zip(own, marks, strict=True):
        name, leads = said("mixed", "label", row), row["place"] == Place.LEADS
        box = _free(mark, _WIDE * (1.08 if leads else 1.0) * len(name), leads, taken)
        taken.append(box)
        away = box.left - mark[0], box.bottom - mark[1]
        far = abs(away[1] + _HIGH / 2) > 1.5 * _HIGH
        axes.annotate(
            name,
            (row["error"], row["tokens_per_second"]),
            (away[0], away[1] + _HIGH / 4),
            textcoords="offset points",
            fontsize=_SIZE,
            color=FAINT if row["place"] == Place.BEHIND else INK,
            weight="bold" if leads else "normal",
            arrowprops={"arrowstyle": "-", "color": FAINT, "lw": 0.6} if far else None,
        )


def _place(axes: Axes, error: float, rate: float) -> tuple[float, float]:
    """The position of a mark, in points."""
    inside = axes.transData + axes.transAxes.inverted()
    x, y = inside.transform((error, rate))
    return x * _PANEL[0], y * _PANEL[1]


def _along(one: tuple[float, float], other: tuple[float, float]) -> _Box:
    """The box around a horizontal or vertical part of a line."""
    (left, right), (bottom, top) = (sorted(ends) for ends in zip(one, other, strict=True))
    return _Box(left - _LINE, bottom - _LINE, right - left + 2 * _LINE, top - bottom + 2 * _LINE)


def _free(mark: tuple[float, float], wide: float, left: bool, taken: Sequence[_Box]) -> _Box:
    """The first free place for a name within the panel. `left`: prefer the left of the mark,
    because the line of the fastest goes to the right.
    """
    places = list(_places(mark, wide, left))
    own = [box for box in places if box.inside(*_PANEL)] or places
    return next((box for box in own if not any(box.meets(other) for other in taken)), own[0])


def _places(mark: tuple[float, float], wide: float, left: bool) -> Iterator[_Box]:
    x, y = mark
    beside = (x - _MARK - wide, x + _MARK, x - wide / 2)
    for step in _STEPS:
        bottom = y - _HIGH / 2 + step * _HIGH
        for place in beside if left else (*beside[1::-1], beside[2]):
            yield _Box(place, bottom, wide, _HIGH)
