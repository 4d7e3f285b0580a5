"""What decode gains from L3, from rates that are written here."""

from dataclasses import replace

import pytest

from kvbench.report.figures.l3 import l3
from tests.made_run import DECODE, MIB, visit
from tests.report.drawn import drawn, found_in, strange_colours, tagged

RATES = {"twin": 60.0, "core": 80.0, "memory": 20.0, "rotated": 12.0, "slice": 60.0}


def of(decode, layout="head", dtype="f16"):
    """Seven launches of a hot decode of 8 MiB of an L3 of 32 MiB: GB/s of its own; from memory
    12.
    """
    shape = replace(DECODE.shape, context=16384, capacity=16384)
    point = replace(DECODE, residency="hot", layout=layout, dtype=dtype, shape=shape)
    rates = {name: [rate] for name, rate in (RATES | {"point": decode}).items()}
    return [visit(n, rates, point, walked=8 * MIB, layers=1) for n in range(7)]


def test_the_middle_layout_stands_for_its_dtype_and_others_are_beside_it():
    layouts = {"head": 24.0, "paged": 18.0, "position": 36.0}
    records = [each for layout, rate in layouts.items() for each in of(rate, layout)]
    figure, text = drawn(l3, found_in([*records, *of(48.0, dtype="i8")]))
    rows = figure.table.set_index(["dtype", "layout"])
    gains = rows["gain"].to_dict()
    assert gains == pytest.approx(
        {
            ("f16", "head"): 2.0,
            ("f16", "paged"): 1.5,
            ("f16", "position"): 3.0,
            ("i8", "head"): 4.0,
        }
    )
    assert rows.index[rows["middle"]].tolist() == [("f16", "head"), ("i8", "head")]
    assert tagged(text) == set(figure.table["row"]) and not strange_colours(text)
    assert "head 2.00x (2.00 to 2.00)" in text and "paged 1.50, position 3.00" in text


def test_without_such_points_it_says_what_to_run():
    figure, text = drawn(l3, found_in([]))
    assert "kvbench sweep l3fit" in figure.missing and not text
