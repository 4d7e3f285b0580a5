"""Runs side by side: how they are called, what stands in their columns, and ratios to the first."""

from dataclasses import replace

from kvbench.analysis.means.findings import findings
from kvbench.analysis.means.headline import Bar, Enclosed
from kvbench.report.machines import figure, names, side_by_side, text
from tests.made_run import MACHINE, RUN
from tests.report import made
from tests.store.made import manifest

BAR = Bar(
    "x",
    "f16",
    "head",
    "flash",
    Enclosed(40.0, 39.0, 41.0, "tokens/s"),
    20.0,
    50.0,
    1e-6,
    "memory",
    True,
)
SLOW = replace(BAR, tokens_per_second=Enclosed(10.0, 9.0, 11.0, "tokens/s"), gbps=5.0)


def study(*bars, machine=MACHINE):
    found = findings(RUN, made.whole(made.READS, 2), machine)
    head = replace(found.headline, model="llama-3-8b", context=4096, bars=bars)
    return replace(found, headline=head), manifest([], 2)


def cells(*studies):
    return {row[0].text: [cell.text for cell in row[1:]] for row in side_by_side(studies).rows}


def test_machines_of_one_brand_have_numbers():
    one, other = study(BAR), study(SLOW, machine=made.NAMED)
    assert names([one, other]) == ["a machine without a name", "zorglub 9000 64-Core"]
    assert names([one, one]) == ["1: a machine without a name", "2: a machine without a name"]
    drawn = figure([one, other])
    assert drawn.table["machine"].tolist() == names([one, other])
    assert drawn.table["tokens_per_second"].tolist() == [40.0, 10.0] and figure([study()]).missing


def test_rates_have_ratios_to_the_first_run_and_what_is_not_there_says_so():
    found = cells(study(BAR), study(SLOW), study())
    assert found["f16"] == ["40 tokens/s; 20 GB/s", "10 tokens/s (0.25x); 5 GB/s", "not measured"]
    assert found["memory read"][1].endswith("(1.00x)") and "L1 read" not in found
    assert found["workload"] == ["llama-3-8b, 4,096 tokens, KV cache only"] * 3


def test_other_workloads_have_no_ratios():
    found, of = study(SLOW)
    other = replace(found, headline=replace(found.headline, context=512)), of
    assert cells(study(BAR), other)["f16"][1] == "10 tokens/s; 5 GB/s"


def test_a_terminal_has_who_they_are_then_one_table_with_units_and_ratios():
    lines = text([study(BAR), study(SLOW), study()], ["old", "new", "none"])
    assert [line.split()[0] for line in lines[:3]] == ["old", "new", "none"] and " run; " in lines[
        0
    ]
    assert any(line.split() == ["unit", "old", "new", "none"] for line in lines)
    assert any(
        line.split() == ["decode", "f16", "tokens/s", "40", "10", "(0.25x)", "not", "measured"]
        for line in lines
    )
    assert sum("memory read" in line for line in lines) == 1
    place = {
        word: at
        for at, line in enumerate(lines)
        for word in ("decode f16", "fastest decode")
        if word in line
    }
    assert place["decode f16"] < place["fastest decode"]
    assert max(map(len, lines)) <= 120


def test_on_a_terminal_runs_of_different_workloads_say_why_they_have_no_ratio():
    found, of = study(SLOW)
    other = replace(found, headline=replace(found.headline, context=512)), of
    lines = text([study(BAR), other])
    assert "different workloads, so tokens/s have no ratio" in " ".join(" ".join(lines).split())
    assert any(line.split() == ["decode", "f16", "tokens/s", "40", "10"] for line in lines)


def test_many_runs_stand_in_several_tables():
    lines = text([study(BAR)] * 15)
    assert [line.split()[1:] for line in lines if line.split()[:1] == ["unit"]] == [
        list(map(str, range(first, min(first + 5, 16)))) for first in (1, 6, 11)
    ]
    assert max(map(len, lines)) <= 120
