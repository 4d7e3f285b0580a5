"""Values over launches: intervals of order statistics against all patterns of coin tosses, and
their spread against numpy's quartiles.
"""

import math
from dataclasses import replace
from itertools import product
from statistics import median

import numpy as np
import pytest

from kvbench.analysis.limits.frames import points
from kvbench.analysis.measured.estimates import Estimate, outliers, steady
from kvbench.analysis.measured.rates import by_launch
from kvbench.analysis.measured.speeds import at_speed, speeds
from kvbench.analysis.measured.tails import tailed
from kvbench.intervals import held, interval
from kvbench.model import MANY, PACE, Sample, Tail
from tests.made_run import DECODE, MACHINE, traffic, visit


def chance(count, outside):
    """The chance that the true median lies within the remaining values, if each value lies on
    either side with equal chance.
    """
    inside = sum(
        outside < sum(tosses) < count - outside for tosses in product((0, 1), repeat=count)
    )
    return inside / 2**count


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("count", range(1, 15))
def test_the_narrowest_pair_that_covers(count, coverage):
    """Values 0, 1, 2, ...: the lower end equals the number of values that were left out."""
    low, high = interval([float(n) for n in reversed(range(count))], coverage)
    assert low + high == count - 1
    if low:
        assert chance(count, int(low)) >= coverage
    assert count < 3 or chance(count, int(low) + 1) < coverage
    assert held(count, coverage) == pytest.approx(chance(count, int(low)))


def test_ratios_of_seven_launches_leave_three_means_out_at_each_end():
    """By Wilcoxon's tables, seven pairs reach a sum of ranks of 2 with a one-sided chance of 2.5 %.
    The estimate is the median of the means.
    """
    values = [1.0, 1.1, 1.15, 1.2, 1.3, 1.5, 3.0]
    means = sorted(
        math.sqrt(one * other) for place, one in enumerate(values) for other in values[place:]
    )
    found = Estimate.of_ratios(values)
    middle = means[len(means) // 2 - 1 : len(means) // 2 + 1]  # of 28
    ends = (math.sqrt(middle[0] * middle[1]), means[3 - 1], means[-3])
    assert (found.median, found.low, found.high) == pytest.approx(ends)
    few = Estimate.of_ratios(values[:5])
    assert (few.low, few.high) == (1.0, 1.3)  # 31 of 32 would not be 95 %


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


@pytest.mark.parametrize(
    ("whole", "of"), [(0, "all"), (1, "all"), (2, "all"), (3, "launches"), (4, "launches")]
)
def test_a_minority_of_launches_says_no_p99(whole, of):
    """Some of four launches have enough passes, all of 9 ms; the others have half as many, of 1
    ms.
    """
    many, few = Tail.of([9e-3] * MANY), Tail.of([1e-3] * (MANY // 2))
    row = tailed([many] * whole + [few] * (4 - whole), "point")
    if of == "launches":
        assert row["point_p99"] == pytest.approx(9e-3) and "point_p99_low" in row
    else:
        assert "point_p99_low" not in row
        assert row["point_p99"] == pytest.approx(1e-3), "of the passes that all others have"


# ---- the cores' speed ----------------------------------------------------------------------------


def paced(launch, speed, rate=10.0, point=DECODE):
    """A visit in which the cores, and the point, run at this share of their best speed."""
    found = visit(launch, {"point": [rate * speed] * 3, "twin": [12.0 * speed] * 3}, point)
    pace = [Sample(PACE, n, 1, 1e-3 / speed, (), 0.0, 0, 0, sample_time=1e-3) for n in range(3)]
    return replace(
        found, samples=(*found.samples, *pace), traffic=found.traffic | {PACE: traffic(0.0, 1e8)}
    )


def test_speeds_are_shares_of_the_best_on_the_same_cores():
    other = replace(DECODE, cpus=(3,))
    records = [paced(0, 1.0), paced(1, 0.6), paced(0, 0.5, point=other), visit(2, {"point": [1.0]})]
    assert speeds(records) == [1.0, pytest.approx(0.6), 1.0, None]


@pytest.mark.parametrize(
    ("slow", "left"), [((), 6), ((1,), 5), ((1, 2, 5), 3), ((1, 2, 3, 5), 6), (range(6), 6)]
)
def test_slow_visits_are_set_aside_while_half_of_the_launches_are_left(slow, left):
    """Slow visits run at 60 %. Another point on the same cores shows the full speed."""
    records = [paced(n, 0.6 if n in slow else 1.0) for n in range(6)]
    fast = paced(0, 1.0, point=replace(DECODE, dtype="f32"))
    kept = at_speed([*records, fast])
    assert kept.count(fast) == 1 and len(kept) == left + 1
    assert by_launch([*records, fast])[DECODE.name].keys() == {
        record.launch for record in kept if record is not fast
    }
    (row,) = points([*records, fast], MACHINE)[lambda frame: frame["dtype"] == "f16"].to_dict(
        "records"
    )
    used = [10.0 * (0.6 if n in slow else 1.0) for n in range(6) if left == 6 or n not in slow]
    assert (row["slow"], row["set_aside"], row["launches"]) == (len(slow), 6 - left, left)
    assert row["gbps"] == pytest.approx(1 / median(1 / rate for rate in used))
    assert row["efficiency"] == pytest.approx(10 / 12)
    if slow:
        assert row["slow_speed"] == pytest.approx(0.6)
