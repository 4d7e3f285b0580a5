"""From the memory's bandwidth to the kernel's, step by step."""

from dataclasses import replace

import pytest

from kvbench.model import Fact
from kvbench.report.figures.waterfall import waterfall
from tests.made_run import DECODE, MACHINE, READ, probe, visit
from tests.report.drawn import BARE, RATES, bare, drawn, found_in, parts, strange_colours, tagged, unknown

ONE = replace(DECODE, cpus=(0,))
RECORDS = [
    probe(0, 20.0),
    probe(0, 12.0, replace(READ, cpus=(0,))),
    visit(0, RATES),
    visit(0, RATES | {"point": [4.0, 4.0]}, replace(DECODE, layout="paged")),
    visit(0, RATES | {"point": [5.0, 5.0]}, replace(DECODE, dtype="f32")),
    visit(0, RATES, ONE),
]


def peak(value, note=""):
    return replace(MACHINE, facts={"dram_peak": Fact(value, "its firmware", "high" if value else "none", note)})


def test_every_step_names_what_it_is_a_share_of():
    figure, text = drawn(waterfall, found_in(RECORDS, peak(40.0)))
    rows = figure.table.set_index(["step", "dtype"])
    assert list(rows.index.get_level_values("step")) == ["theoretical", "ceiling", "twin", "kernel", "twin", "kernel"]
    assert rows.loc[("theoretical", ""), "gbps"] == 40.0
    assert tuple(rows.loc[("ceiling", ""), ["gbps", "share", "of"]]) == (20.0, 0.5, "the theoretical DRAM peak")
    assert tuple(rows.loc[("twin", "f16"), ["gbps", "share", "of"]]) == (
        pytest.approx(10.0),
        pytest.approx(0.5),
        "the DRAM read ceiling",
    )
    assert rows.loc[("kernel", "f16"), "layout"] == "head"
    assert tuple(rows.loc[("kernel", "f16"), ["gbps", "share", "of"]]) == (
        pytest.approx(8.0),
        pytest.approx(0.8),
        "its twin",
    )
    assert rows.loc[("kernel", "f32"), "share"] == pytest.approx(0.5)
    assert set(parts(text).values()) == {8}  # twin, kernel; its interval and two caps, on paper
    assert tagged(text) == set(figure.table["row"].dropna()) and not strange_colours(text)
    assert "80% of its twin" in text and "40 GB/s (its firmware, high confidence)" in figure.about


def test_an_unknown_peak_is_called_unknown():
    figure, _ = drawn(waterfall, found_in(RECORDS, peak(None, "a hypervisor invents its memory modules")))
    assert figure.table["step"][0] == "ceiling" and figure.table["share"].isna()[0]
    assert "Theoretical DRAM peak: unknown: a hypervisor invents" in figure.about
    assert "Theoretical DRAM peak: unknown." in drawn(waterfall, found_in(RECORDS))[0].about


def test_where_most_dtypes_were_measured_goes_before_the_longest():
    far = replace(DECODE, shape=replace(DECODE.shape, context=4096, capacity=4096))
    figure, _ = drawn(waterfall, found_in([*RECORDS, visit(0, RATES, far)]))
    assert set(figure.table["dtype"]) == {"", "f16", "f32"} and "context 1024" in figure.about


def test_a_decode_without_twin_is_a_share_of_the_ceiling():
    figure, _ = drawn(waterfall, found_in([probe(0, 20.0), visit(0, {"point": [5.0]})]))
    assert list(figure.table["step"]) == ["ceiling", "kernel"]
    assert tuple(figure.table.iloc[1][["share", "of"]]) == (pytest.approx(0.25), "the DRAM read ceiling")


@pytest.mark.parametrize("name", BARE)
def test_little_to_show(name):
    drawn(waterfall, bare(name))
    drawn(waterfall, unknown(bare(name)))
