"""The judge against scipy's own tests, brute force, and thousands of made-up suites."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, false_discovery_control, mannwhitneyu, wilcoxon

from kvbench.analysis.judge import (
    FASTER,
    LIMITS,
    SLOWER,
    Difference,
    Question,
    any_error,
    apart,
    fewest,
    paired,
    together,
    whole,
)
from kvbench.analysis.ranks import discoveries
from kvbench.model import Judged
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    IMPROVEMENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
)
from kvbench.report.words.compared import ADVISED
from tests.analysis.noises import EXCHANGEABLE, PAIRED, most

DRAW = np.random.default_rng(7)
COUNTS = [(1,), (5,), (12,), (24,), (1, 1), (3, 4), (10, 7), (12, 30)]


def judged(*sides):
    return paired(*sides) if len(sides) == 1 else apart(*sides)


def normal(counts, *shape, shift=0.0):
    """Normal launches; the last side is slower by the shift."""
    sides = [DRAW.normal(0, 1, (*shape, count)) for count in counts]
    return [*sides[:-1], sides[-1] + shift]


# ---- the tests and their intervals ---------------------------------------------------------------


@pytest.mark.parametrize("counts", COUNTS)
def test_chances_are_scipys(counts):
    for shift in (-1.0, 0.0, 0.4, 3.0):
        sides = normal(counts, shift=shift)
        found = judged(*sides)
        for way, chance in (("greater", found.slower), ("less", found.faster)):
            test = wilcoxon if len(sides) == 1 else mannwhitneyu
            assert chance == pytest.approx(
                test(*sides[::-1], alternative=way, method="exact").pvalue, abs=1e-12
            )


def test_ties_speak_for_neither_side():
    """However ties are broken, the chance is no larger. Compared with all 126 ways to split nine
    values into five and four.
    """

    def above(values, head):
        return sum((h > b) + (h == b) / 2 for h in values[head] for b in np.delete(values, head))

    for _ in range(30):
        values = DRAW.integers(0, 6, 9).astype(float)
        counts = [above(values, list(head)) for head in itertools.combinations(range(9), 4)]
        exact = np.mean(np.array(counts) >= above(values, [5, 6, 7, 8]))
        assert apart(values[:5], values[5:]).slower >= exact - 1e-12
    for alike in (apart(np.ones(8), np.ones(8)), paired(np.zeros(8))):
        assert (alike.slower, alike.faster, alike.estimate) == (1, 1, 0)


def test_the_estimate_is_that_of_hodges_and_lehmann():
    base, head = DRAW.lognormal(size=8), DRAW.lognormal(size=10)
    assert apart(base, head).estimate == pytest.approx(
        np.median([h - b for h in head for b in base])
    )
    means = [(a + b) / 2 for place, a in enumerate(base) for b in base[place:]]
    assert paired(base).estimate == pytest.approx(np.median(means))


@pytest.mark.parametrize("counts", [(9,), (8, 10)])
def test_the_interval_holds_what_the_test_moved_there_does_not_reject(counts):
    *base, head = normal(counts)
    found = judged(*base, head)

    def rejected(value):
        moved = judged(*base, head - value)
        return min(moved.slower, moved.faster) <= 0.025

    for end, inward in ((found.low, 1e-9), (found.high, -1e-9)):
        assert rejected(end - inward) and not rejected(end + inward)


@pytest.mark.parametrize("counts", [(6,), (8,), (24,), (5, 5), (10, 10)])
def test_intervals_hold_the_truth_as_often_as_they_say(counts):
    *base, head = (DRAW.laplace(0.0, 1, (4000, count)) for count in counts)
    found = judged(*base, head + 0.3)
    assert ((found.low <= 0.3) & (found.high >= 0.3)).sum() >= binom.ppf(0.001, 4000, 0.95)
    assert ((found.low <= found.estimate) & (found.estimate <= found.high)).all()


def test_few_launches_have_no_interval():
    """Three and three: the least likely of 20 orders has a chance above 2.5 %. Five signs: one of
    32 patterns.
    """
    for found, chance in (
        (apart(np.arange(3.0), np.arange(3.0) + 3), 1 / 20),
        (paired(np.arange(1.0, 6)), 1 / 32),
    ):
        assert found.slower == pytest.approx(chance) and found.estimate == 3
        assert not found.enclosed and math.isnan(found.high) and math.isnan(found.detectable(0.05))
        assert not found.way and not found.same
    four = apart(np.arange(4.0), np.arange(4.0) + 10)
    assert (four.slower, four.low, four.high, four.way) == (pytest.approx(1 / 70), 7, 13, SLOWER)


# ---- suites without a change ---------------------------------------------------------------------


def quiet(found):
    for chances in (found.slower, found.faster):
        alarms = (false_discovery_control(chances, axis=1).min(axis=1) <= LIMITS.rate).sum()
        assert alarms <= most(len(chances), LIMITS.rate)
        assert (chances <= 0.05).mean() <= 0.065
    assert ((found.low <= 0) & (found.high >= 0)).mean() >= 0.93


@pytest.mark.parametrize("launches", [(10, 10), (7, 10)])
@pytest.mark.parametrize("noise", EXCHANGEABLE)
def test_two_runs_of_one_build_rarely_have_any_significant_point(noise, launches):
    """In 1,000 suites of 40 points, before any other condition."""
    quiet(apart(*(noise((1000, 40, count)) for count in launches)))


@pytest.mark.parametrize("noise", PAIRED)
def test_pairs_of_one_build_rarely_have_any_significant_point(noise):
    quiet(paired(noise((1700, 24, 12))))


# ---- questions -----------------------------------------------------------------------------------


def asked(effect, smallest=0.03, noise=1e-3, launches=12, name="a"):
    values = math.log1p(effect) + noise * np.linspace(-1, 1, launches)
    return Question(name, "", paired(values), smallest)


@pytest.mark.parametrize(
    ("effect", "way"), [(0.0295, ""), (0.0305, SLOWER), (-0.0295, ""), (-0.0305, FASTER), (0.0, "")]
)
def test_the_smallest_effect_is_a_share_of_bases_time_both_ways(effect, way):
    """2.95 % less than base is 3 % more from head's side."""
    (found,) = together([asked(effect, noise=1e-4)])
    assert found.changed(LIMITS.rate) == way


@pytest.mark.parametrize(
    ("low", "high", "same"),
    [
        (-0.04, 0.04, True),
        (-0.06, 0.04, False),
        (-0.04, 0.06, False),
        (0.01, 0.049, True),
        (-0.049, -0.01, True),
        (-0.07, -0.06, False),
    ],
)
def test_the_same_is_within_five_per_cent_on_both_sides(low, high, same):
    found = Difference(
        math.log1p((low + high) / 2), math.log1p(low), math.log1p(high), 0.5, 0.5, (12,)
    )
    assert found.same is same


def test_questions_are_corrected_together():
    many = together([asked(0.1), *(asked(0.0) for _ in range(39))])
    assert many[0].q[SLOWER] == pytest.approx(40 / 2**12) and many[0].changed(LIMITS.rate) == SLOWER
    assert not together([asked(0.1, launches=8), *(asked(0.0) for _ in range(39))])[0].changed(
        LIMITS.rate
    )
    assert (
        discoveries([0.01, 0.04, 0.5]) == pytest.approx([0.03, 0.06, 0.5]) and discoveries([]) == []
    )
    for count in (1, 2, 7, 40):
        chances = np.round(DRAW.uniform(0, 1, count) ** 3, 2)  # some are equal, some 0
        assert discoveries(list(chances)) == pytest.approx(list(false_discovery_control(chances)))


def test_any_error_is_hochbergs():
    assert any_error({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "b": 0.04, "c": 0.04}
    )
    assert any_error({}) == {}


def test_a_row_says_what_was_found():
    (found,) = together([asked(0.1)])
    row = found.judged(REGRESSION, "", math.nan)
    assert (row.effect, row.p, row.q) == pytest.approx((0.1, 2**-12, 2**-12))
    assert row.low < 0.1 < row.high and row.detectable is None and row.launches == (12, 12)
    few = together([asked(0.1, launches=4)])[0].judged(INCONCLUSIVE, "", math.nan)
    assert few.low is None and few.note == ""


@pytest.mark.parametrize("questions", [1, 7, 42, 55, 1000])
def test_fewest_launches_that_can_show_one_change(questions):
    """Sides that do not overlap, among equal ones, tested and corrected by scipy."""

    def shown(count):
        apart_ = mannwhitneyu(
            range(count), range(-count, 0), alternative="greater", method="exact"
        ).pvalue
        return false_discovery_control([apart_, *[0.5] * (questions - 1)])[0] <= LIMITS.rate

    assert shown(fewest(questions)) and not shown(fewest(questions) - 1)


def test_advised_launches_find_one_slow_point_of_fifty():
    """A point that is 5 % slower, with a scatter of 2 %, is found nine times in ten, and no other
    point is.
    """
    draw, found, false = np.random.default_rng(3), 0, 0
    for _ in range(100):
        base, head = draw.normal(0, 0.02, (2, 50, ADVISED))
        head[0] += math.log(1.05)
        rows = together(
            [
                Question(str(n), "", apart(*each), LIMITS.point)
                for n, each in enumerate(zip(base, head))
            ]
        )
        slower = [row.changed(LIMITS.rate) == SLOWER for row in rows]
        found, false = found + slower[0], false + sum(slower[1:])
    assert found >= 85 and false <= 2


# ---- the whole -----------------------------------------------------------------------------------


def row(word, effect=0.0, name="a"):
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
    assert whole(list(map(row, points)), list(map(row, families))) == word
