"""Comparisons of two made-up runs: every verdict with its reason."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.differs.compare import learn
from kvbench.analysis.differs.compare.words import Floor, effects
from kvbench.errors import NotComparable
from kvbench.model import Fact
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    IMPROVEMENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
)
from kvbench.report.words.compared import effects as said_of
from tests.analysis.differs.compare.made_sides import (
    CLOCK,
    FMA,
    LAUNCHES,
    LUCK,
    PAGED,
    POSITION,
    compare,
    compared,
    measured,
    only,
    probes,
    side,
)
from tests.made_run import DECODE, MACHINE, MIB, READ, failed, visit

# ---- words ---------------------------------------------------------------------------------------


def test_a_slower_head():
    """10% slower beside an unchanged twin. One of C(20, 10) orders of the launches is that
    extreme.
    """
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
    assert (row.name, row.family, family.name) == (
        DECODE.name,
        "decode.flash.head.f16 DRAM",
        row.family,
    )
    assert family.base_gbps is None and family.head_seconds is None
    assert (found.base, found.head, found.command) == ("base", "head", "compare")
    assert found.missing == ()


def test_several_queries_are_compared_with_as_many():
    """Not with one query, and not under another mask."""
    several = [
        replace(DECODE, shape=replace(DECODE.shape, q_len=4, mask=mask))
        for mask in ("chain", "tree")
    ]
    base = [record for point in (DECODE, *several) for record in measured(point)]
    head = [*measured(several[0], 8 / 1.1), *measured(DECODE)]
    found = compared(base, head)
    assert {row.name: row.verdict for row in found.points} == {
        DECODE.name: EQUIVALENT,
        several[0].name: REGRESSION,
    }
    assert found.missing


def test_another_schedule_is_judged_and_said():
    base = [replace(record, ran="weave") for record in measured()]
    head = [replace(record, ran="stream") for record in measured(rate=8 / 1.1)]
    assert only(compared(base, head)).verdict == REGRESSION
    assert only(compared(base, head)).note == "schedule (weave → stream)"
    assert only(compared(base, base)).note == only(compared(measured(), head)).note == ""


def test_a_faster_head():
    row = only(compared(measured(), measured(rate=8 * 1.1)))
    assert (row.verdict, row.effect) == (IMPROVEMENT, pytest.approx(1 / 1.1 - 1))
    assert row.p == pytest.approx(1 / math.comb(20, 10))


def test_the_same():
    found = compared(measured(), measured())
    assert (found.verdict, only(found).verdict, only(found).effect) == (EQUIVALENT, EQUIVALENT, 0)
    assert any("one build" in note for note in found.notes)


@pytest.mark.parametrize(
    ("slower", "point", "family"),
    [
        (1.02, EQUIVALENT, EQUIVALENT),
        (1.04, EQUIVALENT, REGRESSION),
        (1.06, REGRESSION, REGRESSION),
    ],
)
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
    """Both the point and its twin take 20% longer. Only the run's own ceiling can show that the
    machine changed.
    """
    base, head = measured(), measured(rate=8 / 1.2, twin=10 / 1.2)
    row = only(compared(base, head))
    assert (row.verdict, row.effect) == (INCONCLUSIVE, pytest.approx(0))
    assert "seconds moved by +20.0% of base's" in row.note and "do not show" in row.note
    found = compared([*base, *probes(READ)], [*head, *probes(READ, 20 / 1.2)])
    row = only(found)
    assert row.verdict == EQUIVALENT and "ceiling moved by +20.0%" in row.note
    assert any("the machine changed" in note and "+20.0%" in note for note in found.notes)


@pytest.mark.parametrize(
    ("seconds", "ceiling", "word"),
    [(1 / 1.2, 1 / 1.2, EQUIVALENT), (1.2, 1 / 1.2, INCONCLUSIVE), (1 / 1.2, 1.2, INCONCLUSIVE)],
)
def test_a_ceiling_that_moved_the_other_way_explains_nothing(seconds, ceiling, word):
    """Times of the point, its twin, and reads, as shares of base's."""
    base, head = measured(), measured(rate=8 / seconds, twin=10 / seconds)
    row = only(compared([*base, *probes(READ)], [*head, *probes(READ, 20 / ceiling)]))
    assert row.verdict == word and ("do not show" in row.note) is (word == INCONCLUSIVE)


@pytest.mark.parametrize(
    ("head", "where"),
    [
        # the memory got faster
        ([*measured(twin=12.0), *probes(CLOCK), *probes(FMA)], "in seconds"),
        # the clock got slower
        ([*measured(rate=8 / 1.2), *probes(CLOCK, 20 / 1.2), *probes(FMA)], "in cycles"),
        # the core is shared
        ([*measured(rate=8 / 1.2), *probes(CLOCK), *probes(FMA, 20 / 1.2)], "against FMA"),
    ],
)
def test_what_the_machine_can_have_done_is_no_regression(head, where):
    row = only(compared([*measured(), *probes(CLOCK), *probes(FMA)], head))
    assert (row.verdict, row.effect) == (INCONCLUSIVE, pytest.approx(0.2))
    assert row.note.startswith("slower beside its witness, but not") and where in row.note
    assert only(compared(head, [*measured(), *probes(CLOCK), *probes(FMA)])).note.startswith(
        "faster beside"
    )


def test_a_real_change_shows_in_every_view():
    around = [*probes(CLOCK), *probes(FMA), *probes(READ)]
    assert (
        only(compared([*measured(), *around], [*measured(rate=8 / 1.2), *around])).verdict
        == REGRESSION
    )


@pytest.mark.parametrize(
    ("machine", "word"),
    [(1.1, REGRESSION), (1 / 1.1, REGRESSION), (1.3, CONTAMINATED), (1 / 1.3, INCONCLUSIVE)],
)
def test_a_machine_that_changed_by_more(machine, word):
    """The point is 20% slower beside its twin, whose time changed by a factor of 1.1 or 1.3 either
    way. Where it fell, seconds say that the point is faster.
    """
    follow = [1 + 0.05 * math.sin(n) for n in range(LAUNCHES)]  # noise of a launch
    launched = lambda rate, twin: [
        visit(n, {"point": [rate * times * LUCK[n]], "twin": [twin * times]})
        for n, times in enumerate(follow)
    ]
    base, head = launched(8.0, 10.0), launched(8 / machine / 1.2, 10 / machine)
    found = compared(base, head)
    assert (only(found).verdict, found.families[0].verdict, found.verdict) == (word, word, word)
    assert only(found).effect == pytest.approx(0.2, abs=0.01)
    if word == CONTAMINATED:
        assert f" took {machine - 1:+.1%} of base's time" in only(found).note
    assert only(compared(head, base)).verdict == (IMPROVEMENT if word == REGRESSION else word)


def test_a_family_of_several_is_told_from_more():
    """A change of 20% beside twins that moved by 30%."""
    points = [
        replace(DECODE, shape=replace(DECODE.shape, context=100 + n, capacity=200))
        for n in range(3)
    ]
    found = compared(
        [r for p in points for r in measured(p)],
        [r for p in points for r in measured(p, 8 / 1.56, 10 / 1.3)],
    )
    assert {row.verdict for row in found.points} == {CONTAMINATED} and found.families[
        0
    ].verdict == REGRESSION


def test_without_a_witness_the_ceiling_tells_of_the_machine():
    base = [*measured(twin=None), *probes(READ)]
    head = [*measured(rate=8 / 1.2, twin=None), *probes(READ, 20 / 1.3)]
    row = only(compared(base, head))
    assert row.verdict == CONTAMINATED and "the run's own ceiling took +30.0%" in row.note
    assert only(compared(base, [*head[:LAUNCHES], *probes(READ, 20 / 1.1)])).verdict == REGRESSION


def test_launches_that_are_far_apart_are_not_clear():
    draw = np.random.default_rng(6)
    found = compared(
        measured(luck=draw.lognormal(0, 0.1, 10)), measured(luck=draw.lognormal(0, 0.1, 10))
    )
    row = only(found)
    assert (found.verdict, row.verdict) == (INCONCLUSIVE, INCONCLUSIVE)
    assert row.detectable > 0.1 and row.note == ""
    assert any(f"{row.detectable:.1%}" in note for note in found.notes)


def test_too_few_launches_show_nothing():
    found = compared(measured(luck=LUCK[:3]), measured(rate=4.0, luck=LUCK[:3]))
    row = only(found)
    assert (found.verdict, row.verdict, row.detectable, row.low) == (
        INCONCLUSIVE,
        INCONCLUSIVE,
        None,
        None,
    )
    assert row.effect == pytest.approx(1.0) and row.p == pytest.approx(1 / 20)
    said = (
        "1 of 1 families are not clear by themselves: 3 launches against 3 show no change of one"
        " alone, however large; "
    )
    needed = "at least 5 a side are needed, and 12 to find 5%"
    assert f"{said}{needed}" in "\n".join(found.notes)


def test_without_a_witness_seconds_are_all_there_is():
    row = only(compared(measured(twin=None), measured(rate=8 / 1.1, twin=None)))
    assert row.verdict == REGRESSION and "no witness" in row.note


# ---- two environments ----------------------------------------------------------------------------


def test_in_another_environment_seconds_are_no_matter():
    base, head = (
        side(measured()),
        side(measured(rate=8 / 1.2, twin=10 / 1.2), "head", environment="e2"),
    )
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
    assert found.missing == (
        f"{POSITION.name}: the environments differ, and the point has no witness",
    )


# ---- what cannot be compared ---------------------------------------------------------------------


def test_two_machines_are_refused():
    named = replace(MACHINE, facts={"brand": Fact("a fast one", "", "high")})
    other = replace(side(measured(), "head", machine="m2"), machine=named)
    with pytest.raises(
        NotComparable, match=r"a machine without a name.*m1.*a fast one.*m2"
    ) as caught:
        compare(side(measured()), other, "")
    assert caught.value.exit_code == 6


def test_a_run_is_not_compared_with_itself():
    with pytest.raises(NotComparable, match="the same run, base"):
        compare(side(measured()), side(measured()), "")


def test_nothing_in_common_is_refused():
    with pytest.raises(NotComparable, match="no point in common"):
        compared(measured(), measured(POSITION))
    with pytest.raises(NotComparable, match="no point in common"):
        compared(probes(), probes())


GOOD = measured()
BAD = {
    "failed in 1 of 11 launches of head: a wrong answer": [
        *GOOD,
        failed(10, error="a wrong answer"),
    ],
    "failed in 1 of 10 launches of head: no sample was taken": [
        replace(GOOD[0], samples=()),
        *GOOD[1:],
    ],
    "never visited in head": [],
    "a pass moves 16777216 compulsory bytes in base, but 33554432 in head": measured(
        walked=512 * MIB
    ),
    "base walks 16 slices in turn, but head 8": measured(walked=128 * MIB, layers=8),
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
    with pytest.raises(NotComparable, match="no point that both runs have can be compared"):
        compare(side(GOOD), side(BAD[why], "head", planned=(DECODE,)), "")


def test_points_of_one_side_are_said():
    found = compared([*GOOD, *measured(POSITION)], [*GOOD, *measured(PAGED)])
    assert found.missing == (
        f"{POSITION.name}: only base has it",
        f"{PAGED.name}: only head has it",
    )
    assert found.verdict == EQUIVALENT and len(found.points) == 1


# ---- families and points -------------------------------------------------------------------------


def test_families_are_of_one_kernel_and_place():
    """A slice of 16 KiB in rotation over 16 fits caches. Tiers of one kernel are one family."""
    near, tier = replace(DECODE, residency="hot"), replace(DECODE, isa="avx2")
    records = [*GOOD, *measured(tier), *measured(near, walked=MIB)]
    names = {row.name: row.family for row in compared(records, records).points}
    assert names == {
        DECODE.name: "decode.flash.head.f16 DRAM",
        tier.name: "decode.flash.head.f16 DRAM",
        near.name: "decode.flash.head.f16 caches",
    }


# ---- thresholds ----------------------------------------------------------------------------------


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
    assert (found.of("L2"), found.of("L3"), found.of("DRAM"), found.family) == (
        private,
        beyond,
        beyond,
        family,
    )
    note = said_of(found)
    assert f"{family:.1%} for a family" in note and f"{beyond:.1%}" in note


def test_noise_is_learned_from_runs_of_one_build():
    """The three pairs of three runs differ by 10%, 10% and 21% of base's time. By hand: 1.5 times
    almost the largest.
    """
    runs = [side(measured(rate=8 / 1.1**n), f"run {n}") for n in range(3)]
    found = learn(runs)
    effects_of = np.quantile([0.1, 0.1, 0.21], 0.99)
    assert (found.points, found.families) == pytest.approx((1.5 * effects_of, 1.5 * effects_of))
    assert found.pairs == 3
    with pytest.raises(NotComparable, match="two builds"):
        learn([runs[0], side(measured(), "other", build="b2")])
