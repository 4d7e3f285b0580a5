"""Values of launches: intervals of order statistics against every way in which coins can fall, and how far they lie apart
against numpy's quartiles."""

from itertools import product

import numpy as np
import pytest

from kvbench.analysis.launches import held, interval, outliers, steady


def chance(count, outside):
    """That the true median lies within the values that are left: each value is on either side of it alike."""
    inside = sum(outside < sum(tosses) < count - outside for tosses in product((0, 1), repeat=count))
    return inside / 2**count


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("count", range(1, 15))
def test_the_narrowest_pair_that_covers(count, coverage):
    """Values 0, 1, 2, ...: the lower end says how many were left out."""
    low, high = interval([float(n) for n in reversed(range(count))], coverage)
    assert low + high == count - 1
    if low:
        assert chance(count, int(low)) >= coverage
    assert count < 3 or chance(count, int(low) + 1) < coverage
    assert held(count, coverage) == pytest.approx(chance(count, int(low)))


def test_one_value_holds_nothing():
    assert interval([3.0], 0.95) == (3.0, 3.0)
    assert held(1, 0.95) == 0


def test_many_values():
    """About 1.96 deviations of 2000 tosses around their mean."""
    low, high = interval(range(2000), 0.95)
    assert abs(low - (1000 - 1.96 * 2000**0.5 / 2)) < 2 and high == 1999 - low


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([10.0], False),
        ([10.0, 10.0], True),
        ([10.0, 14.0], True),  # 4 of 12, no more than a third
        ([10.0, 14.1], False),
        ([5.0, 10.0, 11.0, 12.0, 13.0, 50.0], True),  # the middle half is 10 to 13
        ([5.0, 8.0, 11.0, 12.0, 13.0, 50.0], False),
    ],
)
def test_steady(values, said):
    assert steady(values) is said
    assert steady(values[::-1]) is said


@pytest.mark.parametrize("count", [2, 3, 5, 10, 31])
def test_outliers(count):
    draw = np.random.default_rng(count)
    for _ in range(50):
        values = draw.standard_cauchy(count)
        low, high = np.quantile(values, (0.25, 0.75))
        fence = 3 * (high - low)
        expected = np.sum((values < low - fence) | (values > high + fence))
        assert outliers(values.tolist()) == expected


def test_one_value_is_no_outlier():
    assert outliers([3.0]) == outliers([]) == 0
    assert outliers([1.0, 1.1, 1.2, 1.3, 9.0]) == 1
