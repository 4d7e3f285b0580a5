"""Other engines beside ours: the share of a read that each reaches, in one cell; below it, folded,
all cells of each model.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown import peers as shown
from kvbench.model import OURS
from kvbench.report.cells import texts
from kvbench.report.figures.look import (
    COLOURS,
    FAINT,
    INK,
    PAPER,
    Figure,
    Look,
    canvas,
    rows_axis,
    tag,
)
from kvbench.report.words import said
from kvbench.units import cut

_NAME, _TOPIC = "peers", "nearest"  # of its files, and of its words
_WIDTH = 7.6  # inches: style.css says how wide a page shows it
_ROW, _FRAME = 0.34, 1.5  # inches: of an engine's row, and of the frame
_SMALL_ROW, _SMALL_FRAME = 0.21, 0.7  # the same for a figure with many cells
_FORMATS = 5  # formats beside each other, at most
_BESIDE = 0.55  # room for words beside a bar, as a share of the width of a 100 % bar
_SHARE, _WORDS = 38, 48  # points right of the bars: where a share ends and words begin
_LETTERS = 64  # of an engine's words, why it has no rate
_UNSAFE = re.compile(r"[^\w.-]+")  # characters that names of files should not have
_Row = Mapping[str, Any]


def peers(found: Findings, look: Look) -> Figure:
    """The figure of the cell that is shown first."""
    table = shown.peers(found)
    title, about = texts(_NAME)[0], said(_TOPIC, "about")
    if table.empty:
        return Figure(_NAME, title, about, table, _draw, said(_TOPIC, "missing"))
    cell = shown.shown_first(table, found.answers.workload)
    return Figure(_NAME, title, about, table[table["cell"] == cell], _draw)


def models(found: Findings) -> Iterator[Figure]:
    """A figure of all cells for each model, if there are several cells."""
    table = shown.peers(found)
    if table["cell"].nunique() < 2:
        return
    for model, own in table.groupby("model", sort=False):
        first = str(model).split(", ")[0]
        name = f"{_NAME}-{_UNSAFE.sub('-', first) or 'shapes'}"
        title = said(_TOPIC, "cells", *_model(own))
        yield Figure(name, title, said(_TOPIC, "cells_about"), own, _draw_cells, below=_NAME)


def _draw(table: pd.DataFrame) -> Canvas:
    figure, (axes,) = canvas(height=_FRAME + _ROW * len(table), width=_WIDTH)
    rows = _rows(table)
    for place, row in enumerate(rows):
        _bar(axes, row, place)
        _told(axes, row, place)
    rows_axis(axes, [said(_TOPIC, "engine", row) for row in rows])
    _embolden(axes, [place for place, row in enumerate(rows) if row["ours"]])
    axes.set_xlim(0, 1.02 * shown.reach(table))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    axes.set_xlabel(said(_TOPIC, "axis"))
    axes.grid(visible=False, axis="y")
    axes.axvline(1.0, color=INK, lw=1.2, zorder=2.5)
    for across, text, right, side in (
        ("data", "line", 0, "right"),
        ("axes fraction", "share", _SHARE, "right"),
        ("axes fraction", "lead", _WORDS, "left"),
    ):
        of = (across, "axes fraction")
        _words(axes, (1, 1), of, said(_TOPIC, text), (right, 8), ha=side, color=FAINT)
    subtitle = said(_TOPIC, "subtitle", rows[0], shown.undecided(table))
    _words(axes, (0, 1), "axes fraction", subtitle, (0, 27), color=FAINT)
    axes.set_title(said(_TOPIC, "title"), fontsize=12, fontweight="bold", pad=41)
    return figure


def _rows(table: pd.DataFrame) -> list[_Row]:
    """A dictionary for each row; unknown values are None."""
    return table.astype(object).where(table.notna(), None).to_dict("records")


def _bar(axes: Axes, row: _Row, place: float, left: float = 0.0) -> None:
    """Draw a bar with its interval: ink on paper, because a bar may be as dark as ink."""
    if row["share"] is None:
        return
    colour = INK if row["ours"] else COLOURS[0]
    drawn = [*axes.barh(place, row["share"], left=left, height=0.62, color=colour)]
    if row["share_low"] is not None:
        ends = [left + row["share_low"], left + row["share_high"]]
        for line, wide in ((PAPER, 2.8), (INK, 1.1)):
            look: dict[str, Any] = {"color": line, "lw": wide, "solid_capstyle": "butt"}
            drawn += axes.plot(ends, [place, place], zorder=3, **look)
    for part in drawn:
        tag(part, int(row["row"]))


def _told(axes: Axes, row: _Row, place: int) -> None:
    """Write an engine's share and how many times as fast ours are, or why it has no rate."""
    if row["share"] is None:
        words = cut(said(_TOPIC, "why", row), _LETTERS)
        ground = {"fc": PAPER, "ec": "none", "pad": 0.5}  # for the line goes behind it
        _words(axes, (0, place), "data", words, (4, 0), color=FAINT, bbox=ground)
        return
    at, of, weight = (1, place), ("axes fraction", "data"), "bold" if row["ours"] else "normal"
    _words(axes, at, of, f"{row['share']:.0%}", (_SHARE, 0), ha="right", weight=weight)
    if not row["ours"]:
        _words(axes, at, of, said(_TOPIC, "faster", row), (_WORDS, 0))


def _words(axes: Axes, at: Any, of: Any, text: str, off: tuple[float, float], **look: Any) -> None:
    """Write a text at a position `of` the axes or the data, moved by `off` points."""
    how: dict[str, Any] = {"va": "center", "fontsize": 9, "annotation_clip": False, **look}
    axes.annotate(text, at, off, of, "offset points", **how)


def _embolden(axes: Axes, places: Collection[int]) -> None:
    for place in places:
        axes.get_yticklabels()[place].set_fontweight("bold")
    axes.tick_params(axis="y", length=0)


# ---- all cells of a model ------------------------------------------------------------------------


def _model(table: pd.DataFrame) -> tuple[str, int]:
    """The model's name, and its number of cells."""
    return str(table["model"].iloc[0]), table["cell"].nunique()


def _draw_cells(table: pd.DataFrame) -> Canvas:
    """Draw all cells of a model: formats beside each other, threads below each other. An engine has
    the same line in all formats.
    """
    bands, names, most = list(_bands(table)), list[str](), shown.reach(table)
    lines = sum(2 + band["label"].nunique() for band in bands)
    figure, (axes,) = canvas(height=_SMALL_FRAME + _SMALL_ROW * lines)
    for band in bands:
        ranked = band.sort_values("best_share", ascending=False)["label"].unique()
        places = {label: place for place, label in enumerate(ranked, len(names) + 1)}
        names += [said(_TOPIC, "band", band.iloc[0]), *ranked, ""]
        for column, (_, cell) in enumerate(band.groupby("cell", sort=False)):
            _cell(axes, _rows(cell), places, column * (most + _BESIDE), most)
    axes.set_yticks(range(lines), names, fontsize=8.5)
    heads = {said(_TOPIC, "band", band.iloc[0]) for band in bands}
    _embolden(axes, [place for place, name in enumerate(names) if name in heads | {OURS}])
    axes.set_ylim(lines - 1.5, -0.7)
    axes.set_xlim(0, _FORMATS * (most + _BESIDE))
    axes.set_xticks([])
    axes.set_title(cut(said(_TOPIC, "cells", *_model(table)), _LETTERS), fontweight="bold")
    axes.set_xlabel(said(_TOPIC, "cells_axis"), fontsize=9)
    axes.tick_params(axis="y", pad=10)
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    return figure


def _bands(table: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Groups of cells with equal threads, tokens, queries and kind of attention; each group has as
    many formats as fit beside each other.
    """
    for _, own in table.groupby(["threads", "context", "q_len", "attends"], sort=False):
        cells = own["cell"].unique()
        for start in range(0, len(cells), _FORMATS):
            yield own[own["cell"].isin(cells[start : start + _FORMATS])]


def _cell(
    axes: Axes, rows: list[_Row], places: Mapping[str, int], left: float, most: float
) -> None:
    first, last = min(places.values()), max(places.values())
    small: dict[str, Any] = {"va": "center", "fontsize": 8}
    axes.text(left, first - 1, rows[0]["dtype"], weight="bold", **small)
    axes.text(left + 1, first - 1, "100%", color=FAINT, ha="right", **small)
    for x, colour in ((left, FAINT), (left + 1, INK)):
        axes.plot([x, x], [first - 0.5, last + 0.5], color=colour, lw=0.8, zorder=2.5)
    for row in rows:
        place = places[row["label"]]
        _bar(axes, row, place, left)
        if row["share"] is None:
            axes.text(left + 0.03, place, said(_TOPIC, "nothing"), color=FAINT, **small)
        elif not row["ours"]:
            look = {"color": INK if row["decided"] else FAINT} | small
            axes.text(left + most + 0.04, place, said(_TOPIC, "times", row), **look)
