"""What limits a decode, with planted launches. Rates are GB/s, so that every share is known."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.limits.frames import points
from kvbench.model import Contrast, Member
from kvbench.model.contrast import KERNEL
from tests.made_run import DECODE, MACHINE, MIB, STORE, visit

LAUNCHES = 8
# eight launches whose signed ranks leave out 3 of 36 means at either end: these means, by hand
UP = (-0.04, -0.03, -0.02, -0.01, 0.01, 0.02, 0.03, 0.04)
FAR, L3 = {}, {"walked": 9 * MIB, "layers": 1}


def rows_of(rates, wide=None, of=DECODE, launches=LAUNCHES, **facts):
    """Rows of points with these `rates`, by program. Programs in `wide` vary between launches by
    that factor, in logarithms.
    """
    found = []
    for launch in range(launches):
        own = {
            name: [rate * np.exp((wide or {}).get(name, 0.0) * UP[launch % len(UP)])]
            for name, rate in rates.items()
        }
        found.append(visit(launch, own, of, **facts))
    return found


def limited(rates, wide=None, **facts):
    (row,) = points(rows_of(rates, wide, **facts), MACHINE).to_dict("records")
    return row


def beside(point=10.0, memory=20.0, twin=20.0, core=20.0):
    return {"point": point, "memory": memory, "twin": twin, "core": core}


@pytest.mark.parametrize(
    ("rates", "wide", "word", "why", "by"),
    [
        (beside(memory=10.5, twin=10.5), {}, "memory", "reached", "memory"),  # 95 % of both reads
        (beside(memory=12.5, twin=10.3), {}, "rows", "reached", "rows"),  # 80 % and 97 %
        (beside(core=10.1), {}, "core", "reached", "core"),
        (beside(memory=10.5, twin=10.5, core=10.5), {}, "both", "reached", "memory, core"),
        (beside(memory=12.5, twin=10.5, core=10.5), {}, "both", "reached", "rows, core"),
        # 91 % of memory, 99 % of the core: both are limits, but their intervals do not overlap
        (beside(memory=11.0, core=10.1), {}, "memory", "reached", "memory"),
        (beside(), {}, "neither", "all below", "memory, rows, core"),
        (beside(memory=11.0), {"memory": 1.0}, "not clear", "interval crosses", "memory"),
        # its own reads limit it; whether memory does, too, is not clear
        (beside(memory=11.0, twin=10.3), {"memory": 1.0}, "rows", "memory not clear", "rows"),
        # a clear share of the core beats an unclear share of memory
        (beside(memory=11.5, core=10.2), {"memory": 1.0}, "core", "reached", "core"),
        # 111 % of memory and 105 % of its rows are not limits
        (beside(memory=9.0, twin=9.5), {}, "unknown", "faster than its limit", "memory, rows"),
        (beside(memory=9.0, twin=10.5), {}, "rows", "reached", "rows"),
        # 101 % is level with it
        (beside(memory=9.9, twin=9.9), {}, "memory", "reached", "memory"),
    ],
)
def test_words(rates, wide, word, why, by):
    row = limited(rates, wide)
    assert (row["bound"], row["bound_reason"], row["bound_by"]) == (word, why, by)


def test_shares_and_their_intervals():
    """Of 8 launches, the interval is the 4th lowest and the 4th highest of the 36 means of two: one
    more than the tabled critical value, 3, of Wilcoxon's test at 5 %.
    """
    row = limited(beside(memory=12.5, twin=16.0, core=40.0), {"memory": 1.0})
    means = sorted((one + other) / 2 for n, one in enumerate(UP) for other in UP[n:])
    low, high = 0.8 * np.exp(means[3]), 0.8 * np.exp(means[-4])
    names = ("memory_share", "memory_share_low", "memory_share_high")
    assert [row[name] for name in names] == pytest.approx([0.8, low, high])
    flat = [row[f"{name}{end}"] for name in ("efficiency", "core_fraction") for end in ("", "_low")]
    assert flat == pytest.approx([0.625, 0.625, 0.25, 0.25])


def test_older_runs_have_no_reads_of_memory_beside_them():
    old = beside(twin=10.3)
    del old["memory"]
    row = limited(old)
    assert (row["bound"], row["bound_reason"]) == ("rows", "memory not timed")
    assert np.isnan(row["memory_share"])
    del old["core"]
    row = limited(old | {"twin": 20.0})
    assert (row["bound"], row["bound_reason"], row["bound_by"]) == ("unknown", "not timed", "core")


def test_memory_is_no_limit_of_what_lies_in_a_cache():
    """In L3, at 95 % of plain reads of memory and of reads of its rows."""
    row = limited(beside(memory=10.5) | {"slice": 30.0}, **L3)
    assert (row["regime"], row["bound"], row["bound_by"]) == ("L3", "neither", "rows, core")
    assert np.isnan(row["memory_share"]) and row["l3_decode"] == pytest.approx(10 / 10.5)
    row = limited(beside(twin=10.5), **L3)
    assert (row["bound"], row["bound_reason"], row["bound_by"]) == ("rows", "reached", "rows")
    assert np.isnan(limited(beside())["l3_decode"])


@pytest.mark.parametrize("launches", [1, 5])
def test_few_launches_settle_nothing(launches):
    row = limited(beside(memory=10.5), launches=launches)
    assert (row["bound"], row["bound_reason"]) == ("not clear", "too few launches")


def test_threads_that_wait_are_a_reason():
    def waiting(record):
        return replace(record, samples=tuple(replace(s, skew=0.3) for s in record.samples))

    records = [waiting(record) for record in rows_of(beside())]
    (row,) = points(records, MACHINE).to_dict("records")
    assert (row["bound"], row["bound_reason"]) == ("neither", "threads wait")


def test_a_store_is_held_against_nothing():
    row = limited({"point": 10.0, "copy": 10.5}, of=STORE)
    assert (row["bound"], row["bound_reason"]) == ("unknown", "no decode")


# ---- core speed ----------------------------------------------------------------------------------

HOT = replace(DECODE, residency="hot", shape=replace(DECODE.shape, context=256, capacity=256))


def together(*more, hot_core=15.0):
    """A point in L2 at 20 GB/s whose window walk has 15 GB/s, and other points."""
    hot = {"point": 20.0, "twin": 80.0, "core": hot_core}
    near = {"walked": MIB, "layers": 1}
    records = rows_of(hot, {"point": 1.0}, of=HOT, **near)
    for rates, of, wide in more:
        records += rows_of(rates, wide, of=of)
    table = points(records, MACHINE)
    return {row["name"]: row for row in table.to_dict("records")}


def test_a_kernel_that_beats_its_window_walk_has_its_best_rate_as_core_speed():
    """In L2 it reaches 133 % of its window walk. From memory 98 % of the walk are 73 % of its core
    speed.
    """
    far = beside(point=9.8, core=10.0)
    rows = together((far, DECODE, {}))
    assert rows[HOT.name]["core_fraction"] == pytest.approx(20 / 15)  # shown as what it is
    row = rows[DECODE.name]
    assert row["core_fraction"] == pytest.approx(0.98 / (20 / 15))
    assert row["core_gbps"] == pytest.approx(10.0 * 20 / 15)
    assert (row["bound"], row["bound_by"]) == ("neither", "memory, rows, core")


@pytest.mark.parametrize(("own", "off"), [(10.0, 12.5), (12.5, 10.0)])
def test_core_speed_is_that_of_the_faster_schedule(own, off):
    """98 % of one schedule would make the core the limit; 78 % of the other do not."""
    row = limited(beside(point=9.8, core=own) | {"core_off": off})
    assert (row["core_gbps"], row["core_fraction"]) == pytest.approx((12.5, 0.784))
    assert (row["bound"], row["witness"]) == ("neither", "twin")


def test_the_faster_schedule_alone_is_beaten():
    """20 GB/s beat a walk of 15 by a third, but not the other one of 21."""
    hot = {"point": 20.0, "twin": 80.0, "core": 15.0, "core_off": 21.0}
    records = rows_of(hot, of=HOT, walked=MIB, layers=1) + rows_of(beside(point=9.8, core=10.0))
    rows = {row["name"]: row for row in points(records, MACHINE).to_dict("records")}
    assert rows[HOT.name]["core_fraction"] == pytest.approx(20 / 21)
    assert rows[DECODE.name]["core_fraction"] == pytest.approx(0.98)


def test_the_interval_of_a_product_is_that_of_the_worst_case():
    rows = together((beside(point=9.8, core=10.0), DECODE, {"point": 1.0}))
    own, best = rows[DECODE.name], rows[HOT.name]
    means = sorted((one + other) / 2 for n, one in enumerate(UP) for other in UP[n:])
    least, most = np.exp(means[3]), np.exp(means[-4])
    assert best["core_fraction_low"] == pytest.approx(20 / 15 * least)
    assert own["core_fraction_low"] == pytest.approx(0.98 * least / (20 / 15 * most))
    assert own["core_fraction_high"] == pytest.approx(0.98 * most / (20 / 15 * least))


@pytest.mark.parametrize(
    "other",
    [
        replace(DECODE, dtype="f32"),
        replace(DECODE, layout="position"),
        replace(DECODE, cpus=(0,)),
        replace(DECODE, shape=replace(DECODE.shape, q_heads=2)),
    ],
)
def test_another_kernel_group_or_number_of_threads_has_its_own(other):
    row = together((beside(point=9.8, core=10.0), other, {}))[other.name]
    assert row["core_fraction"] == pytest.approx(0.98) and row["bound"] == "core"


def test_a_walk_that_is_not_surely_beaten_stays():
    """101 % of its walk, or 105 % ± 10 %."""
    for hot_core in (19.8, 20 / 1.05):
        hot = {"point": 20.0, "twin": 80.0, "core": hot_core}
        wide = {"point": 2.5} if hot_core < 19.5 else {}
        records = rows_of(hot, wide, of=HOT, walked=MIB, layers=1)
        records += rows_of(beside(point=9.8, core=10.0))
        rows = {row["name"]: row for row in points(records, MACHINE).to_dict("records")}
        assert rows[DECODE.name]["core_fraction"] == pytest.approx(0.98)


def test_in_the_line_core_speeds_of_all_visits_count():
    """f16 and f32 side by side, both at 98 % of their window walks. f16 beats its own walk in
    L2.
    """
    contrast = Contrast(KERNEL, (DECODE, replace(DECODE, dtype="f32")))

    def side_by_side(record):
        renamed = [("memory", "memory")]
        for dtype in ("f16", "f32"):
            renamed += [("point", dtype), ("twin", f"twin/{dtype}"), ("core", f"core/{dtype}")]
        samples = tuple(
            replace(sample, program=own)
            for name, own in renamed
            for sample in record.samples
            if sample.program == name
        )
        moved = {own: record.traffic[name] for name, own in renamed}
        facts = {"footprint": record.footprint, "slices": 16, "slice_bytes": 4096}
        kept = Member(**facts, level="DRAM", memory={}, ran="off", core_level="L1", max_abs_err=0.0)
        members = dict.fromkeys(("f16", "f32"), kept)
        return replace(record, point=contrast, samples=samples, traffic=moved, members=members)

    hot = rows_of({"point": 20.0, "twin": 80.0, "core": 15.0}, of=HOT, walked=MIB, layers=1)
    beside_all = [side_by_side(each) for each in rows_of(beside(point=9.8, core=10.0))]
    found = points([*hot, *beside_all], MACHINE, ())
    rows = {row["dtype"]: row for row in found[found["beside"]].to_dict("records")}
    assert rows["f16"]["core_fraction"] == pytest.approx(0.98 * 15 / 20)
    assert rows["f32"]["core_fraction"] == pytest.approx(0.98)
    assert (rows["f16"]["bound"], rows["f32"]["bound"]) == ("neither", "core")
    assert rows["f16"]["memory_share"] == pytest.approx(0.49)
