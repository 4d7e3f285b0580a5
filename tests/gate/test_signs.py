"""Signed ranks against scipy's own test, brute force, and draws."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, nct, t, wilcoxon

from kvbench.analysis.paired.signs import middle

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 12, 17, 24])
def test_chances_are_those_of_scipy(count):
    for shift in (-1.0, 0.0, 0.4, 3.0):
        values = RNG.normal(shift, 1, count)
        found = middle(values)
        for way, chance in (("greater", found.slower), ("less", found.faster)):
            assert chance == pytest.approx(wilcoxon(values, alternative=way, method="exact").pvalue, abs=1e-12)


def test_chances_are_those_of_all_signs():
    """Every choice of signs is as likely as any other: that is what the test means."""
    sizes = RNG.uniform(0.1, 1, 7)
    every = [np.array(signs) * sizes for signs in itertools.product((-1, 1), repeat=7)]
    sums = np.array([np.abs(v).argsort().argsort()[v > 0].sum() + (v > 0).sum() for v in every])
    for values, own in zip(every, sums, strict=True):
        assert middle(values).slower == pytest.approx((sums >= own).mean())


def test_the_middle_is_that_of_all_means_of_two():
    values = RNG.normal(1, 1, 9)
    means = [(a + b) / 2 for i, a in enumerate(values) for b in values[i:]]
    assert middle(values).estimate == pytest.approx(np.median(means))


@pytest.mark.parametrize("count", [6, 8, 12, 24])
def test_intervals_hold_the_truth_as_often_as_they_say(count):
    values = RNG.laplace(0.3, 1, (4000, count))
    found = middle(values)
    held = ((found.low <= 0.3) & (found.high >= 0.3)).sum()
    assert held >= binom.ppf(0.001, 4000, 0.95)
    low, high = (np.array(each) for each in (found.low, found.high))
    inside = ((low <= found.estimate) & (found.estimate <= high)).all()
    assert inside


def test_few_launches_have_no_interval():
    found = middle(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert math.isnan(found.low) and math.isnan(found.high)
    assert found.slower == 1 / 32


def test_many_at_once_are_as_one_by_one():
    values = RNG.normal(size=(3, 4, 12))
    together = middle(values)
    for place in np.ndindex(3, 4):
        alone = middle(values[place])
        for many, one in zip(together[:5], alone[:5], strict=True):
            assert many[place] == pytest.approx(one)


def test_mirrored_is_the_other_side():
    values = RNG.normal(0.5, 1, 12)
    for one, other in zip(middle(values).mirrored()[:5], middle(-values)[:5], strict=True):
        assert one == pytest.approx(other)


@pytest.mark.parametrize(("count", "chance"), [(12, 0.01), (12, 0.00125), (24, 0.01)])
def test_what_is_detectable_is_detected_as_often_as_that(count, chance):
    sigma = 0.02
    widths = middle(RNG.normal(0, sigma, (4000, count)))
    typical = middle(np.sort(RNG.normal(0, sigma, count)))._replace(
        low=-np.median(widths.high - widths.low) / 2, high=np.median(widths.high - widths.low) / 2
    )
    seen = middle(RNG.normal(typical.detectable(chance, 0.9), sigma, (4000, count))).slower <= chance
    assert seen.mean() == pytest.approx(0.9, abs=0.02)


# Launches that a slowdown of 5 % takes to be seen nine times in ten, by their noise, were they normal and many: from
# ((z_chance + z_power) * noise / ln 1.05)^2 / .955, for one-sided chances of 8, 40 and 200 tests at 1 %.
PLANNED = [
    (1.25e-3, {0.05: 21, 0.08: 53}),
    (2.5e-4, {0.05: 25, 0.08: 64}),
    (5e-5, {0.05: 30, 0.08: 76}),
]


@pytest.mark.parametrize(("chance", "noise", "launches"), [(c, s, n) for c, row in PLANNED for s, n in row.items()])
def test_power_is_that_of_a_test_on_as_many(chance, noise, launches):
    """Student's with .955 of the launches. Of few launches that is less than what the formula promises."""
    values = RNG.normal(math.log(1.05), noise, (1500, launches))
    seen = (middle(values).slower <= chance).mean()
    worth = 0.955 * launches
    student = nct.sf(t.isf(chance, worth - 1), worth - 1, math.log(1.05) / noise * math.sqrt(worth))
    assert seen == pytest.approx(student, abs=0.05)
    if launches > 50:
        assert seen == pytest.approx(0.9, abs=0.05)
