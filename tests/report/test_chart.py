"""Figures of plain panels: what is drawn of a table, looked up in the axes."""

import numpy as np
import pandas as pd
import pytest

from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import COLOURS

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


def test_a_line_for_each_value_and_whiskers():
    canvas = drawn(
        LINES, Panel(**US, by="way", low="low", high="high", title="Time", levels=((3.0, "even"),))
    )
    (axes,) = canvas.axes
    first, second = (line for line in axes.lines if line.get_label() in ("all", "window"))
    assert list(first.get_xdata()) == [512, 1024, 2048] and list(first.get_ydata()) == [1, 2, 4]
    assert list(second.get_xdata()) == [512, 1024], "what is not known is not drawn"
    assert first.get_color() != second.get_color() and first.get_marker() != second.get_marker()
    whiskers = [
        segment[:, 1].tolist() for part in axes.collections for segment in part.get_segments()
    ]
    assert whiskers == [[0.9, 1.2], [1.9, 2.2], [3.9, 4.2], [0.9, 1.2], [1.9, 2.2]]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")) == (
        "tokens",
        "µs",
        "Time",
    )
    assert axes.get_ylim()[0] == 0 and "even" in [text.get_text() for text in axes.texts]
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["all", "window"]


def test_bars_stand_beside_each_other_around_their_place():
    (axes,) = drawn(LINES, Panel(**US, by="way", bars=True, low="low", high="high")).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["512", "1024", "2048"]
    middles = {
        round(bar.get_x() + bar.get_width() / 2, 3): bar.get_height() for bar in axes.patches
    }
    assert middles == {-0.2: 1.0, 0.2: 1.0, 0.8: 2.0, 1.2: 2.0, 1.8: 4.0}
    table = pd.DataFrame({"dtype": ["a", "b"], "error": [1.1e-6, 2e-3]})
    (axes,) = drawn(table, Panel("dtype", "error", "", "error", bars=True, log="y")).axes
    assert axes.get_yscale() == "log" and axes.get_ylim()[0] == pytest.approx(1e-7)


def test_panels_show_their_rows_and_share_colours():
    panels = [Panel(**US, by="way", where=("pages", pages)) for pages in ("thp", "base")]
    first, second = drawn(LINES.assign(us=LINES["us"].fillna(4.0)), *panels).axes
    assert [line.get_label() for line in first.lines] == ["window"] and list(
        first.lines[0].get_xdata()
    ) == [2048]
    assert {line.get_label(): line.get_color() for line in second.lines} == {
        "all": COLOURS[0],
        "window": COLOURS[1],
    }
    assert first.lines[0].get_color() == COLOURS[1], "one way has one colour in all panels"
