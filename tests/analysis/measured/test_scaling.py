"""Rates over threads, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.limits.frames import points
from kvbench.analysis.measured.scaling import SATURATION, saturation
from tests.made_run import DECODE, MACHINE, STORE, failed, probe, visit


def on(cpus, point=DECODE):
    return replace(point, cpus=cpus)


def series(rates, point=DECODE):
    """The table for these `rates`: GB/s by CPUs."""
    return [
        visit(0, {"point": [rate], "twin": [2 * rate]}, on(cpus, point))
        for cpus, rate in rates.items()
    ]


def table(records):
    return saturation(points(records, MACHINE))


def test_fractions_best_and_knee():
    """19 of 20 GB/s are 95 %: three threads are enough, four are faster, two are too few."""
    found = table(
        series({(0, 1, 2, 3): 20.0, (0,): 6.0, (0, 1): 12.0, (0, 1, 2): 19.0}) + [probe(0, 40.0)]
    )
    assert list(found["threads"]) == [1, 2, 3, 4]
    assert list(found["fraction_of_best"]) == pytest.approx([0.3, 0.6, 0.95, 1.0])
    assert list(found["best"]) == [False, False, False, True]
    assert list(found["knee"]) == [False, False, True, False]
    assert list(found["twin_gbps"]) == pytest.approx([12, 24, 38, 40])
    assert set(found["series"]) == {"head f16"} and found["name"].nunique() == 4
    assert found["ceiling_gbps"][1] == pytest.approx(40) and np.isnan(found["ceiling_gbps"][0])


def test_only_what_differs_in_threads_alone_is_a_series():
    """Other layouts, contexts and ops are series of their own. A single number of threads is not a
    series.
    """
    other = replace(DECODE, layout="position")
    records = series({(0,): 5.0, (0, 1): 10.0}) + series({(0,): 4.0, (0, 1): 4.2}, other)
    records += series({(0,): 1.0, (1,): 2.0}, replace(DECODE, pad=64)) + series(
        {(0, 1): 3.0}, STORE
    )
    records += [
        failed(0, on((0, 1), replace(DECODE, dtype="i8"))),
        *series({(0,): 1.0}, replace(DECODE, dtype="i8")),
    ]
    found = table(records)
    assert list(found["series"]) == ["decode head f16"] * 2 + ["decode position f16"] * 2
    assert list(found["knee"]) == [False, True, True, False]


@pytest.mark.parametrize("records", [[], [probe(0, 20.0)], [failed(0)], series({(0,): 5.0})])
def test_nothing_to_compare_is_an_empty_table(records):
    found = table(records)
    assert found.empty and list(found.columns) == list(SATURATION)
