"""What a comparison tests: shifts against scipy and by hand, and the views that they are of."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from kvbench.analysis.compare.around import Around
from kvbench.analysis.compare.ranks import shift
from kvbench.analysis.compare.views import (
    BESIDE,
    CEILING,
    CYCLES,
    FLOPS,
    SECONDS,
    WITNESS,
    by_launch,
    corrected,
    of_family,
    of_point,
)
from tests.analysis.compare.made_sides import (
    CLOCK,
    COPY,
    FMA,
    LAUNCHES,
    LUCK,
    measured,
    probed,
)
from tests.made_run import DECODE, MIB, READ, STORE, probe, visit

# ---- the test and its interval ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("launches", [(1, 1), (3, 4), (10, 7), (10, 10), (12, 30)])
def test_chances_are_scipys(launches):
    draw = np.random.default_rng(sum(launches))
    for _ in range(20):
        base, head = (draw.normal(size=count) for count in launches)
        found = shift(base, head)
        for way, chance in (("greater", found.slower), ("less", found.faster)):
            assert chance == pytest.approx(mannwhitneyu(head, base, alternative=way, method="exact").pvalue)


def test_ties_speak_for_neither_side():
    """However they are broken, the chance is no larger: beside all 126 ways to deal nine values to five and four."""
    draw = np.random.default_rng(1)

    def above(values, head):
        return sum((h > b) + (h == b) / 2 for h in values[head] for b in np.delete(values, head))

    for _ in range(30):
        values = draw.integers(0, 6, 9).astype(float)
        counts = [above(values, list(head)) for head in combinations(range(9), 4)]
        exact = np.mean(np.array(counts) >= above(values, [5, 6, 7, 8]))
        assert shift(values[:5], values[5:]).slower >= exact - 1e-12
    alike = shift(np.ones(8), np.ones(8))
    assert (alike.slower, alike.faster, alike.estimate) == (1, 1, 0)


def test_the_shift_is_that_of_hodges_and_lehmann():
    """The interval holds what the test, moved there, does not reject."""
    draw = np.random.default_rng(2)
    base, head = draw.lognormal(size=8), draw.lognormal(size=10)
    found = shift(base, head)
    assert found.estimate == pytest.approx(np.median([h - b for h in head for b in base]))

    def rejected(value):
        moved = shift(base, head - value)
        return min(moved.slower, moved.faster) <= 0.025

    for end, inward in ((found.low, 1e-9), (found.high, -1e-9)):
        assert rejected(end - inward) and not rejected(end + inward)


def test_few_launches_have_no_interval():
    """Three and three: of 20 orders one is the least likely, which is more than 2.5%."""
    found = shift(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    assert found.slower == pytest.approx(1 / 20) and found.estimate == 3
    assert math.isnan(found.low) and math.isnan(found.high) and math.isnan(found.detectable(0.05, 0.9))
    four = shift(np.arange(4.0), np.arange(4.0) + 10)
    assert (four.slower, four.low, four.high) == (pytest.approx(1 / 70), 7, 13)


def test_many_at_once_are_as_one_by_one():
    draw = np.random.default_rng(3)
    base, head = draw.normal(size=(5, 6)), draw.normal(size=(5, 9))
    many = shift(base, head)
    for place in range(5):
        one = shift(base[place], head[place])
        assert [float(each[place]) for each in many[:5]] == pytest.approx([float(each) for each in one[:5]])


def test_mirrored_is_with_sides_exchanged():
    draw = np.random.default_rng(4)
    base, head = draw.normal(size=8), draw.normal(size=8)
    mirrored, exchanged = shift(base, head).mirrored(), shift(head, base)
    assert [float(each) for each in mirrored[:5]] == pytest.approx([float(each) for each in exchanged[:5]])


# ---- views -----------------------------------------------------------------------------------------------------------


def test_views_of_a_point():
    """256 MiB in 16 slices at 8 GB/s; the twin at 10; a clock of 3 GHz, 50 GFLOP/s, and a ceiling of 20 GB/s."""
    records = [*measured(luck=[1]), *probed(CLOCK, 3.0, [1]), *probed(FMA, 50.0, [1]), *probed(READ, 20.0, [1])]
    own = by_launch(record for record in records if record.point == DECODE)
    found = of_point(DECODE, 256 * MIB, own, own, Around.of(records, records))
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
    """The faster form over both runs, of those that both have."""
    base = by_launch(visit(n, {"point": [8.0], "twin": [10.0], "twin_ahead": [12.0], "core": [50.0]}) for n in range(2))
    head = by_launch(visit(n, {"point": [8.0], "twin": [16.0], "twin_ahead": [9.0]}) for n in range(2))
    found = of_point(DECODE, 256 * MIB, base, head, Around({}))
    assert (found[BESIDE][0][0], found[BESIDE][1][0]) == pytest.approx((math.log(10 / 8), math.log(16 / 8)))
    lone = by_launch([visit(0, {"point": [8.0], "twin_ahead": [9.0], "core": [50.0]})])
    assert of_point(DECODE, 256 * MIB, base, lone, Around({}))[BESIDE][0][0] == pytest.approx(math.log(12 / 8))
    assert BESIDE not in of_point(DECODE, 256 * MIB, by_launch(measured(twin=None)), lone, Around({}))


def test_a_launch_without_a_probe_is_not_in_its_view():
    records = [*measured(), *probed(CLOCK, 3.0, LUCK[:4])]
    own = by_launch(records[:LAUNCHES])
    found = of_point(DECODE, 256 * MIB, own, own, Around.of(records, records))
    assert set(found[SECONDS][0]) == set(range(10)) and set(found[CYCLES][0]) == set(range(4))


@pytest.mark.parametrize(
    ("point", "footprint", "reaches"),
    [
        (DECODE, 256 * MIB, 20.0),
        (DECODE, 4096 * MIB, 20.0),
        (DECODE, 9 * MIB, 40.0),
        (DECODE, 60 * MIB, None),  # further than twice from either
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
    records = [probe(0, 20.0), probe(0, 18.0, replace(READ, distance=2048)), probe(0, 40.0, near), probe(0, 15.0, COPY)]
    found = Around.of(records, records).ceiling(point, footprint)
    assert found == (({0: pytest.approx(reaches)},) * 2 if reaches else None)


def test_a_probe_that_one_run_lacks_is_none():
    assert Around.of([probe(0, 20.0)], [probe(0, 20.0, COPY)]) == Around({})


def test_a_family_is_the_median_of_its_members_and_blind_to_sides():
    draw = np.random.default_rng(5)
    members = [{BESIDE: tuple(dict(enumerate(draw.normal(level, 1, 6))) for _ in "bh")} for level in (0.0, 5.0, -3.0)]
    base, head = of_family(members)[BESIDE]
    values = np.array([[list(side.values()) for side in views[BESIDE]] for views in members])  # member, side, launch
    expected = np.median(values - np.median(values, axis=(1, 2), keepdims=True), axis=0)
    assert np.array([list(base.values()), list(head.values())]) == pytest.approx(expected)
    assert of_family([{BESIDE: views[BESIDE][::-1]} for views in members])[BESIDE] == (head, base)


def test_members_without_a_witness_are_left_out_where_others_have_one():
    with_one, without = {BESIDE: ({0: 1.0}, {0: 1.5}), SECONDS: ({0: 1.0}, {0: 1.0})}, {SECONDS: ({0: 1.0}, {0: 9.0})}
    assert of_family([with_one, without])[SECONDS] == ({0: 0.0}, {0: 0.0})
    assert of_family([without])[SECONDS] == ({0: -4.0}, {0: 4.0})


def as_views(values):
    return tuple(dict(enumerate(each)) for each in values)


def test_times_are_corrected_by_what_the_witness_shares():
    """A point that follows half of what moves its witness: launch by launch by up to 30%, from run to run by 20%."""
    draw = np.random.default_rng(7)
    own, moved = draw.normal(0, 0.001, (2, 10)), draw.uniform(0, 0.3, (2, 10)) + [[0.0], [0.2]]
    times = 0.5 * moved + own
    found = corrected({SECONDS: as_views(times), BESIDE: as_views(times - moved), WITNESS: as_views(moved)})
    left = np.array([list(side.values()) for side in found[SECONDS]])
    assert left == pytest.approx(own, abs=0.01), "and not 0.1 in one run"
    assert found[BESIDE] == as_views(times - moved) and found[WITNESS] == as_views(moved)


@pytest.mark.parametrize("shared", [0.0, -1.0])
def test_a_witness_that_the_point_does_not_follow_corrects_nothing(shared):
    draw = np.random.default_rng(8)
    moved = draw.normal(0, 0.1, (2, 10))
    times = draw.normal(0, 0.01, (2, 10)) + shared * moved
    views = {SECONDS: as_views(times), WITNESS: as_views(moved)}
    found = corrected(views)
    assert np.array([list(side.values()) for side in found[SECONDS]]) == pytest.approx(times)
    assert corrected({SECONDS: views[SECONDS]}) == {SECONDS: views[SECONDS]}
