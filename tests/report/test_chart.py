"""Figures of plain panels: what is drawn of a table, looked up in the axes."""

import numpy as np
import pandas as pd
import pytest

from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import COLOURS, svg
from tests.report.drawn import strange_colours

LINES = pd.DataFrame(
    {
        "context": [512, 1024, 2048, 512, 1024, 2048],
        "way": ["all"] * 3 + ["window"] * 3,
        "us": [1.0, 2.0, 4.0, 1.0, 2.0, np.nan],
        "low": [0.9, 1.9, 3.9, 0.9, 1.9, np.nan],
        "high": [1.2, 2.2, 4.2, 1.2, 2.2, np.nan],
        "pages": ["base"] * 5 + ["thp"],
    }
)
US = {"x": "context", "y": "us", "x_label": "tokens", "y_label": "µs"}


def drawn(table, *shown):
    """The canvas of panels of a table."""
    return chart("made", "Made", "About.", table, shown).canvas()


def ticks(axes):
    return [tick.get_text() for tick in axes.get_xticklabels()]


def test_a_line_for_each_value_and_whiskers():
    canvas = drawn(LINES, Panel(**US, by="way", low="low", high="high", title="Time"))
    (axes,) = canvas.axes
    first, second = (line for line in axes.lines if line.get_label() in ("all", "window"))
    assert list(first.get_xdata()) == [512, 1024, 2048] and list(first.get_ydata()) == [1, 2, 4]
    assert list(second.get_xdata()) == [512, 1024], "what is not known is not drawn"
    assert first.get_color() != second.get_color() and first.get_marker() != second.get_marker()
    whiskers = [segment[:, 1].tolist() for part in axes.collections for segment in part.get_segments()]
    assert whiskers == [[0.9, 1.2], [1.9, 2.2], [3.9, 4.2], [0.9, 1.2], [1.9, 2.2]]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")) == ("tokens", "µs", "Time")
    assert axes.get_ylim()[0] == 0
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["all", "window"]


def test_bars_stand_beside_each_other_around_their_place():
    (axes,) = drawn(LINES, Panel(**US, by="way", bars=True, low="low", high="high")).axes
    assert ticks(axes) == ["512", "1024", "2048"]
    middles = {round(bar.get_x() + bar.get_width() / 2, 3): bar.get_height() for bar in axes.patches}
    assert middles == {-0.2: 1.0, 0.2: 1.0, 0.8: 2.0, 1.2: 2.0, 1.8: 4.0}
    assert all(bar.get_width() < 0.4 for bar in axes.patches)


def test_bars_of_a_logarithm_begin_below_the_least():
    table = pd.DataFrame({"dtype": ["a", "b"], "error": [1.1e-6, 2e-3]})
    (axes,) = drawn(table, Panel("dtype", "error", "", "error", bars=True, log="y")).axes
    assert axes.get_yscale() == "log" and axes.get_ylim()[0] == pytest.approx(1e-7)


def test_panels_show_their_rows_and_share_colours():
    one = Panel(**US, by="way", where=("pages", "thp"))
    other = Panel(**US, by="way", where=("pages", "base"))
    only = LINES.assign(us=LINES["us"].fillna(4.0))
    first, second = drawn(only, one, other).axes
    assert [line.get_label() for line in first.lines] == ["window"] and list(first.lines[0].get_xdata()) == [2048]
    assert {line.get_label(): line.get_color() for line in second.lines} == {"all": COLOURS[0], "window": COLOURS[1]}
    assert first.lines[0].get_color() == COLOURS[1], "one way has one colour in all panels"


def test_words_are_places_in_their_order():
    table = pd.DataFrame({"batch": ["uniform", "one long"], "share": [98.0, 80.0]})
    panel = Panel("batch", "share", "", "% of an even one", levels=((100.0, "even"),))
    (axes,) = drawn(table, panel).axes
    assert ticks(axes) == ["uniform", "one long"]
    assert any(list(line.get_ydata()) == [100.0, 100.0] for line in axes.lines)
    assert "even" in [text.get_text() for text in axes.texts]


def test_a_page_that_is_shown_dark_finds_its_colours():
    canvas = drawn(LINES, Panel(**US, by="way", low="low", high="high", levels=((1.0, "one"),)), Panel(**US, bars=True))
    assert not strange_colours(svg(canvas, "made"))
