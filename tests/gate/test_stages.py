"""What a gate makes of launches, from thousands of made-up suites: it must not cry wolf, and must see what is there."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, false_discovery_control

from kvbench.analysis.paired import LIMITS, Course, Duel, confirmed, screened, whole
from kvbench.analysis.paired.signs import middle
from kvbench.analysis.paired.stages import of_family
from kvbench.model.verdict import CONTAMINATED, EQUIVALENT, IMPROVEMENT, INCONCLUSIVE, NOT_COMPARABLE, REGRESSION
from tests.gate.made_duels import MACHINE, POINTS

LAUNCHES = 12
DICE = np.random.default_rng(20261121)


def most(trials, chance):
    """More successes than these are a sign that the chance is greater."""
    return int(binom.ppf(0.9999, trials, chance))


# Values of launches, [suites, points, launches]. A coin decided which side came first, so all are as likely below zero.


def coins(shape):
    return DICE.choice((-1.0, 1.0), shape)


def lognormal(shape):
    return DICE.normal(0, 0.03, shape)


def autocorrelated(shape):
    """What is left of one launch is still there in the next; the coins make it fall to either side."""
    noise = DICE.normal(0, 0.03, shape)
    for launch in range(1, shape[-1]):
        noise[..., launch] += 0.5 * noise[..., launch - 1]
    return noise * coins(shape)


def drift(shape):
    """The second of a pair is slower all along, and more so in later launches."""
    return np.linspace(0, 0.2, shape[-1]) * coins(shape) + DICE.normal(0, 0.01, shape)


def bimodal(shape):
    return DICE.normal(0, 0.01, shape) + 0.2 * (DICE.random(shape) < 1 / 3) * coins(shape)


def spikes(shape):
    return DICE.normal(0, 0.02, shape) + DICE.exponential(1.0, shape) * (DICE.random(shape) < 0.05) * coins(shape)


def shared(shape):
    """All points of a launch are hit as one."""
    suites, _, launches = shape
    return DICE.normal(0, 0.03, (suites, 1, launches)) + DICE.normal(0, 0.01, shape)


NOISES = (lognormal, autocorrelated, drift, bimodal, spikes, shared)


@pytest.mark.parametrize("noise", NOISES)
def test_suites_without_a_change_rarely_have_candidates(noise):
    """Together 10,200 suites of 24 points, by the tests alone, before any other condition."""
    suites = 1700
    found = middle(noise((suites, len(POINTS), LAUNCHES)))
    for chances in (found.slower, found.faster):
        alarms = (false_discovery_control(chances, axis=1).min(axis=1) <= LIMITS.screen).sum()
        assert alarms <= most(suites, LIMITS.screen)
    assert (found.slower <= 0.05).mean() <= 0.06
    assert ((found.low <= 0) & (found.high >= 0)).mean() >= 0.94


def suite(values, points=POINTS, beside=None):
    still = np.zeros(values.shape[-1])
    return [
        Duel(
            point,
            dict(enumerate(map(float, values[place]))),
            dict(enumerate(map(float, still if beside is None else beside[place]))),
            (1e-3, 1e-3),
            1e6,
            1e6 if point.residency == "hot" else 1e9,
            0.01,
            0.0,
        )
        for place, point in enumerate(points)
    ]


def gated(first, again, points=POINTS, **facts):
    """As a gate goes: launches over all points, and fresh ones for the candidates."""
    screen = screened(suite(first, points, **facts), MACHINE)
    chosen = {duel.point for row in screen.candidates for duel in row.members}
    fresh, sure = None, {}
    if chosen:
        places = [place for place, point in enumerate(points) if point in chosen]
        members = {name: value[places] for name, value in facts.items()}
        fresh = screened(suite(again[places], [points[place] for place in places], **members), MACHINE)
        sure = confirmed(screen.candidates, fresh)
    return whole(Course(screen, fresh, sure, None, LAUNCHES), "a", "b", "here", "2026-01-02T03:04:05+00:00", (), ())


@pytest.mark.parametrize("noise", NOISES)
def test_no_suite_without_a_change_is_red(noise):
    """The chance is a few in ten thousand; here are 60 of each kind."""
    words = [gated(*noise((2, len(POINTS), LAUNCHES))).verdict for _ in range(60)]
    assert REGRESSION not in words and IMPROVEMENT not in words


def shifted(slow, noise=0.015):
    """Two stages of suites in which the points of `slow` take so much longer."""
    values = DICE.normal(0, noise, (2, len(POINTS), LAUNCHES))
    for place, share in slow.items():
        values[:, place] += math.log1p(share)
    return values


@pytest.mark.parametrize(
    ("slow", "least"),
    [({3: 0.08}, 29), (dict.fromkeys(range(6), 0.08), 29), (dict.fromkeys(range(24), 0.04), 25), ({3: 0.05}, 25)],
    ids=["one point 8 %", "a family 8 %", "all 4 %", "one point 5 %"],
)
def test_a_slowdown_is_found(slow, least):
    """In 30 suites, where a launch is worth 1.5 % of noise."""
    found = [gated(*shifted(slow)) for _ in range(30)]
    assert sum(each.verdict == REGRESSION for each in found) >= least
    names = {POINTS[place].name for place in slow}
    for each in found:
        assert {row.name for row in each.points if row.verdict == REGRESSION} <= names


def test_a_gain_is_found():
    found = gated(*shifted(dict.fromkeys(range(24), -0.1)))
    assert found.verdict == IMPROVEMENT
    assert {row.verdict for row in found.families} == {IMPROVEMENT}


def test_confirmation_holds_for_all_candidates_together():
    """The one chance in a hundred is that of any of them, not of each."""
    suites, candidates = 500, 12
    first = shifted(dict.fromkeys(range(24), 0.1))[0][:candidates]
    screen = screened(suite(first, POINTS[:candidates]), MACHINE)
    assert len(screen.candidates) >= candidates
    alarms = 0
    for values in DICE.normal(0, 0.05, (suites, candidates, LAUNCHES)):
        alarms += any(confirmed(screen.candidates, screened(suite(values, POINTS[:candidates]), MACHINE)).values())
    assert alarms <= most(suites, LIMITS.confirm)


def test_the_detectable_effect_is_detected():
    """Nine times in ten, as printed: a point alone, slower by what its own row says could have been seen; also where
    there were more launches to find candidates than to confirm them."""
    for screening in (LAUNCHES, 2 * LAUNCHES):
        seen = np.median([row.detectable for row in gated(*uneven({}, screening)).points])
        found = [gated(*uneven({5: seen}, screening)) for _ in range(60)]
        caught = sum(row.verdict == REGRESSION for each in found for row in each.points if row.name == POINTS[5].name)
        assert binom.ppf(0.01, 60, LIMITS.power) <= caught


def uneven(slow, screening):
    """As shifted(), with noise that is larger than the smallest effect, and so many launches of the first stage."""
    stages = DICE.normal(0, 0.06, (len(POINTS), screening)), DICE.normal(0, 0.06, (len(POINTS), LAUNCHES))
    for values in stages:
        for place, share in slow.items():
            values[place] += math.log1p(share)
    return stages


def test_what_fresh_launches_do_not_show_is_no_change():
    first, again = shifted({3: 0.08}), shifted({})
    found = gated(first[0], again[0])
    (row,) = [row for row in found.points if row.name == POINTS[3].name]
    assert found.verdict == INCONCLUSIVE and row.verdict == INCONCLUSIVE
    assert "slower at first; not confirmed" in row.note and "12 fresh launches" in row.note


def test_a_change_that_its_witness_shares_is_the_machines():
    values = shifted({3: 0.08})
    found = gated(*values, beside=values[0])
    (row,) = [row for row in found.points if row.name == POINTS[3].name]
    assert (row.verdict, found.verdict) == (CONTAMINATED, CONTAMINATED)


def test_controls_that_alarm_say_so():
    """Whatever makes base slower than itself makes candidates slower: nothing is confirmed."""
    values = shifted({3: 0.1, 21: 0.1, 22: 0.1, 23: 0.1})[0]
    screen, fresh = screened(suite(shifted({3: 0.1})[0]), MACHINE), screened(suite(values[3:4], POINTS[3:4]), MACHINE)
    sure = confirmed(screen.candidates, fresh)
    assert sure[POINTS[3].name]
    course = Course(screen, fresh, sure, screened(suite(values[21:], POINTS[21:]), MACHINE), LAUNCHES)
    found = whole(course, "a", "b", "here", "2026-01-02", (), ())
    assert found.verdict == CONTAMINATED and "seems to have changed at 3 points" in " ".join(found.notes)
    calm = screened(suite(shifted({})[0][21:], POINTS[21:]), MACHINE)
    assert whole(replace(course, controls=calm), "a", "b", "here", "2026-01-02", (), ()).verdict == REGRESSION


def test_a_control_that_fails_is_told():
    wrong = Duel(
        POINTS[0], {}, {}, (math.nan, math.nan), 0.0, 0.0, math.nan, 0.0, fault="failed in 1 of 12 launches: x"
    )
    screen, fresh = (screened(suite(values), MACHINE) for values in shifted({3: 0.1}))
    course = Course(screen, fresh, confirmed(screen.candidates, fresh), screened([wrong], MACHINE), LAUNCHES)
    found = whole(course, "a", "b", "here", "2026-01-02", (), ())
    assert found.missing == (f"{POINTS[0].name}: failed in 1 of 12 launches: x",)


def test_what_fails_in_fresh_launches_is_told():
    """Though the screening had nothing against it; its family is then another, and its figures are not quoted."""
    points = [replace(POINTS[0], shape=replace(POINTS[0].shape, context=context)) for context in (512, 1024, 2048)]
    first, again = shifted(dict.fromkeys(range(3), 0.1))
    screen = screened(suite(first[:3], points), MACHINE)
    wrong = Duel(
        points[0], {}, {}, (math.nan, math.nan), 0.0, 0.0, math.nan, 0.0, fault="failed in 1 of 12 launches: x"
    )
    fresh = screened([wrong, *suite(again[1:3], points[1:])], MACHINE)
    course = Course(screen, fresh, confirmed(screen.candidates, fresh), None, LAUNCHES)
    found = whole(course, "a", "b", "here", "2026-01-02", (), ())
    words = {row.name: row.verdict for row in found.points}
    assert words == {points[0].name: NOT_COMPARABLE} | dict.fromkeys((p.name for p in points[1:]), REGRESSION)
    assert found.missing == (f"{points[0].name}: failed in 1 of 12 launches: x",)
    (family,) = found.families
    assert family.verdict == INCONCLUSIVE and family.note.endswith("not confirmed by fresh launches")


def test_the_smallest_effect_is_a_share_of_bases_time_both_ways():
    """Head takes 2.95 % less: 3 % more of its own time."""
    for share, word in ((-0.0295, {EQUIVALENT}), (-0.0305, {IMPROVEMENT})):
        found = gated(*shifted({3: share}, noise=1e-4))
        assert {row.verdict for row in found.points if row.name == POINTS[3].name} == word


def test_calm_suites_are_the_same():
    found = gated(*shifted({}, noise=0.005))
    assert found.verdict == EQUIVALENT
    assert {row.verdict for row in (*found.points, *found.families)} == {EQUIVALENT}


def test_noisy_suites_are_not_clear():
    found = gated(*shifted({}, noise=0.2))
    assert found.verdict == INCONCLUSIVE
    assert min(row.detectable for row in found.points) > 0.1


def test_failed_and_disturbed_points_are_told():
    duels = suite(shifted({}, 0.005)[0])
    broken = Duel(
        POINTS[0], {}, {}, (math.nan, math.nan), 0.0, 0.0, math.nan, 0.0, fault="failed in 1 of 12 launches: x"
    )
    stormy = Duel(POINTS[1], {0: 0.0}, {0: 0.0}, (1.0, 1.0), 1e6, 1e6, 0.1, 0.9, few="90% of its pairs were disturbed")
    screen = screened([broken, stormy, *duels[2:]], MACHINE)
    found = whole(
        Course(screen, None, {}, None, LAUNCHES), "a", "b", "here", "2026-01-02", ("gone: only base has it",), ()
    )
    words = {row.name: row.verdict for row in found.points}
    assert words[POINTS[0].name] == NOT_COMPARABLE and words[POINTS[1].name] == INCONCLUSIVE
    assert found.verdict == INCONCLUSIVE
    assert len(found.missing) == 3 and found.missing[0].startswith("gone")


@pytest.mark.parametrize(
    ("share", "rest", "whole_of_it"),
    [(0.0, EQUIVALENT, INCONCLUSIVE), (-0.1, IMPROVEMENT, INCONCLUSIVE), (0.1, REGRESSION, REGRESSION)],
)
def test_what_head_lacks_is_not_fine(share, rest, whole_of_it):
    """A kernel that vanished is no improvement, however the others do."""
    first, again = shifted(dict.fromkeys(range(len(POINTS)), share), 0.005)
    screen, fresh = screened(suite(first), MACHINE), screened(suite(again), MACHINE)
    course = Course(screen, fresh, confirmed(screen.candidates, fresh), None, LAUNCHES)
    nothing = Course(screened([], MACHINE), None, {}, None, LAUNCHES)
    for missing, word in ((), rest), (("gone: only base has this kernel",), whole_of_it):
        assert whole(course, "a", "b", "here", "2026-01-02", missing, ()).verdict == word
    assert whole(nothing, "a", "b", "here", "2026-01-02", ("gone",), ()).verdict == INCONCLUSIVE


def test_nothing_to_measure_is_the_same():
    course = Course(screened([], MACHINE), None, {}, None, LAUNCHES)
    found = whole(course, "a", "b", "here", "2026-01-02", (), ["2 points not measured"])
    assert found.verdict == EQUIVALENT and found.notes == ("2 points not measured",)


def test_a_launch_that_half_of_a_family_has_is_not_the_familys():
    assert of_family([{0: 1.0, 1: 2.0}, {0: 3.0}]) == {0: 2.0}
    assert of_family([{0: 1.0, 1: 2.0}, {0: 3.0}, {0: 8.0, 1: 4.0}]) == {0: 3.0, 1: 3.0}


def test_few_launches_decide_nothing():
    found = gated(*shifted(dict.fromkeys(range(24), 0.3))[:, :, :4])
    assert found.verdict == INCONCLUSIVE
    assert {row.detectable for row in found.points} == {None}
