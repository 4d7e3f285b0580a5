"""Time against context: planted lines, and scipy's own fit; and rates against threads, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import curve_fit

from kvbench.analysis.limits.frames import points
from kvbench.analysis.measured.scaling import SATURATION, saturation, scaling
from tests.made_run import DECODE, MACHINE, MIB, READ, STORE, failed, probe, visit

TOKEN = 4096  # bytes
CONTEXTS = (512, 1024, 4096, 32768)


def at(context, point=DECODE, capacity=None):
    return replace(point, shape=replace(point.shape, context=context, capacity=capacity or context))


def visited(
    launch, context, seconds, point=DECODE, token=TOKEN, beside=0, far=256 * MIB, capacity=None
):
    """A pass of so many seconds, over `beside` bytes and those of the tokens; slices enough to walk
    `far`.
    """
    moved = beside + token * context
    layers = -(-far // moved)
    rates = {"point": [moved / seconds / 1e9]}
    return visit(launch, rates, at(context, point, capacity), walked=moved * layers, layers=layers)


def straight(fixed, slope, launch=0, contexts=CONTEXTS, **facts):
    return [visited(launch, context, fixed + slope * context, **facts) for context in contexts]


def scaling_of(records):
    return scaling(records, points(records, MACHINE))


def row_of(records):
    (row,) = scaling_of(records).to_dict("records")
    return row


def test_a_straight_line():
    """20 µs, and 0.4 µs for each token of 4096 bytes: 10.24 GB/s."""
    row = row_of(straight(20e-6, 0.4e-6))
    assert (
        row["fixed_seconds"]
        == row["fixed_seconds_low"]
        == row["fixed_seconds_high"]
        == pytest.approx(20e-6)
    )
    assert row["token_seconds"] == row["token_seconds_high"] == pytest.approx(0.4e-6)
    assert row["gbps"] == pytest.approx(10.24) and row["misfit"] == pytest.approx(0, abs=1e-9)
    assert (row["contexts"], row["context_low"], row["context_high"], row["launches"]) == (
        4,
        512,
        32768,
        1,
    )
    assert (row["op"], row["layout"], row["kernel"], row["threads"]) == (
        "decode",
        "head",
        DECODE.kernel,
        2,
    )
    assert not {"name", "context", "capacity"} & set(row)


def test_lines_of_launches():
    """Nine lines, each exact: medians, and intervals that leave out one at each end; a rate is from
    the slope.
    """
    draw = np.random.default_rng(5)
    fixed, token = draw.uniform(1e-5, 9e-5, 9), draw.uniform(2e-7, 6e-7, 9)
    records = [r for n in range(9) for r in straight(fixed[n], token[n], n)]
    row, fixes, tokens = row_of(records[::-1]), np.sort(fixed), np.sort(token)

    def three(name):
        return row[name], row[f"{name}_low"], row[f"{name}_high"]

    assert three("fixed_seconds") == pytest.approx((fixes[4], fixes[1], fixes[7]))
    assert three("token_seconds") == pytest.approx((tokens[4], tokens[1], tokens[7]))
    assert three("gbps") == pytest.approx(tuple(TOKEN / 1e9 / tokens[[4, 7, 1]]))
    times = np.array([np.median(fixed + token * context) for context in CONTEXTS])
    line = fixes[4] + tokens[4] * np.array(CONTEXTS)
    assert row["misfit"] == pytest.approx(np.abs(line / times - 1).max())
    assert row["launches"] == 9


def test_long_contexts_do_not_drown_short_ones():
    """As scipy fits a line through their logarithms."""
    times = np.array([30e-6, 61e-6, 190e-6, 1.6e-3])
    row = row_of(
        [visited(0, context, seconds) for context, seconds in zip(CONTEXTS, times, strict=True)]
    )
    begun = np.polyfit(CONTEXTS, times * 1e6, 1, w=1 / times)

    def line(contexts, slope, intercept):
        return np.log(slope * contexts + intercept)

    (slope, intercept), _ = curve_fit(line, np.array(CONTEXTS, float), np.log(times * 1e6), begun)
    slope, intercept = slope / 1e6, intercept / 1e6
    assert (row["token_seconds"], row["fixed_seconds"]) == pytest.approx(
        (slope, intercept), rel=1e-5
    )
    assert row["misfit"] == pytest.approx(
        np.abs((intercept + slope * np.array(CONTEXTS)) / times - 1).max()
    )


def test_series_differ_in_anything_but_the_context():
    others = [
        replace(DECODE, cpus=(0,)),
        replace(DECODE, layout="position"),
        replace(DECODE, residency="evicted"),
    ]
    records = [
        r
        for n, point in enumerate((DECODE, *others))
        for r in straight(n * 1e-6, 1e-7, point=point)
    ]
    assert sorted(scaling_of(records)["fixed_seconds"]) == pytest.approx(
        [0, 1e-6, 2e-6, 3e-6], abs=1e-12
    )
    roomy = straight(20e-6, 0.4e-6, contexts=(512, 1024)) + straight(
        20e-6, 0.4e-6, contexts=(2048,), capacity=65536
    )
    assert row_of(roomy)["contexts"] == 3


def test_a_launch_that_lacks_contexts():
    """With three of them it still has a line, with two it has not."""
    records = [
        *straight(1e-5, 1e-7, 0),
        *straight(2e-5, 2e-7, 1, CONTEXTS[1:]),
        *straight(9e-5, 9e-7, 2, CONTEXTS[2:]),
    ]
    row = row_of([*records, failed(2, at(512))])
    assert (row["launches"], row["fixed_seconds"], row["contexts"]) == (2, pytest.approx(1.5e-5), 4)


def test_time_that_does_not_grow_has_no_rate():
    row = row_of(straight(5e-3, -1e-9))
    assert row["token_seconds"] == pytest.approx(-1e-9)
    assert np.isnan([row["gbps"], row["gbps_low"], row["gbps_high"]]).all()


@pytest.mark.parametrize(
    "records",
    [
        [],
        [probe(0, 20.0, READ)],
        [failed(0)],
        straight(1e-5, 1e-7, contexts=CONTEXTS[:2]),
        straight(1e-5, 1e-7, far=MIB),  # the short ones lie in caches
        straight(1e-5, 1e-7, token=0, beside=16384),  # an append
        [visited(0, c, 1e-4, token=0, beside=TOKEN * min(c, 1024)) for c in CONTEXTS],  # a window
    ],
)
def test_what_has_no_line(records):
    found = scaling_of(records)
    assert found.empty and {"fixed_seconds", "gbps", "kernel", "misfit"} <= set(found.columns)


# ---- threads -------------------------------------------------------------------------------------


def on(cpus, point=DECODE):
    return replace(point, cpus=cpus)


def series(rates, point=DECODE):
    """`rates`: GB/s by CPUs."""
    return [
        visit(0, {"point": [rate], "twin": [2 * rate]}, on(cpus, point))
        for cpus, rate in rates.items()
    ]


def table(records):
    return saturation(points(records, MACHINE))


def test_fractions_best_and_knee():
    """19 of 20 GB/s are 95 %: three threads are enough, though four are faster and two too few."""
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
    """Other layouts, contexts and ops are series of their own; a single number of threads is
    none.
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
