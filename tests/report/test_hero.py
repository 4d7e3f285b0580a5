"""The bars: what the answers say, and nothing else."""

import re
from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Basis
from kvbench.report.figures.hero import hero
from tests.made_run import DECODE, visit
from tests.report.drawn import drawn, found_in, strange_colours, tagged
from tests.report.planted import answered, decode

I8 = replace(DECODE, dtype="i8", variant="dot")
RATES = {"point": [10.0], "twin": [20.0]}


def of(basis):
    """40 tokens/s are 80 % of what memory allows; nobody knows what 30 are."""
    rows = [
        decode(I8, 40.0, 25.0, 1.0, 0.8, basis=basis),
        decode(DECODE, 30.0, 28.0, 0.75, basis=basis),
    ]
    found = answered(found_in([visit(0, RATES, I8), visit(0, RATES)]), rows)
    figure, text = drawn(hero, found)
    assert not strange_colours(text) and tagged(text) == set(figure.table["row"])
    return figure, re.findall(r"<text[^>]*>([^<]*)</text>", text)


def test_bars_are_the_answers():
    figure, words = of(Basis.ROUNDS)
    assert figure.table["dtype"].tolist() == ["i8", "f16"]
    allows = figure.table["memory_allows"]
    assert allows[0] == pytest.approx(50.0) and allows[1:].isna().all()
    assert {"i8 dot, head", "f16 flash, head", "1e-02", "30"} <= set(words)
    assert figure.table["lead"].tolist() == [1.0, 0.75]
    assert "llama-3-8b, 1,024 tokens, 2 threads" in figure.title and "what memory allows" in words


def test_points_of_visits_of_their_own_have_no_ratio():
    figure, words = of(Basis.APART)
    assert figure.table["lead"].isna().all() and not [word for word in words if word.endswith("x")]
