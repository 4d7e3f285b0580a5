"""The tables of a run, from made-up records. Their numbers are computed in another way."""

import random
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest

from kvbench.analysis.limits.frames import disturbed, points, samples
from kvbench.analysis.measured.ceilings import NoCeiling
from kvbench.analysis.measured.columns import short_names
from kvbench.errors import BadArgument
from kvbench.model import Sample
from tests.made_run import DECODE, KIB, MACHINE, MIB, READ, STORE, failed, probe, visit

ALONE = {"point": [8.0], "twin": [10.0], "twin_ahead": [9.0], "core": [16.0]}


def row_of(records, machine=MACHINE, **asked):
    (row,) = points(records, machine, **asked).to_dict("records")
    return row


# ---- one point -----------------------------------------------------------------------------------


def test_one_launch_has_no_interval():
    """256 MiB in 16 slices: 16 MiB per pass at 8 GB/s."""
    row = row_of([visit(0, ALONE, flops=1e6, max_abs_err=1e-6)])
    assert (row["launches"], row["samples"], row["failed"], row["error"]) == (1, 1, 0, "")
    assert row["seconds"] == pytest.approx(16 * MIB / 8e9)
    assert row["gbps"] == row["gbps_low"] == row["gbps_high"] == pytest.approx(8)
    assert row["gflops"] == pytest.approx(1e6 * 8e9 / (16 * MIB) / 1e9)
    assert row["ai"] == pytest.approx(1e6 / (16 * MIB))
    assert np.isnan(row["spread"]) and np.isnan(row["efficiency_spread"]) and row["confidence"] == 0
    assert pd.isna(row["unstable"]) and pd.isna(row["outliers"])
    assert (row["bytes_issued"], row["bytes_line"], row["ai_issued"]) == (
        7,
        16 * MIB,
        pytest.approx(1e6 / 7),
    )
    assert (row["witness"], row["efficiency"]) == ("twin", pytest.approx(0.8))
    assert (row["core_gbps"], row["core_fraction"]) == (pytest.approx(16), pytest.approx(0.5))
    assert (row["slices"], row["slice_bytes"], row["footprint"]) == (16, 4096, 256 * MIB)
    assert (row["max_abs_err"], row["bound"], row["regime"]) == (1e-6, "not clear", "DRAM")


@pytest.mark.parametrize(
    ("launches", "outside", "holds"), [(6, 0, 1 - 2**-5), (9, 1, 1 - 20 / 512)]
)
def test_medians_of_launches_and_their_interval(launches, outside, holds):
    """Against numpy, with random rates: the median of each launch, then over launches; shares
    within each round.
    """
    draw = np.random.default_rng(launches)
    rates = {
        name: draw.uniform(5, 15, (launches, 5)) for name in ("point", "twin", "twin_ahead", "core")
    }
    records = [visit(n, {name: each[n] for name, each in rates.items()}) for n in range(launches)]
    row = row_of(random.Random(1).sample(records, launches))

    def over_launches(values):
        medians = np.sort(np.median(values, axis=1))
        return pytest.approx((np.median(medians), medians[outside], medians[-1 - outside]))

    assert (row["seconds"], row["seconds_low"], row["seconds_high"]) == over_launches(
        16 * MIB / 1e9 / rates["point"]
    )
    rate = row["bytes_compulsory"] / 1e9
    expected = (rate / row["seconds"], rate / row["seconds_high"], rate / row["seconds_low"])
    assert (row["gbps"], row["gbps_low"], row["gbps_high"]) == pytest.approx(expected)
    usual = {name: 1 / np.median(np.median(1 / rates[name], axis=1)) for name in rates}
    witness = max("twin", "twin_ahead", key=usual.get)
    assert (row["witness"], row["twin_gbps"]) == (witness, pytest.approx(usual[witness]))
    shares = np.median(rates["point"] / rates[witness], axis=1)
    means = [(one + other) / 2 for one, other in combinations_with_replacement(np.log(shares), 2)]
    # one more than the tabled critical values of Wilcoxon's test at 5 %, 0 and 5
    left_out = {6: 1, 9: 6}[launches]
    low, high = np.exp(sorted(means)[left_out - 1]), np.exp(sorted(means)[-left_out])
    assert (row["efficiency"], row["efficiency_low"], row["efficiency_high"]) == pytest.approx(
        (np.exp(np.median(means)), low, high)
    )
    assert row["core_gbps"] == pytest.approx(usual["core"])
    assert row["spread"] == pytest.approx(
        (row["seconds_high"] - row["seconds_low"]) / row["seconds"]
    )
    width = row["efficiency_high"] - row["efficiency_low"]
    assert row["efficiency_spread"] == pytest.approx(width / row["efficiency"])
    assert row["confidence"] == pytest.approx(holds)


def test_what_slows_a_round_down_is_no_part_of_the_efficiency():
    """The machine is three times slower in the second round, and ten times in the second launch.
    The efficiency does not change.
    """
    slow = {name: [each[0], each[0] / 3] for name, each in ALONE.items()}
    slower = {name: [rate / 10 for rate in each] for name, each in slow.items()}
    row = row_of([visit(0, slow), visit(1, slower)])
    assert row["efficiency_low"] == pytest.approx(0.8) and row["efficiency_high"] == pytest.approx(
        0.8
    )
    assert row["spread"] > 1


def test_the_form_that_is_faster_over_all_launches_is_the_witness_of_all():
    rates = [(10.0, 11.0), (10.0, 11.0), (12.0, 5.0)]
    records = [
        visit(n, ALONE | {"twin": [plain], "twin_ahead": [ahead]})
        for n, (plain, ahead) in enumerate(rates)
    ]
    row = row_of(records)
    assert (row["witness"], row["twin_gbps"]) == ("twin_ahead", pytest.approx(11))
    assert (row["efficiency"], row["efficiency_high"]) == (
        pytest.approx(8 / 11),
        pytest.approx(8 / 5),
    )


def test_two_visits_of_a_launch_are_one_launch():
    """A broken launch that was finished as a new part may visit a point twice."""
    row = row_of(
        [
            visit(0, ALONE),
            visit(0, {name: [rate[0] * 2] * 2 for name, rate in ALONE.items()}, part=1),
        ]
    )
    assert (row["launches"], row["samples"]) == (1, 3)
    assert row["gbps"] == pytest.approx(16)


def test_the_faster_form_of_the_twin_counts():
    for plain, ahead in ((10.0, 9.0), (9.0, 10.0)):
        own = ALONE | {"point": [9.5], "twin": [plain], "twin_ahead": [ahead]}
        row = row_of([visit(n, own, core_level="L1") for n in range(6)])
        assert (row["bound"], row["bound_by"], row["core_level"]) == ("rows", "rows", "L1")
        assert row["witness"] == ("twin" if plain > ahead else "twin_ahead")


def test_memory_and_disturbances_are_told():
    given = [
        ({"huge_bytes": 100, "resident_bytes": 100}, 2.0),
        ({"huge_bytes": 40, "resident_bytes": 100}, 1.0),
    ]
    records = [
        visit(n, ALONE, memory=memory, max_abs_err=error) for n, (memory, error) in enumerate(given)
    ]
    stopped = replace(records[0].samples[0], throttled=1)
    records[0] = replace(records[0], samples=(stopped, *records[0].samples[1:]))
    row = row_of(records)
    assert (row["huge"], row["max_abs_err"]) == (0.4, 2.0)
    assert row["disturbed"] == pytest.approx(1 / 8)


# ---- what is not there ---------------------------------------------------------------------------


def test_nothing_yields_tables_without_rows():
    for records in ([], [probe(0, 20.0)]):
        table = points(records, MACHINE)
        assert table.empty and {"name", "gbps", "efficiency", "regime", "l3", "error"} <= set(
            table.columns
        )
    assert samples([]).empty and "gbps" in samples([]).columns


def test_a_point_that_always_failed_keeps_its_row():
    row = row_of([failed(0), failed(1, error="it hung"), probe(0, 20.0)])
    assert (row["name"], row["layout"], row["threads"]) == (DECODE.name, "head", 2)
    assert (row["launches"], row["failed"], row["error"]) == (
        0,
        2,
        "the worker ended with signal 11",
    )
    assert all(
        np.isnan(row[name])
        for name in ("gbps", "efficiency", "ceiling_gbps", "footprint", "disturbed")
    )
    assert (row["regime"], row["bound"], row["l3"], row["witness"]) == ("", "", "", "")
    assert points([failed(0)], MACHINE)["slices"].isna().all()


def test_a_launch_that_lacks_a_point_is_left_out():
    row = row_of([visit(0, ALONE), failed(1), visit(2, ALONE | {"point": [7.0]})])
    assert (row["launches"], row["failed"], row["gbps_low"]) == (2, 1, pytest.approx(7))
    assert row["error"] == "the worker ended with signal 11"


def test_what_failed_and_was_made_up_for_is_no_error():
    row = row_of([failed(0), visit(0, ALONE, part=1)])
    assert (row["launches"], row["failed"], row["error"]) == (1, 0, "")


def test_records_of_two_runs_are_two_tables():
    with pytest.raises(BadArgument, match="2 runs: mine, theirs"):
        points([visit(0, ALONE), replace(visit(0, ALONE), run="theirs")], MACHINE)


# ---- beside ceilings -----------------------------------------------------------------------------

RATES = {256: 20.0, 512: 21.0, 16: 60.0, 8: 70.0}  # GB/s of a read by MiB: the first two are DRAM


def reads(launches=1, **changes):
    return [
        probe(n, rate, replace(READ, bytes=mib * MIB, **changes))
        for mib, rate in RATES.items()
        for n in range(launches)
    ]


def test_the_ceiling_is_that_of_the_footprint_and_the_level():
    row = row_of([visit(0, ALONE), *reads()])
    assert (row["ceiling_op"], row["ceiling_gbps"], row["ceiling_fraction"]) == (
        "read",
        20.0,
        pytest.approx(0.4),
    )
    assert (row["dram_gbps"], row["dram_low"], row["dram_high"]) == pytest.approx((21, 21, 21))
    assert (row["ceiling_low"], row["ceiling_high"], row["ceiling_note"]) == (20.0, 20.0, "")
    row = row_of([visit(0, ALONE), *(probe(n, rate) for n, rate in enumerate((18.0, 20.0, 23.0)))])
    assert (row["ceiling_low"], row["ceiling_gbps"], row["ceiling_high"]) == pytest.approx(
        (18, 20, 23)
    )
    row = row_of([visit(0, ALONE, walked=9 * MIB, layers=1), *reads()])
    assert (row["regime"], row["ceiling_gbps"], row["dram_gbps"]) == (
        "L3",
        pytest.approx(70),
        pytest.approx(21),
    )


def test_a_store_comes_from_where_its_record_says():
    point = replace(STORE, op="append")
    records = [visit(n, {"point": [9.0]}, point, walked=256 * KIB) for n in range(3)]
    assert row_of(records)["footprint"] == 256 * KIB and row_of(records)["regime"] == "L2"


def test_a_peak_needs_no_memory_so_that_its_pages_do_not_matter():
    peak = replace(READ, op="flops", pages="base", bytes=0)
    assert row_of([visit(0, ALONE), probe(0, 100.0, peak)])["fma_gflops"] == pytest.approx(100)
    assert np.isnan(
        row_of([visit(0, ALONE), probe(0, 100.0, replace(peak, cpus=(0,)))])["fma_gflops"]
    )


def test_a_small_slice_that_is_evicted_comes_from_dram():
    small = {"walked": MIB / 2, "layers": 1}
    row = row_of([visit(0, ALONE, replace(DECODE, residency="evicted"), **small), *reads()])
    assert (row["regime"], row["ceiling_gbps"]) == ("DRAM", pytest.approx(20))
    assert (
        row_of([visit(0, ALONE, replace(DECODE, residency="hot"), **small), *reads()])["regime"]
        == "L2"
    )


def test_without_known_caches_only_a_like_footprint_is_a_ceiling():
    bare = replace(MACHINE, caches=())
    row = row_of([visit(0, ALONE), *reads()], bare)
    assert (row["regime"], row["regime_confidence"], row["l3"]) == (
        "unknown",
        "none",
        "not testable",
    )
    assert row["ceiling_gbps"] == pytest.approx(20) and np.isnan(row["dram_gbps"])
    row = row_of([visit(0, ALONE, walked=64 * MIB), *reads()], bare)
    assert row["ceiling_note"] == NoCeiling.UNLIKE


def test_a_store_is_held_against_copies():
    records = [visit(0, {"point": [6.0], "copy": [8.0], "copy_nt": [12.0]}, STORE), *reads()]
    records += [
        probe(0, 11.0, replace(READ, op="copy")),
        probe(0, 14.0, replace(READ, op="copy_nt")),
    ]
    row = row_of(records)
    assert (row["witness"], row["efficiency"], row["copy_fraction"]) == ("copy_nt", 0.5, 0.5)
    assert (row["copy_gbps"], row["ceiling_op"], row["ceiling_gbps"]) == (
        pytest.approx(12),
        "copy_nt",
        14.0,
    )
    assert np.isnan([row["twin_gbps"], row["core_gbps"], row["gflops"], row["ai"]]).all()
    assert (row["l3"], row["bound"]) == ("", "unknown")


# ---- the claim about L3 --------------------------------------------------------------------------

INSIDE = {"walked": 9 * MIB, "layers": 1}  # of 32 MiB, and more than both threads' L2


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (INSIDE, "confirmed"),
        ({"walked": MIB, "layers": 1}, "private-cache"),
        ({"walked": 256 * MIB, "layers": 16}, ""),
        ({"walked": 40 * MIB, "layers": 1}, ""),  # between L3 and DRAM
    ],
)
def test_claim(facts, word):
    """Rounds of a launch are slow together, so their ratios do not change."""
    paces = (1.0, 0.5, 0.8, 1.0, 0.3, 0.9, 1.1)
    rates = {
        "point": 50.0,
        "twin": 60.0,
        "core": 80.0,
        "slice": 75.0,
        "memory": 25.0,
        "rotated": 20.0,
    }
    records = [
        visit(n, {name: [rate * pace, rate * pace / 2] for name, rate in rates.items()}, **facts)
        for n, pace in enumerate(paces)
    ]
    row = row_of(records)
    assert row["l3"] == word and bool(row["l3_reason"]) is bool(word)
    memory = "memory_share" if row["regime"] == "DRAM" else "l3_decode"
    for name, ratio in (("l3_reads", 3.0), (memory, 2.0), ("l3_gain", 2.5)):
        assert [row[name], row[f"{name}_low"], row[f"{name}_high"]] == pytest.approx([ratio] * 3)
    assert row["witness"] == "twin" and row["efficiency"] == pytest.approx(50 / 60)


# ---- samples -------------------------------------------------------------------------------------


def test_every_sample_is_a_row():
    far = replace(READ, op="flops", bytes=0)
    records = [
        visit(0, ALONE, flops=1e6),
        visit(1, ALONE, STORE, part=2),
        probe(0, 20.0),
        probe(0, 90.0, far),
        failed(2),
    ]
    table = samples(records)
    assert len(table) == 4 + 4 + 1 + 1
    assert list(table["launch"]) == [0] * 4 + [1] * 4 + [0] * 2 and set(table["part"]) == {0, 2}
    assert list(table["program"]) == [*ALONE, *ALONE, "point", "point"]
    assert list(table["gbps"][:9]) == pytest.approx([8, 10, 9, 16] * 2 + [20]) and np.isnan(
        table["gbps"][9]
    )
    assert table["gflops"][0] == pytest.approx(1e6 * 8e9 / (16 * MIB) / 1e9)
    assert table["gflops"][9] == pytest.approx(90) and table["gflops"][1:9].isna().all()
    assert (table["seconds_per_pass"] * table["passes"]).to_numpy() == pytest.approx(
        table["seconds"].to_numpy()
    )
    assert list(table["name"].unique()) == [DECODE.name, STORE.name, READ.name, far.name]
    assert list(table["context"][:8]) == [1024] * 8 and table["context"][8:].isna().all()
    assert table["bytes"][8] == READ.bytes and table["bytes"][:8].isna().all()
    assert list(table["threads"]) == [2] * 10 and list(table["layout"][7:9]) == ["head", ""]


@pytest.mark.parametrize(
    ("met", "threads", "is_disturbed"),
    [
        ({}, 1, False),
        ({"steal": 0.0009}, 1, False),  # of 0.1 s: less than 1 %
        ({"steal": 0.0011}, 1, True),
        ({"steal": 0.0011}, 2, False),
        ({"throttled": 1}, 4, True),
        ({"faults": 1}, 4, True),
        ({"switches": 1}, 1, False),
        ({"switches": 2}, 1, True),
        ({"switches": 2}, 2, False),
    ],
)
def test_disturbances(met, threads, is_disturbed):
    calm = Sample("point", 0, 1, 0.1, (), 0.0, 0, 0)
    assert disturbed(replace(calm, **met), threads) is is_disturbed
    record = visit(0, {"point": [8.0]}, replace(DECODE, cpus=tuple(range(threads))))
    (row,) = samples([replace(record, samples=(replace(calm, **met),))]).to_dict("records")
    assert row["disturbed"] is is_disturbed


# ---- many points ---------------------------------------------------------------------------------


def grid():
    shapes = [replace(DECODE.shape, context=context, capacity=context) for context in (512, 4096)]
    decodes = [
        replace(DECODE, shape=shape, layout=layout)
        for shape in shapes
        for layout in ("position", "head")
    ]
    decodes += [
        replace(DECODE, shape=shapes[1], layout="paged", order=shuffle) for shuffle in (None, 1)
    ]
    decodes += [replace(DECODE, cpus=cpus) for cpus in ((0,), (1,), (2, 3))]
    decodes += [replace(DECODE, dtype="i8", scale=scale) for scale in ("f16", "f32")]
    decodes += [replace(DECODE, schedule=schedule) for schedule in ("cross", "near512")]
    decodes += [replace(DECODE, pad=pad) for pad in (None, 0, 64)]
    decodes += [
        replace(DECODE, shape=replace(DECODE.shape, capacity=2048, window=window))
        for window in (0, 256)
    ]
    return [*decodes, STORE, replace(STORE, op="append")]


def test_short_names_tell_points_apart_by_what_varies():
    table = points([failed(0, point) for point in grid()], MACHINE)
    found = dict(zip(table["name"], short_names(table), strict=True))
    assert len(set(found.values())) == len(grid())
    assert (
        found[replace(DECODE, cpus=(2, 3)).name] == "decode head f16 t=1024 off 2 threads CPUs 2-3"
    )
    assert (
        found[replace(DECODE, pad=64).name]
        == "decode head f16 t=1024 off pad=64 2 threads CPUs 0-1"
    )
    assert found[replace(DECODE, schedule="cross").name].split()[4:6] == ["cross", "2"]
    assert found[STORE.name] == "bulk head f16"
    assert not any("q=" in name or "block=" in name or "thp" in name for name in found.values())
