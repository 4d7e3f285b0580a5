"""Machines against machines: how they are called, and what is drawn of each."""

import re

import pytest
from matplotlib import pyplot as plt

from kvbench.report.figures.beside import beside
from kvbench.report.figures.look import styled, svg
from tests.made_run import STORE, probe, visit
from tests.report.drawn import RATES, STORES, found_in, strange_colours

FOUND = found_in([probe(0, 20.0), visit(0, RATES), visit(0, STORES, STORE)])


@pytest.fixture
def drawn():
    """The canvas of runs that are all the same, by the names of their machines."""
    made = []

    def of(*names):
        made.append(beside([FOUND] * len(names), names).canvas())
        return made[-1]

    yield of
    for canvas in made:
        plt.close(canvas)


def words(canvas):
    with styled():
        text = svg(canvas, "machines")
    assert not strange_colours(text)
    return re.findall(r"<text[^>]*>([^<]*)</text>", text)


def test_a_name_is_no_formula(drawn):
    assert {"1: a $\\frob$ of ${x}$", "2: x^2"} <= set(words(drawn("1: a $\\frob$ of ${x}$", "2: x^2")))
