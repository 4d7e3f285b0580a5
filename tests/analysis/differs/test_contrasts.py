"""Points that were timed in the same rounds, from made-up records. The ratios are planted, or
computed with numpy.
"""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.differs.contrasts import contrasts
from kvbench.analysis.limits.frames import points
from kvbench.analysis.looks import outside
from kvbench.model import Contrast
from tests.made_run import DECODE, MACHINE, MIB, READ, beside, failed, probe, visit

HEAD, POSITION, PAGED = (replace(DECODE, layout=layout) for layout in ("head", "position", "paged"))


def own(*of, launches=6, **facts):
    """A visit of each point alone, in each launch."""
    return [visit(n, {"point": [9.0]}, point, **facts) for point in of for n in range(launches)]


def rows_of(records, most=0):
    return contrasts(records, points(records, MACHINE), most)


def row_of(ratios, pair=(HEAD, POSITION), factor="layout", most=0, apart=()):
    """The row of two points. `ratios`: for each launch, the second point's time over the first's,
    in three rounds of which the middle one counts. What a launch does to both cancels.
    """
    found = list(apart) or own(*pair)
    for n, ratio in enumerate(ratios):
        each = 0.01 * (1 + n)
        second = [each * ratio * times for times in (0.9, 1.0, 1.3)]
        found.append(beside(n, pair, ([each] * 3, second), factor))
    (row,) = rows_of(found, most)
    return row


# ---- one pair ------------------------------------------------------------------------------------


def test_a_pair():
    row = row_of([1.25] * 6)
    assert (row["factor"], row["base"], row["other"]) == ("layout", "head", "position")
    assert (row["base_name"], row["other_name"]) == (HEAD.name, POSITION.name)
    assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == pytest.approx((0.8, 0.8, 0.8))
    assert (row["launches"], row["rounds"], row["confidence"]) == (6, 18, 1 - 2**-5)
    assert row["chance"] == pytest.approx(2 * 2**-6)
    assert [row[name] for name in ("op", "dtype", "layout", "variant")] == [
        "decode", "f16", "head", "flash",
    ]  # fmt: skip
    assert (row["context"], row["batch"], row["threads"]) == (1024, 1, 2)
    assert (row["residency"], row["regime"]) == ("rotate", "DRAM")
    assert row["visit"] == Contrast("layout", (HEAD, POSITION)).name


def test_the_ratio_and_its_interval_are_of_launches():
    """The median of the means of every two logarithms. Of 45 means five are left out at each end,
    by Wilcoxon's tables.
    """
    logs = np.random.default_rng(4).normal(0.1, 0.2, 9)
    means = np.sort([(a + b) / 2 for place, a in enumerate(logs) for b in logs[place:]])
    row = row_of(np.exp(-logs))
    assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == pytest.approx(
        np.exp((means[22], means[5], means[39]))
    )
    # ways to sum to 0, 1, ... 5
    assert row["confidence"] == pytest.approx(1 - 2 * 10 / 2**9)


def test_visits_apart_say_nothing():
    assert rows_of(own(HEAD, POSITION, PAGED)) == []
    assert row_of([1.1] * 6)["ratio"] == pytest.approx(1 / 1.1)  # alone they are equal


def test_only_rounds_of_both_count():
    pair = (HEAD, POSITION)
    found = own(*pair) + [beside(n, pair, ([0.01] * 3, [0.016] * n)) for n in range(3)]
    found.append(replace(beside(3, pair, ([0.01], [0.05])), error="it failed"))
    (row,) = rows_of(found)
    assert (row["launches"], row["rounds"], row["ratio"]) == (2, 3, pytest.approx(0.625))


def test_too_few_launches_have_no_chance():
    row = row_of([1.25] * 5)
    assert np.isnan(row["chance"]) and row["ratio"] == pytest.approx(0.8)


def test_a_set_is_every_pair_of_it():
    every = (HEAD, POSITION, PAGED)
    found = own(*every) + [beside(n, every, ([0.010], [0.012], [0.015])) for n in range(6)]
    ratios = {(row["base"], row["other"]): row["ratio"] for row in rows_of(found)}
    assert ratios == {
        ("head", "position"): pytest.approx(10 / 12),
        ("head", "paged"): pytest.approx(10 / 15),
        ("paged", "position"): pytest.approx(15 / 12),
    }


def test_a_point_without_a_number_is_in_no_pair():
    every = (HEAD, POSITION, PAGED)
    found = own(HEAD, POSITION) + [failed(0, PAGED)]
    found += [beside(n, every, ([0.010], [0.012], [0.015])) for n in range(6)]
    assert len(rows_of(found)) == 1


@pytest.mark.parametrize("records", [[], [probe(0, 20.0, READ)], [failed(0)], own(HEAD)])
def test_nothing_to_compare(records):
    assert rows_of(records) == []


def test_where_launches_are_added_the_interval_and_the_chance_are_wider():
    """By the bounds of all looks together."""
    ratios = np.exp(np.random.default_rng(5).normal(0.3, 0.2, 10))
    once, many = row_of(ratios), row_of(ratios, most=14)
    assert outside(10, 14) < outside(10) and once["chance"] < many["chance"] < 0.05
    assert many["ratio_low"] < once["ratio_low"] and once["ratio_high"] < many["ratio_high"]


# ---- which is the base ---------------------------------------------------------------------------


def base(factor="dtype", **mebibytes):
    of = tuple(replace(DECODE, dtype=dtype) for dtype in mebibytes)
    apart = [
        r for p, mib in zip(of, mebibytes.values(), strict=True) for r in own(p, walked=mib * MIB)
    ]
    return row_of([1.0] * 6, of, "dtype", apart=apart)["base"]


def test_the_base_moves_more_bytes():
    assert base(f16=256, f32=512) == "f32"


def test_as_many_bytes_but_for_a_page_table_are_as_many():
    assert base(f16=256, f32=258) == "f16" and base(f16=256, f32=259) == "f32"
