"""What all figures have in common: texts, colours, marks, axes, and the link from a mark to its
point.
"""

import io
import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from kvbench.model.planes import apart
from kvbench.native import default_library
from kvbench.store.files import replacing, writing
from kvbench.texts import shown
from kvbench.units import KIB, size

# Use only these colours, and no transparency: a dark page replaces exactly them (see style.css).
# COLOURS, one for each dtype, differ in lightness, also for the colour-blind: any two by 0.14 or
# more in OKLab, as seen without red, green or blue cones.
INK, FAINT, GRID, PAPER = "#1f2328", "#5b626c", "#d8dbe0", "#ffffff"
COLOURS = ("#387cad", "#a4060b", "#5bd7af", "#f62158", "#e9a409", "#aa2aff", "#6515a7", "#999bff")
SHADES = ("#f1f4f8", "#e4eaf2")  # of neighbouring areas behind the marks
MARKS = "os^DvPX<"
HOT = "hot"  # the residency with warm caches
_MARGIN = 0.1  # inches: letters of a page may be wider than the letters of the layout
WIDTH = 9.0  # inches; a page shows a figure 600 to 1100 pixels wide
_STYLE: Any = matplotlib.rc_params_from_file(
    Path(__file__).with_name("look.mplstyle"), use_default_template=False
)


@contextmanager
def styled(**more: Any) -> Iterator[None]:
    """Use the project's style while figures are drawn. Warnings about letters that the font lacks
    are hidden: a picture shows boxes for them, a page shows the letters.
    """
    with matplotlib.rc_context(_STYLE | more), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. `table`: every number that is drawn; it becomes a CSV file. `missing`: if the table
    has no rows, the reason. `about`: how to read the figure, and what every percentage is a share
    of. `below`: the name of the figure under which a page folds this one.
    """

    name: str  # of its files
    title: str
    about: str
    table: pd.DataFrame
    draw: Callable[[pd.DataFrame], Canvas]
    missing: str = ""
    below: str = ""

    def canvas(self) -> Canvas:
        with styled():
            return self.draw(self.table)


def save(figure: Canvas, path: Path) -> None:
    """Save a figure as an image. The ending of the file's name chooses its format."""
    with writing(path, "then draw it again"), replacing(path, asked=True) as file, styled():
        figure.savefig(file, format=path.suffix[1:], dpi=150)


def canvas(
    rows: int = 1, columns: int = 1, height: float = 4.2, width: float = WIDTH, **more: Any
) -> tuple[Canvas, list[Axes]]:
    """A new figure, and its axes in reading order; each row is `height` inches high. pyplot is not
    used, because it would ask for a screen.
    """
    layout = ConstrainedLayoutEngine(w_pad=_MARGIN, h_pad=_MARGIN / 2)
    figure = Canvas(figsize=(width, height * rows), layout=layout)
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **more).flat)


def panels(count: int, height: float) -> tuple[Canvas, list[Axes], int]:
    """A new figure with `count` axes, two in a row if there are several; and the number in a
    row.
    """
    columns = 1 if count == 1 else 2
    figure, every = canvas(math.ceil(count / columns), columns, height)
    for axes in every[count:]:
        axes.set_visible(False)
    return figure, every[:count], columns


class Look:
    """Colour and mark of each dtype, the same in every report. A pair of dtypes has K's colour and
    V's mark.
    """

    def __init__(self, points: pd.DataFrame) -> None:
        known = default_library().words("dtype")
        others = sorted(word for dtype in points["dtype"].unique() for word in apart(dtype))
        every = dict.fromkeys([*known, *others])
        self._looks = dict(zip(every, itertools.cycle(zip(COLOURS, MARKS)), strict=False))

    def colour(self, dtype: str) -> str:
        return self._looks.get(apart(dtype)[0], (FAINT, "o"))[0]

    def mark(self, dtype: str) -> str:
        return self._looks.get(apart(dtype)[1], (FAINT, "o"))[1]


def bytes_axis(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(LogLocator(base=2, subs=(1.0,), numticks=9))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: size(count)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def rate_axis(axes: Axes, label: str, log: bool = False) -> None:
    """Make the vertical axis one of rates: from zero, or, with `log`, over decades."""
    axes.set_ylabel(label)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Heights near the `wanted` ones, which rise: each at least `gap` above the one before, and
    none above the axes.
    """
    found = list[float]()
    for place in wanted:
        found.append(max(place, found[-1] + gap) if found else place)
    shift = (sum(found) - sum(wanted)) / len(wanted)
    return [place - max(shift, found[-1] - 1) for place in found]


def tokens(count: int) -> str:
    """A number of tokens, as an axis writes it: "4k"."""
    return f"{count // KIB}k" if count % KIB == 0 else f"{count:,}"


def rows_axis(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a panel, from the top."""
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)


def legend_below(figure: Canvas, columns: int = 3, handles: Sequence[Artist] = ()) -> None:
    """Add a legend below the panels, where it hides no data."""
    named: dict[str, Artist] = {}
    for axes in figure.axes:
        handles_of, labels = axes.get_legend_handles_labels()
        named |= {
            label: each
            for label, each in zip(labels, handles_of, strict=True)
            if label not in named
        }
    if handles := handles or list(named.values()):
        figure.legend(handles=handles, loc="outside lower left", ncols=columns)


def legend_lines(shown: Mapping[str, Mapping[str, Any]]) -> list[Artist]:
    """Lines of a legend: by meaning, the look of a mark or line. The default colour is ink."""
    return [Line2D([], [], label=name, **{"color": INK, **how}) for name, how in shown.items()]


_count = itertools.count()
_TAGGED = re.compile(r'id="point-(\d+)-\d+"')
_ANONYMOUS = re.compile(
    r' id="(?:figure|axes|patch|line2d|text|matplotlib\.axis|'
    r"xtick|ytick|legend|[A-Za-z]*Collection|"
    r'Quad[A-Za-z]*|FillBetween[A-Za-z]*)_\d+"'
)


def tag(artist: Artist, row: int) -> Artist:
    """Link a drawn mark to its point: a row of the points' table, which a page shows beside it."""
    artist.set_gid(f"point-{row}-{next(_count)}")
    return artist


def bars(
    axes: Axes,
    rows: pd.DataFrame,
    value: str,
    names: Sequence[str],
    words: Sequence[str],
    look: Look,
) -> None:
    """Draw horizontal bars in the colours of their dtypes, with intervals. An interval is ink on
    paper, because a bar may be as dark as ink. `names` stand on the left, `words` on the right.
    """
    for place, row in enumerate(rows.to_dict("records")):
        drawn = [*axes.barh(place, row[value], height=0.66, color=look.colour(row["dtype"]))]
        for colour, wide in ((PAPER, 2.6), (INK, 1.0)):
            ends = [row[f"{value}_low"], row[f"{value}_high"]]
            drawn += axes.plot(
                ends, [place, place], color=colour, lw=wide, solid_capstyle="butt", zorder=3
            )
        for part in drawn:
            tag(part, int(row["row"]))
        axes.text(
            1.02, place, words[place], transform=axes.get_yaxis_transform(), va="center", fontsize=9
        )
    rows_axis(axes, names)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def svg(figure: Canvas, name: str, title: str = "") -> str:
    """The figure as an <svg> element for a page. The element of a mark has the row of its point as
    `data-point`.
    """
    text = io.StringIO()
    facts = {"Date": None, "Creator": None} | ({"Title": title} if title else {})
    with styled(**{"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata=facts)
    found = shown(text.getvalue())
    found = found[found.index("<svg") :]
    return _TAGGED.sub(r'data-point="\1"', _ANONYMOUS.sub("", found))
