"""Machines against machines: how they are called, and what is drawn of each."""

import re

from kvbench.report.figures.beside import beside
from kvbench.report.figures.look import styled, svg
from tests.made_run import STORE, probe, visit
from tests.report.drawn import RATES, STORES, found_in, strange_colours

FOUND = found_in([probe(0, 20.0), visit(0, RATES), visit(0, STORES, STORE)])


def drawn(*names):
    """The canvas of runs that are all the same, by the names of their machines."""
    return beside([FOUND] * len(names), names).canvas()


def words(canvas):
    with styled():
        text = svg(canvas, "machines")
    assert not strange_colours(text)
    return re.findall(r"<text[^>]*>([^<]*)</text>", text)


def test_a_name_is_no_formula():
    assert {"1: a $\\frob$ of ${x}$", "2: x^2"} <= set(words(drawn("1: a $\\frob$ of ${x}$", "2: x^2")))


def test_a_long_name_leaves_room_for_all_others():
    """It is cut where names that are alike differ least; each machine has a line of the legend."""
    names = [f"{number}: {500 * 'W'} @ {number}.00GHz" for number in (1, 2, 3)]
    canvas = drawn(*names)
    canvas.draw_without_rendering()
    (legend,) = canvas.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert all(text[:2] == name[:2] and text[-9:] == name[-9:] for text, name in zip(shown, names, strict=True))
    boxes = [text.get_window_extent() for text in legend.get_texts()]
    assert all(0 <= box.x0 and box.x1 <= canvas.bbox.x1 for box in boxes)
    assert boxes[0].y0 >= boxes[1].y1 > boxes[1].y0 >= boxes[2].y1


def test_machines_with_equal_rates_lie_beside_each_other():
    rates, shares = drawn("1: a", "2: b", "3: c").axes
    for axes in (rates, shares):
        places = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 2]
        assert len(places) == 3 and all(len({*each}) == 3 for each in zip(*places, strict=True))
        assert all(max(each) - min(each) < 1 / 2 for each in zip(*places, strict=True))
