"""Whether L3 is faster than memory, from rates that are written here."""

from dataclasses import replace

import pytest

from kvbench.report.figures.l3 import l3
from tests.made_run import DECODE, MIB, visit
from tests.report.drawn import drawn, found_in, strange_colours

RATES = {"twin": 60.0, "core": 80.0, "memory": 20.0, "rotated": 12.0}


def of(mib, slices, decode, dtype="f16"):
    """Seven launches of a hot decode of so much of an L3 of 32 MiB: GB/s of its reads and its
    own.
    """
    shape = replace(DECODE.shape, context=2048 * mib, capacity=2048 * mib)
    point = replace(DECODE, residency="hot", dtype=dtype, shape=shape)
    rates = {name: [rate] for name, rate in (RATES | {"slice": slices, "point": decode}).items()}
    return [visit(n, rates, point, walked=mib * MIB, layers=1) for n in range(7)]


def test_the_machine_and_the_kernel_against_the_share():
    figure, text = drawn(l3, found_in([*of(8, 60.0, 36.0), *of(16, 40.0, 24.0)]))
    rows = figure.table.set_index(["question", "share"])["ratio"]
    assert rows["plain reads"].to_dict() == pytest.approx({0.25: 3.0, 0.5: 2.0})
    assert rows["decode"].to_dict() == pytest.approx({0.25: 3.0, 0.5: 2.0})
    assert text and not strange_colours(text)


def test_the_machine_shows_the_middle_of_points_alike():
    records = [
        each
        for dtype, reads in (("f16", 50.0), ("f32", 60.0), ("i8", 90.0))
        for each in of(8, reads, 24.0, dtype)
    ]
    table = drawn(l3, found_in(records))[0].table
    assert table[table["question"] == "plain reads"]["ratio"].tolist() == pytest.approx([3.0])
    assert len(table[table["question"] == "decode"]) == 3


def test_without_such_points_it_says_what_to_run():
    figure, text = drawn(l3, found_in([]))
    assert "kvbench sweep l3fit" in figure.missing and not text
