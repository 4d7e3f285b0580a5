"""Layouts beside the usual one: ratios, their intervals and what they say."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from kvbench.report.figures.layouts import layouts
from tests.made_run import DECODE, MIB, STORE, visit
from tests.report.drawn import BARE, bare, drawn, found_in, parts, strange_colours, tagged, unknown

OTHER = replace(DECODE, shape=replace(DECODE.shape, context=4096, capacity=4096))
DRIFT = [0.5, 1.0, 1.1, 1.2, 1.3, 2.0, 3.0]  # of the machine, over the launches: no part of a ratio
NOISE = [0.8, 0.9, 1.0, 1.1, 1.2, 1.0, 1.3]


def run(rates, noise=(1.0,) * 7):
    """Launches of points with these rates; the last launches of `noise` slow or speed all but the layout "head"."""
    return [
        visit(n, {"point": [rate * drift * (noise[n] if point.layout != "head" else 1.0)]}, point)
        for n, drift in enumerate(DRIFT)
        for point, rate in rates.items()
    ]


def of(point, layout):
    return replace(point, layout=layout)


def test_ratios_against_the_usual_layout():
    """paged comes after head and before position by name: bases differ from pair to pair, the reference does not."""
    rates = {DECODE: 8.0, of(DECODE, "position"): 10.0, of(DECODE, "paged"): 4.0, OTHER: 5.0}
    figure, text = drawn(layouts, found_in(run(rates)))
    rows = figure.table.set_index("layout")
    assert set(rows["reference"]) == {"head"} and set(rows["reference_name"]) == {DECODE.name}
    assert rows.loc["position", ["ratio", "ratio_low", "ratio_high"]].tolist() == pytest.approx([1.25] * 3)
    assert rows.loc["paged", ["ratio", "ratio_low", "ratio_high"]].tolist() == pytest.approx([0.5] * 3)
    assert (rows.loc["position", "word"], rows.loc["paged", "word"]) == ("faster", "slower")
    assert parts(text) == dict.fromkeys(rows["row"], 2) and not strange_colours(text)
    assert "position: of 1 shape, 1 faster" in figure.about and "paged: of 1 shape, 1 slower" in figure.about


def test_a_pair_that_is_turned_keeps_its_meaning():
    """zigzag is the usual one, and by its name the second of each pair: ratios are turned, their ends too."""
    usual, more = of(DECODE, "zigzag"), of(OTHER, "zigzag")
    figure, _ = drawn(layouts, found_in(run({usual: 10.0, DECODE: 8.0, more: 5.0}, NOISE)))
    (row,) = figure.table.to_dict("records")
    logs = np.log([8.0 / (10.0 * each) for each in NOISE])
    means = np.sort([(a + b) / 2 for place, a in enumerate(logs) for b in logs[place:]])  # three left out at each end
    assert (row["layout"], row["reference"], row["name"]) == ("head", "zigzag", DECODE.name)
    expected = np.exp([np.median(means), means[2], means[-3]])
    assert [row["ratio"], row["ratio_low"], row["ratio_high"]] == pytest.approx(expected)
    assert row["word"] == "slower"


def test_within_a_regime_by_ratio():
    shapes = [replace(DECODE, dtype=dtype) for dtype in ("f16", "bf16", "f32")]
    rates = dict.fromkeys(shapes, 8.0)
    rates |= {of(shape, "paged"): rate for shape, rate in zip(shapes, (9.0, 7.0, 8.0), strict=True)}
    rows = drawn(layouts, found_in(run(rates)))[0].table
    assert list(rows["dtype"]) == ["bf16", "f32", "f16"] and rows["place"].is_monotonic_increasing


def test_shapes_whose_layouts_lie_in_different_regimes_share_a_place():
    """Names of regimes stay apart, even of many beside one that has most shapes."""
    far = [replace(DECODE, shape=replace(DECODE.shape, context=1024 + n, capacity=1024 + n)) for n in range(60)]
    near = [(MIB, MIB), (8 * MIB, 8 * MIB), (64 * MIB, 64 * MIB), (MIB, 8 * MIB), (8 * MIB, 64 * MIB)]
    slices = dict(zip(far, near, strict=False))
    records = [
        visit(0, {"point": [8.0]}, of(point, layout), walked=slices.get(point, (256 * MIB,) * 2)[other], layers=1)
        for point in far
        for other, layout in ((0, "head"), (1, "paged"), (1, "position"))
    ]
    figure, _ = drawn(layouts, found_in(records))
    assert {"L2 and L3", "L3 and mixed"} < set(figure.table["regime"])
    assert "Last, as two: shapes whose layouts lie in different regimes." in figure.about
    canvas = figure.canvas()
    canvas.draw_without_rendering()
    for axes in canvas.axes:
        words = axes.get_xticklabels()
        assert [word.get_text() for word in words] == ["L2", "L3", "mixed", "DRAM", "two"]
        boxes = [word.get_window_extent() for word in words]
        assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))


def test_one_launch_is_too_few_to_tell():
    records = [visit(0, {"point": [rate]}, point) for point, rate in {DECODE: 8.0, of(DECODE, "paged"): 4.0}.items()]
    figure, _ = drawn(layouts, found_in(records))
    assert set(figure.table["word"]) == {"unknown"} and "1 with too few launches to tell" in figure.about


def test_many_marks_are_drawn_without_their_points():
    found = found_in([visit(0, {"point": [8.0]}, of(STORE, layout)) for layout in ("head", "paged")])
    many = replace(found, contrasts=pd.concat([found.contrasts] * 401, ignore_index=True))
    figure, text = drawn(layouts, many)
    assert len(figure.table) == 401 and not tagged(text) and len(text) < 200_000


@pytest.mark.parametrize("name", BARE)
def test_little_to_show(name):
    drawn(layouts, bare(name))
    drawn(layouts, unknown(bare(name)))
