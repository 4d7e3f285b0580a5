"""Rooflines: roofs from the run's own ceilings, points at their intensity, and what is above a
roof.
"""

import re
from dataclasses import replace

import pytest

from kvbench.report.figures.roofline import roofline, spread
from tests.made_run import DECODE, MIB, READ, probe, visit
from tests.report.drawn import drawn, found_in, parts

FMA = replace(READ, op="flops", bytes=0, pages="-")
RATES = {"point": [10.0], "twin": [20.0], "core": [50.0]}
FLOPS = 4.0 * 16 * MIB  # of a pass of 16 MiB: 4 FLOP per byte


def roofs():
    """20 GB/s from DRAM, 60 from L3, 200 GFLOP/s; and those of one thread, which are none of
    theirs.
    """
    return [
        probe(0, 20.0),
        probe(0, 60.0, replace(READ, bytes=8 * MIB)),
        probe(0, 200.0, FMA),
        probe(0, 999.0, replace(READ, cpus=(0,))),
    ]


def first(records):
    return drawn(lambda found, look: roofline(found, look, "2026-01-02"), found_in(records))


def test_points_and_roofs_are_of_the_cpu_set_with_most_threads():
    """10 GB/s of 4 FLOP per byte: 40 GFLOP/s. The made-up pass issues 7 bytes."""
    alone = visit(0, RATES, replace(DECODE, cpus=(0,)), flops=FLOPS)
    figure, text = first([*roofs(), visit(0, RATES, flops=FLOPS), alone])
    (point,) = figure.table.query("kind == 'point'").to_dict("records")
    assert (point["ai"], point["gflops"], point["gflops_low"]) == pytest.approx((4.0, 40.0, 40.0))
    assert point["ai_issued"] == pytest.approx(FLOPS / 7) and point["above"] == ""
    assert parts(text) == {point["row"]: 2}  # mark, bar
    reads = figure.table.query("kind == 'read ceiling'").set_index("short")["gbps"]
    assert reads.to_dict() == pytest.approx({"DRAM": 20.0, "L3": 60.0})
    assert figure.table.query("kind == 'FMA peak'")["gflops"].tolist() == pytest.approx([200.0])
    words = set(re.findall(r"<text[^>]*>([^<]*)</text>", text))
    assert {"Memory read 20 GB/s", "L3 read 60 GB/s", "GFLOP/s"} <= words
    assert "Multiply-add peak (scalar) 200 GFLOP/s" in words and "above a limit" not in words
    assert any(
        "a machine without a name, 2 threads" in word and "2026-01-02" in word for word in words
    )


def test_a_point_above_a_roof_has_a_cross_and_its_name_in_the_legend():
    above = [
        visit(n, {"point": [30.0], "twin": [20.0], "core": [50.0]}, flops=FLOPS) for n in range(6)
    ]
    figure, text = first([*(probe(n, 20.0) for n in range(6)), *above])
    assert (
        figure.table.query("kind == 'point'")["above"].tolist() != [""] and "above a limit" in text
    )


def test_core_speed_is_the_highest_of_its_dtype_and_group():
    """50 and 70 GB/s of 4 FLOP per byte."""
    faster = visit(0, RATES | {"core": [70.0]}, replace(DECODE, layout="paged"), flops=FLOPS)
    other = visit(0, RATES, replace(DECODE, dtype="i8"), flops=FLOPS)
    cores = (
        first([visit(0, RATES, flops=FLOPS), faster, other])[0]
        .table.query("kind == 'core speed'")
        .set_index("dtype")
    )
    assert cores["gflops"].to_dict() == pytest.approx({"f16": 280.0, "i8": 200.0})


def test_the_fastest_of_each_dtype_is_labelled_and_no_label_covers_another():
    slower = visit(0, RATES | {"point": [9.0]}, replace(DECODE, layout="paged"), flops=FLOPS)
    others = [
        visit(0, RATES, replace(DECODE, dtype=dtype), flops=FLOPS) for dtype in ("i8", "e4m3")
    ]
    figure, text = first([*roofs(), visit(0, RATES, flops=FLOPS), slower, *others])
    assert sorted(figure.table.query("kind == 'point'")["short"].str.split().str[1]) == [
        "e4m3",
        "f16",
        "i8",
    ]
    labels = re.findall(r"<text[^>]*>((?:f16|i8|e4m3): 10 GB/s)</text>", text)
    assert sorted(labels) == ["e4m3: 10 GB/s", "f16: 10 GB/s", "i8: 10 GB/s"]


def test_labels_keep_apart_and_near_their_marks():
    assert spread([0.3, 0.5, 0.9], 0.1) == pytest.approx([0.3, 0.5, 0.9])
    assert spread([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.4, 0.5, 0.6])
    assert spread([0.95, 0.96], 0.2) == pytest.approx([0.8, 1.0])
