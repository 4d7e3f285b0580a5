"""What storing costs, from times that are worked out by hand."""

from dataclasses import replace

import pytest

from kvbench.report.figures.stores import MOST, stores
from tests.made_run import MIB, STORE, visit
from tests.report.drawn import APPEND, STORES, drawn, found_in, parts, strange_colours, tagged


def test_a_token_and_a_prompt():
    """16 MiB a pass at 8 GB/s: for one token of each of two sequences; and for 1024 of one."""
    pair = replace(APPEND, shape=replace(APPEND.shape, batch=2))
    figure, text = drawn(stores, found_in([visit(0, STORES, pair), visit(0, STORES, STORE)]))
    append, bulk = figure.table.to_dict("records")
    assert (append["op"], append["token_ns"]) == ("append", pytest.approx(16 * MIB / 8 / 2))
    assert (bulk["op"], bulk["token_ns"]) == ("bulk", pytest.approx(16 * MIB / 8 / 1024))
    assert (bulk["gbps"], bulk["copy_gbps"], bulk["copy_nt_gbps"]) == pytest.approx((8.0, 10.0, 16.0))
    assert parts(text) == {append["row"]: 3, bulk["row"]: 3}  # bar; interval, on paper
    assert tagged(text) == set(figure.table["row"]) and not strange_colours(text)


def test_copies_are_medians_of_the_launches_medians():
    rates = [[10.0, 20.0, 40.0], [5.0, 5.0, 5.0], [8.0, 8.0, 1.0]]
    records = [visit(n, STORES | {"copy": each, "point": [8.0] * 3}, STORE) for n, each in enumerate(rates)]
    (row,) = drawn(stores, found_in(records))[0].table.to_dict("records")
    assert row["copy_gbps"] == pytest.approx(8.0)


def test_the_usual_are_shown_where_there_are_too_many():
    many = [replace(STORE, layout=f"layout{i}") for i in range(MOST)]
    many += [replace(STORE, layout="one", cpus=(0,)), replace(STORE, layout="other", pages="base")]
    more = replace(APPEND, dtype="f32")
    figure, _ = drawn(stores, found_in([visit(0, STORES, point) for point in [*many, more]]))
    bulk = figure.table[figure.table["op"] == "bulk"]
    assert set(bulk["layout"]) == {f"layout{i}" for i in range(MOST)}
    assert f"{MOST} of {MOST + 2} points of bulk are shown" in figure.about
