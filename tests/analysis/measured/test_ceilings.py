"""Ceilings from made-up records, and all cases in which a point may not use one."""

from dataclasses import replace

import pytest

from kvbench.analysis.measured.ceilings import NoCeiling, Roofs, ceiling_for, ceilings
from kvbench.model import PLAIN, Ceiling, Record, Sample, Traffic
from tests import made_run
from tests.made_run import KIB, MACHINE, MIB

READ = replace(made_run.READ, pages="base")
AT = replace(made_run.DECODE, pages="base")


def record(
    launch,
    seconds,
    probe=READ,
    *,
    passes=1,
    error="",
    program="point",
    steps=1,
    compulsory=1e9,
    flops=0.0,
):
    taken = [Sample(program, n, passes, s, (), 0.0, 0, 0) for n, s in enumerate(seconds)]
    moved = Traffic(
        flops,
        compulsory,
        bytes_issued=7.0,
        bytes_line=7.0,
        bytes_kv=0,
        bytes_scales=0,
        bytes_table=0,
        ai=0,
    )
    return Record(
        launch, probe, tuple(taken), {program: moved}, {}, steps=steps, error=error, run="mine"
    )


def test_the_median_of_launch_medians_and_their_range():
    """The launches' medians are 10, 8 and 5 GB/s. The median of all samples together would be
    10.
    """
    records = [
        record(2, (0.2, 0.2, 0.05)),
        record(0, (0.1, 0.1, 0.1)),
        record(1, (0.05, 0.1, 0.125, 0.125, 0.125)),
    ]
    (ceiling,) = ceilings(records, MACHINE)
    assert (ceiling.median, ceiling.low, ceiling.high) == pytest.approx((8, 5, 10))
    assert [len(launch) for launch in ceiling.samples] == [3, 5, 3]
    assert ceiling.samples[2] == pytest.approx((5, 5, 20))
    assert (ceiling.run, ceiling.probe, ceiling.level) == ("mine", READ, "DRAM")


def test_launches_of_slow_cores_are_set_aside_where_enough_are_left():
    """Cores run at half speed in two launches of seven, or in four."""
    peak = replace(READ, op="flops", bytes=0)
    for op in ("flops", "dot8", "dot16"):
        peak = replace(peak, op=op)
        for slow, low in ((2, 200.0), (4, 100.0)):
            paces = [0.5] * slow + [1.0] * (7 - slow)
            taken = [
                record(n, [0.005 / pace] * 3, peak, compulsory=0.0, flops=1e9)
                for n, pace in enumerate(paces)
            ]
            (found,) = ceilings(taken, MACHINE)
            assert (found.low, found.high) == pytest.approx((low, 200.0))
            assert len(found.samples) == (5 if slow == 2 else 7)


@pytest.mark.parametrize(
    ("op", "moved", "value"),
    [
        ("copy", {"compulsory": 4e9, "flops": 1.0}, 40.0),  # 2 passes in 0.2 s
        ("triad", {"compulsory": 3e9, "flops": 1.0}, 30.0),
        ("flops", {"flops": 5e9}, 50.0),
        ("latency", {"steps": 10**6}, 100.0),  # a million loads in 0.1 s
        ("clock", {"steps": 3 * 10**8}, 3.0),
    ],
)
def test_units(op, moved, value):
    (ceiling,) = ceilings([record(0, (0.2,), replace(READ, op=op), passes=2, **moved)], MACHINE)
    assert ceiling.median == pytest.approx(value)
    assert ceiling.level == ("core" if op in ("flops", "clock") else "DRAM")


@pytest.mark.parametrize(
    # 1 - 2 (1 + 12) / 2^12 = 0.994; of 11 it would be 0.988; 15 leave out two: 0.993
    ("launches", "left_out"),
    [(1, 0), (2, 0), (5, 0), (9, 0), (11, 0), (12, 1), (14, 1), (15, 2)],
)
def test_many_launches_leave_out_their_extremes(launches, left_out):
    rates = [10.0 + n for n in range(launches)]
    (ceiling,) = ceilings([record(n, (1 / rate,)) for n, rate in enumerate(rates)], MACHINE)
    assert (ceiling.low, ceiling.high) == pytest.approx((rates[left_out], rates[-1 - left_out]))


def test_what_failed_has_no_ceiling():
    failed = record(1, (0.01,), error="killed")
    assert ceilings([failed, record(0, ())], MACHINE) == ()
    (ceiling,) = ceilings([record(0, (0.1,)), failed], MACHINE)
    assert ceiling.samples == ((pytest.approx(10),),)
    assert ceilings([record(0, (0.1,), program="twin")], MACHINE) == ()


def test_the_level_is_that_of_the_footprint_on_its_cpus():
    sizes = (16 * KIB, 512 * KIB, 4 * MIB, 256 * MIB)
    records = [
        record(0, (0.1,), replace(READ, cpus=(0,), bytes=bytes_)) for bytes_ in reversed(sizes)
    ]
    assert [c.level for c in ceilings(records, MACHINE)] == ["L1", "L2", "L3", "DRAM"]


# ---- which may be used ---------------------------------------------------------------------------


def made(rate, run="mine", level="DRAM", form=PLAIN, **changes):
    samples = ((rate,), (rate,))
    return Ceiling(
        run, replace(READ, **changes), level, rate, rate, rate, samples, True, None, form
    )


MINE = (
    made(20.0),
    made(22.0, form="ahead"),
    made(21.0, bytes=512 * MIB),
    made(80.0, level="L3", bytes=8 * MIB),
    made(85.0, level="L3", bytes=16 * MIB),
    made(500.0, op="flops", level="core"),
)
ASKED = {"op": "read", "isa": "scalar", "cpus": (0, 1), "pages": "base", "level": "DRAM"}


def test_the_least_share_of_huge_pages_counts():
    given = [{"resident_bytes": 100, "huge_bytes": huge} for huge in (100, 50, 80)]
    (ceiling,) = ceilings(
        [replace(record(n, (0.1,)), memory=m) for n, m in enumerate(given)], MACHINE
    )
    assert ceiling.huge == 0.5
    (ceiling,) = ceilings([record(0, (0.1,))], MACHINE)
    assert ceiling.huge is None


@pytest.mark.parametrize(
    ("changes", "rate"),
    [
        ({}, 22.0),  # the better of two forms
        ({"footprint": 256 * MIB}, 22.0),
        ({"level": "L3"}, 85.0),
        ({"level": "L3", "footprint": 9 * MIB}, 80.0),
        ({"level": None, "footprint": 300 * MIB}, 22.0),
        ({"footprint": 4096 * MIB}, 21.0),  # the level is the same, at any distance
        ({"cpus": (1, 0)}, 22.0),
        ({"op": "flops", "level": None, "pages": "thp"}, 500.0),
    ],
)
def test_a_ceiling_that_fits(changes, rate):
    found, why = ceiling_for(MINE, **ASKED | changes)
    assert (found.median, why) == (rate, "")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        *(
            (changes, NoCeiling.OTHERS)
            for changes in (
                {"cpus": (0,)},
                {"cpus": (0, 1, 2)},
                {"cpus": (0, 0)},
                {"pages": "huge"},
                {"isa": "neon"},
                {"level": "L2"},
            )
        ),
        ({"op": "copy"}, NoCeiling.NOT_PROBED),
        ({"level": None, "footprint": 64 * MIB}, NoCeiling.UNLIKE),
    ],
)
def test_no_other_ceiling_can_be_used(changes, reason):
    assert ceiling_for(MINE, **ASKED | changes) == (None, reason)


def test_a_ceiling_of_nothing_is_none():
    assert Roofs(MACHINE, [made(0.0)]).by_itself("read", AT, "DRAM") is None


def test_a_level_that_is_none_needs_a_footprint():
    """ "mixed" at 2 MiB and "mixed" at 90 MiB are unrelated."""
    between = made(150.0, level="mixed", bytes=2 * MIB)
    found = ceiling_for([between], **ASKED | {"level": "mixed", "footprint": 90 * MIB})
    assert found == (None, NoCeiling.UNLIKE)
    assert ceiling_for([between], **ASKED | {"level": "mixed", "footprint": 3 * MIB}) == (
        between,
        "",
    )


def test_each_form_of_a_probe_is_a_ceiling_and_the_best_counts():
    """The form with the best median counts, even if another has a faster launch. Plain reads are
    kept apart.
    """
    rates = {"point": (10, 11, 12), "ahead": (20, 21, 40), "weave": (22, 23, 24)}
    records = [
        replace(
            record(n, (1.0,)),
            samples=tuple(
                Sample(form, 0, 1, 1 / each[n], (), 0.0, 0, 0) for form, each in rates.items()
            ),
            traffic=dict.fromkeys(rates, record(n, (1.0,)).traffic["point"]),
        )
        for n in range(3)
    ]
    found = ceilings(records, MACHINE)
    assert {each.form: each.median for each in found} == pytest.approx(
        {"plain": 11, "ahead": 21, "weave": 23}
    )
    roofs = Roofs(MACHINE, found)
    best, _ = roofs.ceiling(AT, "DRAM", READ.bytes)
    assert (best.form, best.median) == ("weave", pytest.approx(23))
    assert (
        roofs.by_itself("read", AT, "DRAM").form,
        roofs.by_itself("read", AT, "DRAM").median,
    ) == (
        "plain",
        pytest.approx(11),
    )


def test_fewer_threads_may_read_faster_and_more_do_not_count():
    """The plain read is by the point's own threads."""
    found = [
        made(rate, cpus=tuple(range(threads)))
        for threads, rate in ((1, 15.0), (2, 12.0), (3, 40.0))
    ]
    roofs = Roofs(MACHINE, found)
    best, _ = roofs.ceiling(AT, "DRAM", READ.bytes)
    assert (len(best.probe.cpus), best.median) == (1, 15.0)
    assert roofs.by_itself("read", AT, "DRAM").median == 12.0
