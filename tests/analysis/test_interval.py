"""Intervals of order statistics, against every way in which coins can fall."""

from itertools import product

import pytest

from kvbench.analysis.interval import held, interval


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
