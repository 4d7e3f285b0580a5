"""Rooflines: roofs from the run's own ceilings, points at their intensity, and what is above a roof."""

import re
from dataclasses import replace

import pytest

from kvbench.report.figures.roofline import rooflines
from tests.made_run import DECODE, MIB, READ, probe, visit
from tests.report.drawn import drawn, found_in, parts

FMA = replace(READ, op="flops", bytes=0, pages="-")
RATES = {"point": [10.0], "twin": [20.0], "core": [50.0]}
FLOPS = 4.0 * 16 * MIB  # of a pass of 16 MiB: 4 FLOP per byte


def roofs():
    """20 GB/s from DRAM, 60 from L3, 200 GFLOP/s; and those of one thread, which are none of theirs."""
    return [
        probe(0, 20.0),
        probe(0, 60.0, replace(READ, bytes=8 * MIB)),
        probe(0, 200.0, FMA),
        probe(0, 999.0, replace(READ, cpus=(0,))),
    ]


def first(records):
    return drawn(lambda found, look: rooflines(found, look)[0], found_in(records))


def test_a_point_is_at_its_intensity_and_rate():
    """10 GB/s of 4 FLOP per byte: 40 GFLOP/s. The made-up pass issues 7 bytes."""
    figure, text = first([*roofs(), visit(0, RATES, flops=FLOPS)])
    (point,) = figure.table.query("kind == 'point'").to_dict("records")
    assert (point["ai"], point["gflops"], point["gflops_low"]) == pytest.approx((4.0, 40.0, 40.0))
    assert point["ai_issued"] == pytest.approx(FLOPS / 7)
    assert parts(text) == {point["row"]: 2 * 2}  # mark, bar; above and side by side


def test_roofs_are_the_run_s_own_on_the_same_threads():
    figure, text = first([*roofs(), visit(0, RATES, flops=FLOPS)])
    reads = figure.table.query("kind == 'read ceiling'").set_index("label")["gbps"]
    assert reads.to_dict() == pytest.approx({"DRAM": 20.0, "L3": 60.0})
    assert figure.table.query("kind == 'FMA peak'")["gflops"].tolist() == pytest.approx([200.0])
    words = set(re.findall(r"<text[^>]*>([^<]*)</text>", text))
    assert {"DRAM read 20 GB/s", "L3 read 60 GB/s", "GFLOP/s"} <= words
    assert any("FMA scalar 200 GFLOP/s" in word for word in words)


def test_the_core_roof_is_the_highest_of_its_dtype_and_group():
    """50 and 70 GB/s of 4 FLOP per byte."""
    faster = visit(0, RATES | {"core": [70.0]}, replace(DECODE, layout="paged"), flops=FLOPS)
    other = visit(0, RATES, replace(DECODE, dtype="i8"), flops=FLOPS)
    cores = (
        first([visit(0, RATES, flops=FLOPS), faster, other])[0].table.query("kind == 'core roof'").set_index("dtype")
    )
    assert cores["gflops"].to_dict() == pytest.approx({"f16": 280.0, "i8": 200.0})


def test_each_cpu_set_has_its_own_and_the_largest_comes_first():
    alone = replace(DECODE, cpus=(0,))
    figures = rooflines_of([*roofs(), visit(0, RATES, flops=FLOPS), visit(0, RATES, alone, flops=FLOPS)])
    assert [figure.name for figure in figures] == ["roofline", "roofline-cpu0"]
    assert figures[1].table.query("kind == 'read ceiling'")["gbps"].tolist() == pytest.approx([999.0])
    assert [len(figure.table.query("kind == 'point'")) for figure in figures] == [1, 1]


def rooflines_of(records):
    from kvbench.report.figures.look import Look

    found = found_in(records)
    return rooflines(found, Look(found.points))


def test_a_point_above_a_roof_has_a_cross_and_its_name_in_the_legend():
    above = [visit(n, {"point": [30.0], "twin": [20.0], "core": [50.0]}, flops=FLOPS) for n in range(6)]
    below = [visit(n, RATES, flops=FLOPS) for n in range(6)]
    far = [probe(n, 20.0) for n in range(6)]
    figure, text = first([*far, *above])
    assert figure.table.query("kind == 'point'")["above"].tolist() != [""] and "above a roof" in text
    figure, text = first([*far, *below])
    assert figure.table.query("kind == 'point'")["above"].tolist() == [""] and "above a roof" not in text
