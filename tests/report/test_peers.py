"""The picture of other engines beside ours: one cell, from the nearest to memory on, and below it
all others.
"""

import re
from dataclasses import replace

import pytest

from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.shown import peers as shown
from kvbench.report.figures.peers import models, peers
from kvbench.report.page import folded
from tests.report import made
from tests.report.drawn import drawn, found_in, strange_colours, tagged
from tests.report.made import DEAD, FAST, SLOW, beside


def words(text):
    return [" ".join(each.split()) for each in re.findall(r"<text[^>]*>([^<]*)</text>", text)]


def test_the_nearest_to_memory_comes_first():
    found = found_in([*beside({FAST: 2.0, SLOW: 4.0}), *made.lost(DEAD)])
    figure, text = drawn(peers, found)
    assert figure.table["label"].tolist() == ["kvbench", "fast", "slow", "dead"]
    assert figure.table["share"].iloc[:3].tolist() == pytest.approx([0.8, 0.4, 0.2], rel=0.01)
    said = words(text)
    assert {"kvbench (ours), flash", "80%", "40%", "20%", "a read of the same rows"} <= set(said)
    assert "2x as fast (2 to 2)" in said and "4x as fast (4 to 4)" in said
    assert "no rate: no sign of life for 60 s: it hangs" in said
    assert not any("nothing" in each for each in said)
    assert not strange_colours(text)
    assert tagged(text) == set(figure.table["row"].iloc[:3])


def test_an_engine_that_is_nearer_stands_above_ours():
    figure, text = drawn(peers, found_in(beside({SLOW: 2.0, FAST: 0.8})))
    assert figure.table["label"].tolist() == ["fast", "kvbench", "slow"]
    assert "0.8x as fast (0.8 to 0.8)" in words(text)


def test_few_launches_decide_nothing():
    _, text = drawn(peers, found_in(beside({FAST: 2.0}, 2)))
    said = words(text)
    assert any(each.endswith("2 launches decide nothing") for each in said)
    assert "2x as fast" in said


def test_layouts_are_named_where_an_engine_has_several():
    two = replace(SLOW, layout="position")
    labels = shown.peers(found_in(beside({FAST: 2.0, SLOW: 3.0, two: 4.0})))["label"]
    assert labels.tolist() == ["kvbench", "fast", "slow, head", "slow, position"]


@pytest.mark.parametrize(
    ("page", "dtype", "threads"),
    [(2, "f16", 2), (1, "f16", 1), (8, "f16", 2)],
)
def test_the_cell_of_the_page_is_shown_first(page, dtype, threads):
    """With 16 bits; or one that is like it."""
    one = {"cpus": (0,)}
    records = [
        *beside({FAST: 2.0, SLOW: 3.0}, 1, dtype="f32"),
        *beside({FAST: 2.0}, 1, dtype="bf16"),
        *beside({FAST: 2.0}, 1, **one),
        *beside({FAST: 2.0}, 1),
    ]
    rows = shown.peers(found_in(records))
    first = rows[rows["cell"] == shown.shown_first(rows, Workload("", 0, 1024, 1, page, ()))]
    assert set(first["dtype"]) == {dtype}
    assert set(first["threads"]) == {threads}


def test_all_cells_are_folded_below_it():
    found = found_in(
        [*beside({FAST: 2.0}), *beside({FAST: 3.0, SLOW: 4.0}, dtype="bf16"), *made.lost(DEAD)]
    )
    (figure,) = models(found)
    _, text = drawn(lambda *_: figure, found)
    assert {"f16", "bf16", "2x", "3x", "4x", "no rate", "kvbench"} <= set(words(text))
    assert not strange_colours(text) and tagged(text) == set(
        figure.table.loc[figure.table["share"].notna(), "row"]
    )
    below = {"name": figure.name, "below": figure.below, "folded": []}
    (above,) = folded([{"name": "peers", "below": "", "folded": []}, below])
    assert above["folded"] == [below]


def test_one_cell_has_nothing_below_it():
    assert not list(models(found_in(beside({FAST: 2.0}))))
