"""Two made-up runs held against each other: shifts against scipy and by hand, and every word with its reason."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from kvbench.analysis.compare import Side, compare, learn, short
from kvbench.analysis.compare.around import Around
from kvbench.analysis.compare.limits import Floor, effects, floor
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
from kvbench.analysis.compare.whole import verdict
from kvbench.errors import NotComparable
from kvbench.model import Fact, Judged, Point, Probe, Record, Sample
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    IMPROVEMENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
    WORDS,
)
from tests.made_run import DECODE, MACHINE, MIB, READ, STORE, failed, probe, traffic, visit

POSITION, PAGED = (replace(DECODE, layout=layout) for layout in ("position", "paged"))
CLOCK, FMA, COPY = (Probe(op, "scalar", (0, 1), "thp", count) for op, count in
                    (("clock", 0), ("flops", 0), ("copy", 256 * MIB)))  # fmt: skip
LAUNCHES = 10
LUCK = [1 + 0.001 * number for number in range(LAUNCHES)]  # of each launch: no two are alike
IDENTITY = {"suite": "s1", "build": "b1", "machine": "m1", "environment": "e1"}


def side(records, run="base", planned=None, **identity):
    points = [record.point for record in records if isinstance(record.point, Point)]
    return Side(run, IDENTITY | identity, MACHINE, tuple(dict.fromkeys(planned or points)), list(records))


def measured(point=DECODE, rate=8.0, twin=10.0, luck=LUCK, **facts):
    """The point at `rate` GB/s beside its twin, in launches of some luck that the twin does not share."""
    beside = {} if twin is None else {"twin": [twin]}
    return [visit(n, {"point": [rate * lucky]} | beside, point, **facts) for n, lucky in enumerate(luck)]


def probed(of=READ, rate=20.0, luck=LUCK[::-1]):
    if of.op != "clock":
        return [probe(n, rate * lucky, of) for n, lucky in enumerate(luck)]
    second = (Sample("point", 0, 1, 1.0, (), 0.0, 0, 0),)
    return [
        Record(n, of, second, {"point": traffic(0.0)}, {}, steps=int(rate * lucky * 1e9))
        for n, lucky in enumerate(luck)
    ]


def compared(base, head, **asked):
    return compare(side(base), side(head, "head"), "2026-01-02T03:04:05+00:00", **asked)


def only(found):
    (row,) = found.points
    return row


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


# ---- words -----------------------------------------------------------------------------------------------------------


def test_a_slower_head():
    """By 10% beside a twin that is as fast as it was: of C(20, 10) orders of the launches one is so extreme."""
    found = compared(measured(), measured(rate=8 / 1.1))
    assert found.verdict == REGRESSION
    for row in (only(found), *found.families):
        assert row.verdict == REGRESSION and row.note == ""
        assert row.effect == pytest.approx(0.1)
        assert row.low == pytest.approx(0.1, abs=0.01) and row.high == pytest.approx(0.1, abs=0.01)
        assert row.low < row.effect < row.high
        assert row.p == row.q == pytest.approx(1 / math.comb(20, 10))
        assert row.launches == (10, 10) and 0 < row.detectable < 0.1
    row, (family,) = only(found), found.families
    luck = np.median(LUCK)
    assert (row.base_gbps, row.head_gbps) == pytest.approx((8 * luck, 8 / 1.1 * luck), rel=1e-6)
    assert row.head_seconds == pytest.approx(16 * MIB / 8e9 * 1.1 / luck, rel=1e-6)
    assert (row.name, row.family, family.name) == (DECODE.name, "decode.flash.head.f16 DRAM", row.family)
    assert family.base_gbps is None and family.head_seconds is None
    assert (found.base, found.head, found.command) == ("base", "head", "compare")
    assert found.missing == ()


def test_a_faster_head():
    row = only(compared(measured(), measured(rate=8 * 1.1)))
    assert (row.verdict, row.effect) == (IMPROVEMENT, pytest.approx(1 / 1.1 - 1))
    assert row.p == pytest.approx(1 / math.comb(20, 10))


def test_the_same():
    found = compared(measured(), measured())
    assert (found.verdict, only(found).verdict, only(found).effect) == (EQUIVALENT, EQUIVALENT, 0)
    assert any("one build" in note for note in found.notes)


@pytest.mark.parametrize(("slower", "point", "family"), [(1.02, EQUIVALENT, EQUIVALENT), (1.04, EQUIVALENT, REGRESSION),
                                                         (1.06, REGRESSION, REGRESSION)])  # fmt: skip
def test_small_effects_are_no_change(slower, point, family):
    found = compared(measured(), measured(rate=8 / slower))
    assert (only(found).verdict, found.families[0].verdict) == (point, family)
    assert found.verdict == family


def test_the_smallest_effect_can_be_asked_for():
    assert compared(measured(), measured(rate=8 / 1.15), smallest=0.2).verdict == INCONCLUSIVE
    assert compared(measured(), measured(rate=8 / 1.02), smallest=0.01).verdict == REGRESSION
    learned = Floor(points=0.2, families=0.12, pairs=3)
    found = compared(measured(), measured(rate=8 / 1.15), smallest=0.01, learned=learned)
    assert (only(found).verdict, found.families[0].verdict) == (INCONCLUSIVE, REGRESSION)


def test_a_machine_that_is_slower_for_all():
    """Both the point and its twin take 20% longer. Only the run's own ceiling can say that the machine did it."""
    base, head = measured(), measured(rate=8 / 1.2, twin=10 / 1.2)
    row = only(compared(base, head))
    assert (row.verdict, row.effect) == (INCONCLUSIVE, pytest.approx(0))
    assert "seconds moved by +20.0% of base's" in row.note and "do not say" in row.note
    found = compared([*base, *probed(READ)], [*head, *probed(READ, 20 / 1.2)])
    row = only(found)
    assert row.verdict == EQUIVALENT and "ceiling moved by +20.0%" in row.note
    assert any("the machine changed" in note and "+20.0%" in note for note in found.notes)


@pytest.mark.parametrize(
    ("head", "where"),
    [
        ([*measured(twin=12.0), *probed(CLOCK), *probed(FMA)], "in seconds"),  # the memory got faster
        ([*measured(rate=8 / 1.2), *probed(CLOCK, 20 / 1.2), *probed(FMA)], "in cycles"),  # the clock got slower
        ([*measured(rate=8 / 1.2), *probed(CLOCK), *probed(FMA, 20 / 1.2)], "against FMA"),  # the core is shared
    ],
)
def test_what_the_machine_can_have_done_is_no_regression(head, where):
    row = only(compared([*measured(), *probed(CLOCK), *probed(FMA)], head))
    assert (row.verdict, row.effect) == (INCONCLUSIVE, pytest.approx(0.2))
    assert row.note.startswith("slower beside its witness, which is not seen") and where in row.note
    assert only(compared(head, [*measured(), *probed(CLOCK), *probed(FMA)])).note.startswith("faster beside")


def test_a_real_change_shows_in_every_view():
    around = [*probed(CLOCK), *probed(FMA), *probed(READ)]
    assert only(compared([*measured(), *around], [*measured(rate=8 / 1.2), *around])).verdict == REGRESSION


@pytest.mark.parametrize(("machine", "word"), [(1.1, REGRESSION), (1 / 1.1, REGRESSION), (1.3, CONTAMINATED), (1 / 1.3, CONTAMINATED)])  # fmt: skip
def test_a_machine_that_changed_by_more(machine, word):
    """The point is 20% slower beside a twin that takes 1.1 or 1.3 times as long as it did, or that much less."""
    follow = [1 + 0.05 * math.sin(n) for n in range(LAUNCHES)]  # what a launch does to both
    launched = lambda rate, twin: [
        visit(n, {"point": [rate * times * LUCK[n]], "twin": [twin * times]}) for n, times in enumerate(follow)
    ]
    base, head = launched(8.0, 10.0), launched(8 / machine / 1.2, 10 / machine)
    found = compared(base, head)
    assert (only(found).verdict, found.families[0].verdict, found.verdict) == (word, word, word)
    assert only(found).effect == pytest.approx(0.2, abs=0.01)
    if word == CONTAMINATED:
        assert f" took {machine - 1:+.1%} of base's time" in only(found).note
    assert only(compared(head, base)).verdict == (word if word == CONTAMINATED else IMPROVEMENT)


def test_a_family_of_several_is_told_from_more():
    """A change of 20% beside twins that moved by 30%."""
    points = [replace(DECODE, shape=replace(DECODE.shape, context=100 + n, capacity=200)) for n in range(3)]
    found = compared(
        [r for p in points for r in measured(p)], [r for p in points for r in measured(p, 8 / 1.56, 10 / 1.3)]
    )
    assert {row.verdict for row in found.points} == {CONTAMINATED} and found.families[0].verdict == REGRESSION


def test_without_a_witness_the_ceiling_tells_of_the_machine():
    base = [*measured(twin=None), *probed(READ)]
    head = [*measured(rate=8 / 1.2, twin=None), *probed(READ, 20 / 1.3)]
    row = only(compared(base, head))
    assert row.verdict == CONTAMINATED and "the run's own ceiling took +30.0%" in row.note
    assert only(compared(base, [*head[:LAUNCHES], *probed(READ, 20 / 1.1)])).verdict == REGRESSION


def test_launches_that_are_far_apart_are_not_clear():
    draw = np.random.default_rng(6)
    found = compared(measured(luck=draw.lognormal(0, 0.1, 10)), measured(luck=draw.lognormal(0, 0.1, 10)))
    row = only(found)
    assert (found.verdict, row.verdict) == (INCONCLUSIVE, INCONCLUSIVE)
    assert row.detectable > 0.1 and row.note == ""
    assert any(f"{row.detectable:.1%}" in note for note in found.notes)


def test_too_few_launches_show_nothing():
    found = compared(measured(luck=LUCK[:3]), measured(rate=4.0, luck=LUCK[:3]))
    row = only(found)
    assert (found.verdict, row.verdict, row.detectable, row.low) == (INCONCLUSIVE, INCONCLUSIVE, None, None)
    assert row.effect == pytest.approx(1.0) and row.p == pytest.approx(1 / 20)
    assert "too few" in row.note and any("too few" in note for note in found.notes)


def test_without_a_witness_seconds_are_all_there_is():
    row = only(compared(measured(twin=None), measured(rate=8 / 1.1, twin=None)))
    assert row.verdict == REGRESSION and "no witness" in row.note


# ---- two environments ------------------------------------------------------------------------------------------------


def test_in_another_environment_seconds_are_no_matter():
    base, head = side(measured()), side(measured(rate=8 / 1.2, twin=10 / 1.2), "head", environment="e2")
    found = compare(base, head, "")
    assert (found.verdict, only(found).verdict) == (EQUIVALENT, EQUIVALENT)
    assert only(found).base_seconds < only(found).head_seconds
    assert any("environments differ" in note for note in found.notes)
    slower = side(measured(rate=8 / 1.2, twin=11.0), "head", environment="e2")
    assert compare(base, slower, "").verdict == REGRESSION


def test_in_another_environment_a_point_needs_its_witness():
    both = [*measured(), *measured(POSITION, twin=None)]
    found = compare(side(both), side(both, "head", environment="e2"), "")
    assert found.points[0].verdict == NOT_COMPARABLE and found.verdict == INCONCLUSIVE
    assert found.missing == (f"{POSITION.name}: the environments differ, and no witness was measured beside it",)


# ---- what cannot be compared -----------------------------------------------------------------------------------------


def test_two_machines_are_refused():
    named = replace(MACHINE, facts={"brand": Fact("a fast one", "", "high")})
    other = replace(side(measured(), "head", machine="m2"), machine=named)
    with pytest.raises(NotComparable, match=r"a machine without a name.*m1.*a fast one.*m2") as caught:
        compare(side(measured()), other, "")
    assert caught.value.exit_code == 6


def test_a_run_is_not_compared_with_itself():
    with pytest.raises(NotComparable, match="the same run, base"):
        compare(side(measured()), side(measured()), "")


def test_nothing_in_common_is_refused():
    with pytest.raises(NotComparable, match="no point in common"):
        compared(measured(), measured(POSITION))
    with pytest.raises(NotComparable, match="no point in common"):
        compared(probed(), probed())


GOOD = measured()
BAD = {
    "failed in 1 of 11 launches of head: a wrong answer": [*GOOD, failed(10, error="a wrong answer")],
    "failed in 1 of 10 launches of head: no sample was taken": [replace(GOOD[0], samples=()), *GOOD[1:]],
    "never visited in head": [],
    "a pass moves 16777216 compulsory bytes in base and 33554432 in head": measured(walked=512 * MIB),
    "base walks 16 slices in turn and head 8": measured(walked=128 * MIB, layers=8),
}


@pytest.mark.parametrize("why", BAD)
def test_a_point_that_cannot_be_compared_is_said(why):
    both = measured(POSITION)
    base, head = side([*both, *GOOD]), side([*both, *BAD[why]], "head", planned=(POSITION, DECODE))
    found = compare(base, head, "")
    assert [(row.name, row.verdict) for row in found.points] == [
        (DECODE.name, NOT_COMPARABLE),
        (POSITION.name, EQUIVALENT),
    ]
    assert found.points[0].note == why and found.missing == (f"{DECODE.name}: {why}",)
    assert found.points[0].family == "decode.flash.head.f16 DRAM"
    assert found.verdict == INCONCLUSIVE, "nobody knows whether it is as fast"
    with pytest.raises(NotComparable, match="none can be compared"):
        compare(side(GOOD), side(BAD[why], "head", planned=(DECODE,)), "")


def test_both_sides_may_have_failed():
    both = [*measured(POSITION), failed(0)]
    found = compared(both, both)
    assert found.missing[0].count("failed in 1 of 1 launches") == 2


def test_points_of_one_side_are_said():
    found = compared([*GOOD, *measured(POSITION)], [*GOOD, *measured(PAGED)])
    assert found.missing == (f"{POSITION.name}: only base has it", f"{PAGED.name}: only head has it")
    assert found.verdict == EQUIVALENT and len(found.points) == 1


def test_what_differs_is_said():
    notes = " ".join(compare(side(GOOD), side(GOOD, "head", suite="s2", build="b2"), "").notes)
    assert "different suites" in notes and "are of one build" not in notes


# ---- the whole -------------------------------------------------------------------------------------------------------


def judged(word, effect=0.0, name="a"):
    return Judged(name, "", word, effect, *[None] * 9, launches=(1, 1), note="")


@pytest.mark.parametrize(
    ("points", "families", "word"),
    [
        ((EQUIVALENT,), (EQUIVALENT,), EQUIVALENT),
        ((INCONCLUSIVE, EQUIVALENT), (EQUIVALENT,), EQUIVALENT),
        ((INCONCLUSIVE,), (INCONCLUSIVE, IMPROVEMENT), INCONCLUSIVE),
        ((IMPROVEMENT, INCONCLUSIVE), (EQUIVALENT,), IMPROVEMENT),
        ((EQUIVALENT,), (IMPROVEMENT,), IMPROVEMENT),
        ((EQUIVALENT, NOT_COMPARABLE), (EQUIVALENT,), INCONCLUSIVE),
        ((CONTAMINATED,), (EQUIVALENT, IMPROVEMENT), CONTAMINATED),
        ((REGRESSION, CONTAMINATED), (EQUIVALENT,), REGRESSION),
        ((EQUIVALENT, NOT_COMPARABLE), (REGRESSION, CONTAMINATED), REGRESSION),
    ],
)
def test_the_word_for_the_whole(points, families, word):
    assert verdict([judged(each) for each in points], [judged(each) for each in families]) == word


def test_worst_first():
    around = [*probed(CLOCK), *probed(FMA)]
    base = [*measured(), *measured(POSITION), *measured(PAGED), *around]
    head = [*measured(rate=9.0), *measured(POSITION, rate=7.0), *measured(PAGED, rate=6.0), *around]
    found = compared(base, head)
    assert [row.name for row in found.points] == [PAGED.name, POSITION.name, DECODE.name]
    assert [row.verdict for row in found.families] == [REGRESSION, REGRESSION, IMPROVEMENT]
    assert set(WORDS) >= {row.verdict for row in found.points}


def test_families_are_of_one_kernel_and_place():
    """A slice of 16 KiB in rotation over 16 fits caches; tiers of one kernel are one family."""
    near, tier = replace(DECODE, residency="hot"), replace(DECODE, isa="avx2")
    records = [*GOOD, *measured(tier), *measured(near, walked=MIB)]
    names = {row.name: row.family for row in compared(records, records).points}
    assert names == {
        DECODE.name: "decode.flash.head.f16 DRAM",
        tier.name: "decode.flash.head.f16 DRAM",
        near.name: "decode.flash.head.f16 caches",
    }


def test_several_tests_are_corrected_together():
    """One of 30 points is slower: its chance counts 30 times. Six launches are too few for that, ten are not."""
    points = [replace(DECODE, shape=replace(DECODE.shape, context=100 + n, capacity=200)) for n in range(30)]

    def run(launches, rate):
        rates = [rate, *[8.0] * 29]
        return [
            record for p, own in zip(points, rates, strict=True) for record in measured(p, own, luck=LUCK[:launches])
        ]

    (found,) = (row for row in compared(run(10, 8.0), run(10, 6.0)).points if row.name == points[0].name)
    assert (found.verdict, found.q) == (REGRESSION, pytest.approx(30 / math.comb(20, 10)))
    few = compared(run(6, 8.0), run(6, 6.0))
    (found,) = (row for row in few.points if row.name == points[0].name)
    assert (found.verdict, found.q, found.detectable) == (INCONCLUSIVE, pytest.approx(30 / math.comb(12, 6)), None)
    assert few.families[0].verdict == EQUIVALENT, "its family has 29 others"


def test_short_names():
    names = short(side([*GOOD, *measured(POSITION)]), side(measured(PAGED), "head"))
    assert names.keys() == {DECODE.name, POSITION.name, PAGED.name} and len(set(names.values())) == 3
    assert short(side([]), side([])) == {}


# ---- thresholds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "learned", "private", "beyond", "family"),
    [
        (None, None, 0.05, 0.05, 0.03),
        (None, Floor(0.0, 0.0, 1), 0.05, 0.03, 0.02),
        (None, Floor(0.04, 0.06, 1), 0.05, 0.04, 0.06),
        (0.01, None, 0.01, 0.01, 0.01),
        (0.01, Floor(0.04, 0.0, 3), 0.04, 0.04, 0.01),
    ],
)
def test_smallest_effects(asked, learned, private, beyond, family):
    found = effects(asked, learned)
    assert (found.of("L2"), found.of("L3"), found.of("DRAM"), found.family) == (private, beyond, beyond, family)
    assert f"{family:.1%} for a family" in found.note and f"{beyond:.1%}" in found.note


def test_noise_is_what_hardly_any_point_exceeds():
    found = floor([*np.linspace(-0.5, 0.5, 101), None], [], 2)
    assert found.points == pytest.approx(1.5 * np.quantile(np.abs(np.linspace(-0.5, 0.5, 101)), 0.99))
    assert (found.families, found.pairs) == (0, 2)


def test_noise_is_learned_from_runs_of_one_build():
    """Every two of three runs differ by 10%, 10% and 21% of base's time: by hand 1.5 times nearly the largest."""
    runs = [side(measured(rate=8 / 1.1**n), f"run {n}") for n in range(3)]
    found = learn(runs)
    effects_of = np.quantile([0.1, 0.1, 0.21], 0.99)
    assert (found.points, found.families) == pytest.approx((1.5 * effects_of, 1.5 * effects_of))
    assert found.pairs == 3
    assert learn(runs[:1]) == Floor(0.0, 0.0, 0)
    with pytest.raises(NotComparable, match="two builds"):
        learn([runs[0], side(measured(), "other", build="b2")])
