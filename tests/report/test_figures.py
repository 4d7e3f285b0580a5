"""Figures of a run with few results: each draws what there is, or says what is
missing.
"""

import pytest

from kvbench.report.figures import every
from tests.report.drawn import drawn, found_in, strange_colours, unknown
from tests.report.made import BARE


@pytest.mark.parametrize("name", BARE)
@pytest.mark.parametrize("change", [lambda found: found, unknown], ids=["known", "unknown"])
def test_little_to_show(name, change):
    found = change(found_in(BARE[name][0]))
    figures = every(found)
    assert {figure.name for figure in figures} >= {"staircase", "saturation", "roofline", "stores"}
    for figure in figures:
        _, text = drawn(lambda *_, figure=figure: figure, found)
        assert bool(text) is not bool(figure.missing) and not strange_colours(text)
