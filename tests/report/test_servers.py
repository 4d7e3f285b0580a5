"""The figure of other servers: lines with a knee, and which dtype is fastest where."""

from dataclasses import replace

import pytest

from kvbench.report.figures.servers import servers
from tests.made_run import DECODE, visit
from tests.report.drawn import drawn, found_in, strange_colours, tagged
from tests.report.planted import answered, decode

I8 = replace(DECODE, dtype="i8", variant="dot")


def test_lines_end_at_core_speed_and_the_fastest_is_named():
    """f16: 1 GB a token, 12 tokens/s a core from 12 GB/s on. i8: half of that, and 8 from 4 on: it
    is fastest up to 8 GB/s.
    """
    rows = [decode(DECODE, 12.0, 12.0, core=0.5), decode(I8, 8.0, 4.0, core=0.5)]
    rates = {"point": [10.0], "twin": [20.0]}
    found = answered(found_in([visit(0, rates), visit(0, rates, I8)]), rows, [(9, 30.0)])
    figure, text = drawn(servers, found)
    table = figure.table
    knees = table[table["knee"]].set_index("dtype")
    assert knees["bandwidth"].to_dict() == pytest.approx({"f16": 12.0, "i8": 4.0})
    assert knees["tokens_per_second"].to_dict() == pytest.approx({"f16": 12.0, "i8": 8.0})
    first = table[table["kind"] == "fastest from here on"]
    assert first["dtype"].tolist() == ["i8", "f16"]
    assert first["bandwidth"].tolist() == pytest.approx([1.0, 8.0])
    assert table[table["kind"] == "this machine"]["bandwidth"].tolist() == [15.0]
    assert tagged(text) == set(table["row"].dropna()) and not strange_colours(text)
    assert "i8 is fastest" in text and " 8 GB/s" in text and "this machine, 15" in text


def test_it_says_what_it_leaves_out_and_what_to_run():
    figure, text = drawn(servers, found_in([]))
    assert not text and "kvbench sweep quick" in figure.missing
    for word in ("model, not a measurement", "weights", "L3", "clock", "--cores N"):
        assert word in figure.about
