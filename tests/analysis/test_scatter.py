"""How far values lie apart, against numpy's quartiles."""

import numpy as np
import pytest

from kvbench.analysis.scatter import outliers, steady


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
