"""Kernels of several dtypes in the same rounds, in tables. Times are planted."""

from dataclasses import replace

import pytest

from kvbench.analysis.limits import frames
from kvbench.analysis.measured.line import members
from kvbench.analysis.measured.rates import measured
from kvbench.model import Contrast, Member, Record, Sample, Traffic
from kvbench.model.contrast import KERNEL
from kvbench.units import GB
from tests.made_run import DECODE, MACHINE

# by dtype: bytes of a pass; in microseconds the kernel, reads of its rows in two forms, its core
PLANTED = {
    "f16": (4e6, (200.0, 180.0, 190.0, 100.0)),
    "i8": (2e6, (125.0, 100.0, 90.0, 120.0)),
}
KINDS = ("", "twin/", "twin_ahead/", "core/")
READ = 8e6, 250.0  # bytes and microseconds of a pass over memory


def moved(count):
    return Traffic(1e6, count, count, count, count, 0, 0, 1)


def sets(launches=8, rounds=4):
    """Each launch has its own speed, which affects all programs of a round alike."""
    points = tuple(replace(DECODE, dtype=dtype) for dtype in PLANTED)
    programs = {
        f"{kind}{dtype}": (count, each)
        for dtype, (count, times) in PLANTED.items()
        for kind, each in zip(KINDS, times, strict=True)
    }
    programs |= {"memory": READ, "fma": (0.0, 10.0)}
    facts = {
        dtype: Member(9, int(count), 9 * count, "DRAM", {"huge_bytes": 0}, "cross", "L2", 1e-3)
        for dtype, (count, _) in PLANTED.items()
    }
    return [
        Record(
            launch,
            Contrast(KERNEL, points),
            tuple(
                Sample(name, n, 2, 2e-6 * each * (1 + 0.1 * launch), (), 0.0, 0, 0)
                for n in range(rounds)
                for name, (_, each) in programs.items()
            ),
            {name: moved(count) for name, (count, _) in programs.items()},
            {},
            run="r",
            members=facts,
        )
        for launch in range(launches)
    ]


@pytest.mark.parametrize(
    ("dtype", "shares"),
    [
        # of memory by bytes, of its rows by time, of the core by bytes, which are as many
        ("f16", {"memory": (4 / 200) / (8 / 250), "twin": 180 / 200, "core": 100 / 200}),
        ("i8", {"memory": (2 / 125) / (8 / 250), "twin_ahead": 90 / 125, "core": 120 / 125}),
    ],
)
def test_shares_are_of_the_same_rounds(dtype, shares):
    own = [record for record in members(sets()) if record.point.dtype == dtype]
    assert [record.launch for record in own] == list(range(8))
    found = measured(own)
    for name, share in shares.items():
        assert found.shares[name].median == pytest.approx(share), name
        assert found.shares[name].launches == 8
    assert found.uneven == 0


def test_a_row_for_each_dtype():
    table = frames.points(members(sets()), MACHINE, ()).set_index("dtype")
    assert sorted(table.index) == ["f16", "i8"]
    for dtype, (count, (each, *_)) in PLANTED.items():
        row = table.loc[dtype]
        assert row["seconds"] == pytest.approx(each * 1e-6 * 1.35)  # the middle of launches
        assert row["gbps"] == pytest.approx(count / row["seconds"] / GB)
        assert (row["launches"], row["ran"], row["core_level"]) == (8, "cross", "L2")
        assert (row["slices"], row["footprint"]) == (9, 9 * count)
        assert row["max_abs_err"] == 1e-3


def test_a_point_has_one_row_and_its_numbers_are_of_the_line():
    """Its visits of their own took three times as long."""
    point, other = sets(1)[0].point.points
    alone = [slower(record) for record in members(sets()) if record.point == point]
    table = frames.points([*alone, *sets()], MACHINE, ()).set_index("name")
    assert set(table.index) == {point.name, other.name} and table["beside"].all()
    assert table.loc[point.name, "seconds"] == pytest.approx(
        PLANTED[point.dtype][1][0] * 1e-6 * 1.35
    )
    assert not frames.points(alone, MACHINE, ())["beside"].any()


def slower(record):
    samples = tuple(replace(each, seconds=3 * each.seconds) for each in record.samples)
    return replace(record, samples=samples)


def test_other_sets_are_no_line():
    others = [replace(r, point=Contrast("dtype", r.point.points)) for r in sets(1)]
    assert members(others) == []
    failed = [replace(r, samples=(), error="it is off by 9") for r in sets(1)]
    assert [(r.point.dtype, r.error) for r in members(failed)] == [
        (dtype, "it is off by 9") for dtype in PLANTED
    ]


def test_samples_say_what_they_are_of():
    """A row for each sample. Witnesses are not confused with those of visits of their own."""
    table = frames.samples(sets(1))
    assert len(table) == 4 * (2 * 4 + 2)
    rows = table.groupby(["program", "dtype"]).size().to_dict()
    own = {
        (f"kernel/{kind}".rstrip("/"), dtype): 4
        for kind in ("", "twin", "twin_ahead", "core")
        for dtype in PLANTED
    }
    shared = {(f"kernel/{kind}", "f16"): 4 for kind in ("memory", "fma")}
    assert rows == own | shared
    cores = table[(table["program"] == "kernel/core") & (table["dtype"] == "i8")]
    assert cores["gbps"].to_numpy() == pytest.approx(2e6 / 120e-6 / GB)
