"""What storing costs, from times that are worked out by hand."""

from dataclasses import replace

import pytest

from kvbench.analysis.shown.stores import MOST
from kvbench.report.figures.stores import stores
from tests.made_run import MIB, STORE, visit
from tests.report.drawn import APPEND, STORES, drawn, found_in, parts, strange_colours, tagged


def test_a_token_and_a_prompt():
    """16 MiB a pass at 8 GB/s: for one token of each of two sequences; and for 1024 of one."""
    pair = replace(APPEND, shape=replace(APPEND.shape, batch=2))
    figure, text = drawn(stores, found_in([visit(0, STORES, pair), visit(0, STORES, STORE)]))
    append, bulk = figure.table.to_dict("records")
    assert (append["op"], append["token_ns"]) == ("append", pytest.approx(16 * MIB / 8 / 2))
    assert (bulk["op"], bulk["token_ns"]) == ("bulk", pytest.approx(16 * MIB / 8 / 1024))
    assert (bulk["gbps"], bulk["copy_gbps"], bulk["witness"]) == (
        pytest.approx(8.0),
        pytest.approx(16.0),
        "copy_nt",
    )
    assert parts(text) == {append["row"]: 3, bulk["row"]: 3}  # bar; interval, on paper
    assert tagged(text) == set(figure.table["row"]) and not strange_colours(text)


def test_moves_are_beside_the_stores_that_they_are_like():
    """16 MiB a pass at 8 GB/s: logits of a token as one that is appended, and others as prompts."""
    plain = replace(STORE, layout="-", dtype="-", variant="-")
    moves = [
        replace(STORE, op="repack", variant="-"),
        replace(plain, op="transpose"),
        replace(plain, op="logits", shape=replace(STORE.shape, vocabulary=100)),
    ]
    figure, text = drawn(stores, found_in([visit(0, STORES, point) for point in moves]))
    rows = figure.table.set_index("op")
    assert rows.loc["logits", "token_ns"] == pytest.approx(16 * MIB / 8)
    for op in ("repack", "transpose"):
        assert rows.loc[op, "token_ns"] == pytest.approx(16 * MIB / 8 / 1024)
        assert rows.loc[op, "copy_gbps"] == pytest.approx(16.0)
    for title in ("grows in place", "head-major order", "Logits of one token"):
        assert title in text
    assert tagged(text) == set(figure.table["row"]) and not strange_colours(text)


def test_the_usual_are_shown_where_there_are_too_many():
    many = [replace(STORE, layout=f"layout{i}") for i in range(MOST)]
    many += [replace(STORE, layout="one", cpus=(0,)), replace(STORE, layout="other", pages="base")]
    more = replace(APPEND, dtype="f32")
    figure, _ = drawn(stores, found_in([visit(0, STORES, point) for point in [*many, more]]))
    bulk = figure.table[figure.table["op"] == "bulk"]
    assert set(bulk["layout"]) == {f"layout{i}" for i in range(MOST)}
    assert f"{MOST} of {MOST + 2} points of bulk are shown" in figure.about
