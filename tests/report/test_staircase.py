"""Bandwidth against footprint: what is drawn, where, and what it is drawn beside."""

import re
from dataclasses import replace

import pytest

from kvbench.report.figures.staircase import staircase
from tests.made_run import DECODE, KIB, MIB, READ, probe, visit
from tests.report.drawn import drawn, found_in, parts, tagged

HOT = replace(DECODE, residency="hot")
RATES = {"point": [30.0], "twin": [40.0], "twin_ahead": [20.0], "core": [80.0]}


def at(context, **changes):
    return replace(HOT, shape=replace(HOT.shape, context=context, capacity=context), **changes)


def records():
    """Slices of 8 and 64 MiB again and again, one of 16 MiB in turn with 15 others; reads of 8 and 256 MiB."""
    return [
        visit(0, RATES, at(1024), walked=8 * MIB, layers=1),
        visit(0, RATES, at(8192), walked=64 * MIB, layers=1),
        visit(0, RATES, DECODE),
        probe(0, 50.0, replace(READ, bytes=8 * MIB)),
        probe(0, 60.0, replace(READ, bytes=8 * MIB, distance=512)),
        probe(0, 20.0),
        probe(0, 99.0, replace(READ, cpus=(0,))),
        probe(0, 99.0, replace(READ, pages="base")),
    ]


def table(records_):
    return staircase_of(records_)[0].table


def staircase_of(records_):
    return drawn(staircase, found_in(records_))


def test_points_stand_at_their_footprint_beside_their_twin():
    points = table(records()).query("kind == 'point'").set_index("bytes")
    assert set(points.index) == {8 * MIB, 64 * MIB, 256 * MIB}
    assert points["gbps"].tolist() == pytest.approx([30.0] * 3) and points["twin_gbps"].tolist() == pytest.approx(
        [40.0] * 3
    )
    assert points.loc[8 * MIB, ["regime", "residency", "context"]].tolist() == ["L3", "hot", 1024]
    assert points.loc[256 * MIB, ["regime", "residency"]].tolist() == ["DRAM", "rotate"]


def test_ceilings_are_those_of_the_same_threads_and_pages_in_their_better_form():
    ceilings = table(records()).query("kind == 'ceiling'")
    assert dict(zip(ceilings["bytes"], ceilings["gbps"], strict=True)) == pytest.approx({8 * MIB: 60, 256 * MIB: 20})
    assert ceilings["regime"].tolist() == ["L3", "DRAM"]


def test_regimes_cover_the_axis_and_change_where_the_table_of_regimes_says():
    """Two threads: L2 up to 0.8 MiB each, L3 from 1.5 MiB each to 0.7 x 32 MiB, memory from 4 x 32 MiB on."""
    small = visit(0, RATES, at(64), walked=256 * KIB, layers=1)
    areas = table([small, *records()]).query("kind == 'regime'")
    assert areas["label"].tolist() == ["L2", "mixed", "L3", "mixed", "DRAM"]
    assert (areas["bytes"].iloc[1:].to_numpy() == areas["bytes_end"].iloc[:-1].to_numpy()).all()
    expected = [1.6 * MIB, 3 * MIB, 0.7 * 32 * MIB, 128 * MIB]
    assert areas["bytes"].iloc[1:].tolist() == pytest.approx(expected, rel=0.04)


def test_capacities_are_those_of_the_caches_that_the_threads_use():
    ends = table(records()).query("kind == 'capacity'").set_index("label")["bytes"]
    assert ends.to_dict() == {"L1": 64 * KIB, "L2": 2 * MIB, "L3": 32 * MIB}


def test_every_mark_knows_its_point():
    figure, text = staircase_of(records())
    assert parts(text) == dict.fromkeys(figure.table["row"].dropna(), 2)  # mark, bar
    words = set(re.findall(r"<text[^>]*>([^<]*)</text>", text))
    title = "2 threads on CPUs 0-1; dashed: DRAM read ceiling 20 GB/s"
    assert {"GB/s", title, "twin", "read ceiling", "L3", "hot"} <= words


def test_one_panel_for_each_number_of_threads_and_no_more_than_four():
    many = [visit(0, RATES, replace(at(1024), cpus=tuple(range(count)))) for count in (1, 2, 3, 4)]
    many += [visit(0, RATES, replace(at(1024), cpus=cpus)) for cpus in ((1,), (2,))]
    panels = table(many).groupby(["threads", "cpus"], sort=False).ngroups
    assert panels == 4


def test_layouts_that_climb_no_stairs_are_left_out_and_that_is_said():
    figure, _ = staircase_of([*records(), visit(0, RATES, replace(DECODE, layout="paged"))])
    assert set(figure.table["layout"].dropna()) == {"head"}
    assert "3 of 4 points are of this kind" in figure.about


def test_machines_without_known_caches():
    figure, text = drawn(
        staircase, replace(found_in(records()), machine=replace(found_in(records()).machine, caches=()))
    )
    assert set(figure.table.query("kind == 'regime'")["label"]) == {"unknown"} and tagged(text)
