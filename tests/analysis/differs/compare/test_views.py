"""The views of a comparison, computed by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.differs.compare.views import (
    BESIDE,
    CEILING,
    CYCLES,
    FLOPS,
    SECONDS,
    WITNESS,
    by_launch,
    of_family,
    of_point,
    probed,
)
from tests.analysis.differs.compare.made_sides import CLOCK, COPY, FMA, measured, probes
from tests.made_run import DECODE, MIB, READ, STORE, probe, visit


def test_views_of_a_point():
    """256 MiB in 16 slices at 8 GB/s; the twin at 10; a clock of 3 GHz, 50 GFLOP/s, and a ceiling
    of 20 GB/s.
    """
    records = [
        *measured(luck=[1]),
        *probes(CLOCK, 3.0, [1]),
        *probes(FMA, 50.0, [1]),
        *probes(READ, 20.0, [1]),
    ]
    own = by_launch(record for record in records if record.point == DECODE)
    found = of_point(DECODE, 256 * MIB, own, own, probed(records, records))
    seconds = 16 * MIB / 8e9
    assert {view: both[0][0] for view, both in found.items()} == pytest.approx(
        {
            SECONDS: math.log(seconds),
            BESIDE: math.log(10 / 8),
            WITNESS: math.log(0.8 * seconds),
            CYCLES: math.log(seconds * 3),
            FLOPS: math.log(seconds * 50),
            CEILING: -math.log(20),
        }
    )
    assert all(both[0] == both[1] for both in found.values())


def test_the_witness_is_the_same_on_both_sides():
    """The form that both runs have and that is the fastest over both."""
    base = by_launch(
        visit(n, {"point": [8.0], "twin": [10.0], "twin_ahead": [12.0], "core": [50.0]})
        for n in range(2)
    )
    head = by_launch(
        visit(n, {"point": [8.0], "twin": [16.0], "twin_ahead": [9.0]}) for n in range(2)
    )
    found = of_point(DECODE, 256 * MIB, base, head, {})
    assert (found[BESIDE][0][0], found[BESIDE][1][0]) == pytest.approx(
        (math.log(10 / 8), math.log(16 / 8))
    )
    lone = by_launch([visit(0, {"point": [8.0], "twin_ahead": [9.0], "core": [50.0]})])
    assert of_point(DECODE, 256 * MIB, base, lone, {})[BESIDE][0][0] == pytest.approx(
        math.log(12 / 8)
    )
    assert BESIDE not in of_point(DECODE, 256 * MIB, by_launch(measured(twin=None)), lone, {})


@pytest.mark.parametrize(
    ("point", "footprint", "reaches"),
    [
        (DECODE, 256 * MIB, 20.0),
        (DECODE, 4096 * MIB, 20.0),
        (DECODE, 9 * MIB, 40.0),
        (DECODE, 60 * MIB, None),  # more than a factor of two from either
        (replace(DECODE, residency="evicted"), 1 * MIB, 20.0),
        (STORE, 256 * MIB, 15.0),
        (STORE, 8 * MIB, None),
        (replace(DECODE, cpus=(1, 0)), 256 * MIB, 20.0),
        (replace(DECODE, cpus=(0,)), 256 * MIB, None),
        (replace(DECODE, pages="base"), 256 * MIB, None),
        (replace(DECODE, isa="avx2"), 256 * MIB, None),
    ],
)
def test_the_ceiling_of_a_point(point, footprint, reaches):
    near = replace(READ, bytes=8 * MIB)
    records = [
        probe(0, 20.0, ahead=18.0),
        probe(0, 40.0, near),
        probe(0, 15.0, COPY),
    ]
    own = by_launch([visit(0, {"point": [8.0]}, DECODE)])
    found = of_point(point, footprint, own, own, probed(records, records)).get(CEILING)
    assert found == (({0: pytest.approx(-math.log(reaches))},) * 2 if reaches else None)


def test_a_family_is_the_median_of_its_members_and_blind_to_sides():
    draw = np.random.default_rng(5)
    members = [
        {BESIDE: tuple(dict(enumerate(draw.normal(level, 1, 6))) for _ in "bh")}
        for level in (0.0, 5.0, -3.0)
    ]
    base, head = of_family(members)[BESIDE]
    # member, side, launch
    values = np.array([[list(side.values()) for side in views[BESIDE]] for views in members])
    expected = np.median(values - np.median(values, axis=(1, 2), keepdims=True), axis=0)
    assert np.array([list(base.values()), list(head.values())]) == pytest.approx(expected)
    assert of_family([{BESIDE: views[BESIDE][::-1]} for views in members])[BESIDE] == (head, base)


def test_members_without_a_witness_are_left_out_where_others_have_one():
    with_one, without = (
        {BESIDE: ({0: 1.0}, {0: 1.5}), SECONDS: ({0: 1.0}, {0: 1.0})},
        {SECONDS: ({0: 1.0}, {0: 9.0})},
    )
    assert of_family([with_one, without])[SECONDS] == ({0: 0.0}, {0: 0.0})
    assert of_family([without])[SECONDS] == ({0: -4.0}, {0: 4.0})
