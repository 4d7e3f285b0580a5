"""Planted scatter is found with any number of launches, and decides the grade."""

import math

import numpy as np
import pytest

from kvbench.analysis.answers.trust import Because, between, deviation, noise
from kvbench.analysis.means.findings import findings
from tests.analysis.answers.drawn import agreeing, kept
from tests.made_run import DECODE, MACHINE, RUN, failed, visit


@pytest.mark.parametrize("count", [2, 5, 7, 20])
def test_scatter_does_not_depend_on_how_many_launches_there_are(count):
    rng = np.random.default_rng(0)
    found = [deviation(rng.normal(0, 0.08, count)) for _ in range(4000)]
    assert np.mean(found) == pytest.approx(0.08, rel=0.03)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_variance_between_visits(share):
    """Twelve samples in each of seven visits, as in runs."""
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        visits = rng.normal(0, math.sqrt(share), 7)
        found.append(between([each + rng.normal(0, math.sqrt(1 - share), 12) for each in visits]))
    assert np.median(found) == pytest.approx(share, abs=0.06)


def test_too_few_values_have_no_share():
    assert between([np.array([1.0])]) is None
    assert between([np.array([1.0]), np.array([2.0])]) is None


@pytest.mark.parametrize("launches", [7, 14])
def test_differences_below_the_noise_are_of_no_matter(launches):
    """95 % of the differences of equal points are smaller, even if some points scatter more than
    others.
    """
    rng = np.random.default_rng(0)
    scatters = rng.uniform(0.05, 0.11, 60)
    draws = [np.exp(rng.normal(0, each, (2, 200, launches))) for each in scatters]
    one, other = np.median(draws, axis=-1).swapaxes(0, 1)
    most = noise(float(np.sqrt(np.mean(scatters**2))), launches)
    below = np.exp(np.abs(np.log(one / other))) - 1 <= most
    assert below.mean() == pytest.approx(0.95, abs=0.02)


# ---- of a run ------------------------------------------------------------------------------------


def trust(scatter, launches=7, *more):
    """Launches at the middles of equal parts of a normal distribution."""
    rng = np.random.default_rng(1)
    rates = 15 * np.exp(scatter * rng.normal(size=launches))
    rates *= 15 / np.median(rates)
    records = [visit(n, {"point": [rate] * 3}) for n, rate in enumerate(rates)]
    return findings(RUN, [*records, *more], MACHINE).answers.trust


@pytest.mark.parametrize(
    ("scatter", "grade", "because"),
    [
        (0.02, "good", Because.NOTHING),
        (0.08, "fair", Because.SCATTER),
        (0.40, "poor", Because.SCATTER),
    ],
)
def test_scatter_makes_the_grade(scatter, grade, because):
    found = trust(scatter)
    assert (found.grade, found.because) == (grade, because)
    assert found.most == found.scatter  # of one point
    assert found.between == pytest.approx(1.0)  # the samples of a visit are alike
    assert (found.launches, found.typical, found.fewest, found.points) == (7, 7, 7, 1)


def test_few_launches_are_poor_for_scatter_is_hardly_known():
    found = trust(0.01, 4)
    assert (found.grade, found.because) == ("poor", Because.LAUNCHES) and found.scatter < 0.05
    assert trust(0.01, 1).scatter is None and trust(0.01, 1).noise is None


def test_a_point_that_failed_is_poor():
    found = trust(0.01, 7, failed(7, DECODE))
    assert (found.grade, found.because, found.failed) == ("poor", Because.FAILED, 1)


# ---- launches of kept runs, drawn anew -----------------------------------------------------------


def test_the_grade_is_the_hosts_and_not_how_often_was_looked():
    """Three hosts: at 7, 14 and 20 launches the grade is the same in at least four of five
    draws.
    """
    for name, run in kept().items():
        assert agreeing(run, draws=10) >= 0.8, name
