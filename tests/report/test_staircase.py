"""Bandwidth against footprint: what is drawn, where, and what it is drawn beside."""

import re
from dataclasses import replace

import pytest

from kvbench.report.figures.staircase import staircase
from tests.made_run import DECODE, KIB, MIB, READ, probe, visit
from tests.report.drawn import drawn, found_in, parts, tagged
from tests.report.planted import answered

HOT = replace(DECODE, residency="hot")
RATES = {"point": [30.0], "twin": [40.0], "twin_ahead": [20.0], "core": [80.0]}


def at(context, **changes):
    return replace(HOT, shape=replace(HOT.shape, context=context, capacity=context), **changes)


def records():
    """Slices of 8 and 64 MiB again and again, one of 16 MiB in turn with 15 others; reads of 8 and
    256 MiB.
    """
    return [
        visit(0, RATES, at(1024), walked=8 * MIB, layers=1),
        visit(0, RATES, at(8192), walked=64 * MIB, layers=1),
        visit(0, RATES, DECODE),
        probe(0, 50.0, replace(READ, bytes=8 * MIB), ahead=60.0),
        probe(0, 20.0),
        probe(0, 99.0, replace(READ, cpus=(0,))),
        probe(0, 99.0, replace(READ, pages="base")),
    ]


def table(records_):
    return staircase_of(records_)[0].table


def staircase_of(records_, plain=19.0):
    return drawn(staircase, answered(found_in(records_), [], [(9, plain)]))


def test_points_stand_at_their_footprint_beside_their_twin_and_ceilings():
    """These are of the same threads and pages, in their better form."""
    figure, text = staircase_of(records())
    points = figure.table.query("kind == 'point'").set_index("footprint")
    assert points["gbps"].to_dict() == pytest.approx(
        dict.fromkeys((8 * MIB, 64 * MIB, 256 * MIB), 30.0)
    )
    assert points["twin_gbps"].tolist() == pytest.approx([40.0] * 3)
    assert points.loc[8 * MIB, ["regime", "residency", "context"]].tolist() == ["L3", "hot", 1024]
    assert points.loc[256 * MIB, ["regime", "residency"]].tolist() == ["DRAM", "rotate"]
    ceilings = figure.table.query("kind == 'read'")
    assert dict(zip(ceilings["footprint"], ceilings["gbps"], strict=True)) == pytest.approx(
        {8 * MIB: 60, 256 * MIB: 20}
    )
    assert ceilings["regime"].tolist() == ["L3", "DRAM"] and "2 threads" in figure.about
    assert parts(text) == dict.fromkeys(points["row"], 2)  # mark, bar
    memory = figure.table.query("kind == 'memory'")
    assert memory["gbps"].tolist() == [19.0]
    words = set(re.findall(r"<text[^>]*>([^<]*)</text>", text))
    assert {
        "GB/s",
        "f16",
        "several layers in turn",
        "plain read of memory",
        "L3",
        "memory",
    } <= words


def test_no_fastest_read_of_memory_is_slower_than_plain_ones():
    reads = staircase_of(records(), plain=21.0)[0].table.query("kind == 'read'")
    assert reads["regime"].tolist() == ["L3"]


def test_regimes_cover_the_axis_and_change_where_the_table_of_regimes_says():
    """Two threads: L2 up to 0.8 MiB each, L3 from 1.5 MiB each to 0.7 x 32 MiB, memory from 4 x 32
    MiB on.
    """
    small = visit(0, RATES, at(64), walked=256 * KIB, layers=1)
    areas = table([small, *records()]).query("kind == 'level'")
    assert areas["short"].tolist() == ["L2", "mixed", "L3", "mixed", "DRAM"]
    assert (
        areas["footprint"].iloc[1:].to_numpy() == areas["footprint_end"].iloc[:-1].to_numpy()
    ).all()
    expected = [1.6 * MIB, 3 * MIB, 0.7 * 32 * MIB, 128 * MIB]
    assert areas["footprint"].iloc[1:].tolist() == pytest.approx(expected, rel=0.04)


def test_of_points_of_one_size_the_fastest_is_shown_by_most_threads():
    slower = visit(0, RATES | {"point": [20.0]}, replace(DECODE, layout="paged"))
    alone = visit(0, RATES, at(1024, cpus=(0,)), walked=8 * MIB, layers=1)
    points = table([*records(), slower, alone]).query("kind == 'point'")
    assert len(points) == 3 and set(points["layout"]) == {"head"} and set(points["threads"]) == {2}


def test_machines_without_known_caches():
    figure, text = drawn(
        staircase,
        replace(found_in(records()), machine=replace(found_in(records()).machine, caches=())),
    )
    assert set(figure.table.query("kind == 'level'")["short"]) == {"unknown"} and tagged(text)
