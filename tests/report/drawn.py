"""Figures of made-up runs, drawn as they are for a page, and what all of them must keep to."""

import math
import re
from collections import Counter
from dataclasses import replace

import pandas as pd

from kvbench.analysis.means.findings import Findings, findings
from kvbench.report.figures.look import COLOURS, FAINT, GRID, INK, PAPER, SHADES, Look, styled, svg
from tests.made_run import MACHINE, RUN, STORE

STORES = {"point": [8.0, 8.0], "copy": [10.0, 10.0], "copy_nt": [16.0, 16.0]}
APPEND = replace(STORE, op="append")


def unknown(found: Findings) -> Findings:
    """The same points, all without numbers."""
    points = found.points
    numbers = points.select_dtypes("float64").columns
    return replace(
        found,
        points=points.assign(**dict.fromkeys(numbers, math.nan), unstable=pd.NA, outliers=pd.NA),
    )


def found_in(records, machine=MACHINE, models=()) -> Findings:
    return findings(RUN, records, machine, models=models)


def drawn(make, found):
    """The figure that `make` makes of what was found, and its text as SVG: "" where it says why
    there is nothing.
    """
    figure = make(found, Look(found.points))
    assert figure.table.empty is False or figure.missing
    assert not re.search(r"\b(nan|None|NA)\b", f"{figure.title} {figure.about} {figure.missing}")
    if figure.missing:
        assert re.search(r"[Nn]o .*: run kvbench sweep \w+", figure.missing)
        return figure, ""
    with styled():
        canvas = figure.draw(figure.table)
        # takes as long as all the rest; where things end up is for a browser to see
        canvas.set_layout_engine("none")
        text = svg(canvas, figure.name)
    for words in re.findall(r"<text[^>]*>([^<]*)</text>", text):
        assert not re.search(r"\b(nan|None|NA|inf)\b", words), words
    return figure, text


def tagged(text):
    """Rows of the points' table that some mark shows."""
    return {*parts(text)}


def parts(text):
    """How many marks, bars and caps show each row of the points' table."""
    return Counter(int(row) for row in re.findall(r'data-point="(\d+)"', text))


def strange_colours(text):
    """Colours that a dark page would not replace."""
    known = {INK, FAINT, GRID, PAPER, *COLOURS, *SHADES}
    return set(re.findall(r"#[0-9a-f]{6}\b", text)) - known
