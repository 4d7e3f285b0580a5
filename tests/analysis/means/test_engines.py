"""The table of engines: the geometric mean over shapes, formed in each launch and then judged."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.means.engines import engines, of_formats
from kvbench.analysis.means.findings import findings
from tests.analysis.means.test_peers import launch
from tests.made_run import DECODE, MACHINE, failed

ONE, TWO = ({"shape": replace(DECODE.shape, q_heads=heads)} for heads in (8, 16))
RIGHT, LEFT = (replace(DECODE, engine=name) for name in ("right", "left"))
BITS = {"f16": 16, "bf16": 16, "i8": 8, "e4m3": 8}


def table(records):
    records = list(records)
    return engines(findings("mine", records, MACHINE).peers, records)


def visits(times, **facts):
    """A launch for each of `times`: how much longer the engine takes in it."""
    ours, peer = replace(DECODE, **facts), replace(RIGHT, **facts)
    for number, longer in enumerate(times):
        yield from launch(number, {peer: longer}, ours)


def estimate(ratios):
    """Hodges' and Lehmann's, of logarithms."""
    logs = np.log(ratios)
    pairs = [(one + other) / 2 for place, one in enumerate(logs) for other in logs[place:]]
    return math.exp(np.median(pairs))


FAST = [2.0, 2.1, 1.9, 2.2, 2.05, 1.95]
SLOW = [3.0, 3.5, 2.5, 3.1, 2.9, 3.3]


def test_a_cell_is_the_mean_of_shapes_in_each_launch():
    """Of six launches the interval is the range, here of the launches' geometric means."""
    found = table([*visits(FAST, **ONE), *visits(SLOW, **TWO)])
    means = [math.sqrt(one * other) for one, other in zip(FAST, SLOW, strict=True)]
    ((row,),) = [found.rows]
    (own,) = row.means
    assert (row.engine, row.layout) == ("right", "head") and own.launches == 6
    assert [own.times, own.low, own.high] == pytest.approx(
        [estimate(means), min(means), max(means)]
    )
    assert (own.shapes, own.lacking) == (2, 0) and found.shapes == (2,)
    assert not found.open and not found.lacking and not found.empty


def test_a_launch_counts_if_it_has_every_shape():
    found = table([*visits(FAST, **ONE), *visits(SLOW[:5], **TWO)])
    (own,) = found.rows[0].means
    assert own.launches == 5 and own.low is None and found.open
    means = [math.sqrt(one * other) for one, other in zip(FAST[:5], SLOW, strict=False)]
    assert own.times == pytest.approx(estimate(means))


def test_a_shape_without_a_number_is_said():
    lost = [failed(number, replace(RIGHT, **TWO), "it has crashed") for number in range(6)]
    ours = [each for each in visits(SLOW, **TWO) if each.point.engine != "right"]
    found = table([*visits(FAST, **ONE), *ours, *lost])
    (own,) = found.rows[0].means
    assert (own.shapes, own.lacking) == (1, 1) and found.lacking
    assert own.times == pytest.approx(estimate(FAST))


def test_an_engine_that_never_gave_a_number():
    lost = [failed(number, LEFT, "it has crashed") for number in range(6)]
    found = table([*visits(FAST), *lost])
    assert [row.engine for row in found.rows] == ["right", "left"]
    (own,) = found.rows[1].means
    assert own.times is None and (own.shapes, own.lacking) == (0, 1)


def test_formats_contexts_and_queries_are_columns_of_their_own():
    longer = replace(DECODE.shape, context=2048, capacity=2048)
    several = replace(DECODE.shape, q_len=4)
    found = table(
        [*visits(FAST), *visits(SLOW, shape=longer), *visits(SLOW, shape=several)]
        + list(visits(SLOW, dtype="bf16"))
    )
    assert {(each.dtype, each.context, each.q_len) for each in found.formats} == {
        ("f16", 1024, 1),
        ("f16", 2048, 1),
        ("f16", 1024, 4),
        ("bf16", 1024, 1),
    }
    assert found.contexts and found.queries and all(found.rows[0].means)


def test_another_format_of_as_many_bits_stands_in():
    """Only where its own is not measured, and no column asks for the other."""
    eight = replace(LEFT, dtype="e4m3")
    own = replace(DECODE, dtype="e4m3")
    alike = [each for n, longer in enumerate(SLOW) for each in launch(n, {eight: longer}, own)]
    found = table([*visits(FAST), *visits(FAST, dtype="i8"), *alike])
    short = of_formats(found, ("f16", "i8"), BITS)
    rows = {row.engine: row.means for row in short.rows}
    assert [each.dtype for each in short.formats] == ["f16", "i8"]
    assert rows["right"][1].dtype == "" and rows["left"][0] is None
    assert rows["left"][1].dtype == "e4m3" and short.others and short.empty
    assert rows["left"][1].times == pytest.approx(estimate(SLOW))
    whole = of_formats(found, ("i8", "e4m3"), BITS)
    assert {row.engine: row.means for row in whole.rows}["left"][0] is None
    assert [row.engine for row in of_formats(found, ("f16",), BITS).rows] == ["right"]


def test_chosen_columns_decide_the_order_and_who_is_left_out():
    """In f16 left is nearer; in bf16, which only right has, right is nearer still."""
    both = [
        each
        for n, (one, other) in enumerate(zip(SLOW, FAST, strict=True))
        for each in launch(n, {RIGHT: one, LEFT: other}, DECODE)
    ]
    near = [1.1, 1.2, 1.05, 1.15, 1.12, 1.08]
    found = table([*both, *visits(near, dtype="bf16")])
    assert [row.engine for row in found.rows] == ["right", "left"]
    short = of_formats(found, ("f16",), {})
    assert [row.engine for row in short.rows] == ["left", "right"] and short.left == ()
    alone = of_formats(found, ("bf16",), {})
    assert [row.engine for row in alone.rows] == ["right"] and alone.left == ("left",)
