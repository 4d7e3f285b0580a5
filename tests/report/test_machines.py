"""Runs side by side: how they are called, what stands in their columns, and ratios to the first."""

from dataclasses import replace

from kvbench.analysis.means.findings import findings
from kvbench.report.machines import figure, names, side_by_side, text
from kvbench.report.words.first import workload
from tests.made_run import MACHINE, RUN
from tests.report import made
from tests.report.answered import ANSWERS
from tests.store.made import manifest

FAST = ANSWERS.decodes.rows[2]
SPEED = FAST.speed
SLOW = replace(FAST, speed=replace(SPEED, figure=replace(SPEED.figure, value=12.0)))


def study(*rows, machine=MACHINE, **page):
    found = findings(RUN, made.whole(made.READS, 2), machine)
    answers = replace(ANSWERS, workload=replace(ANSWERS.workload, **page))
    answers = replace(answers, decodes=replace(ANSWERS.decodes, rows=rows))
    return replace(found, answers=answers), manifest([], 2)


def cells(*studies):
    return {row[0].text: [cell.text for cell in row[1:]] for row in side_by_side(studies).rows}


def test_machines_of_one_brand_have_numbers():
    one, other = study(FAST), study(SLOW, machine=made.NAMED)
    assert names([one, other]) == ["a machine without a name", "zorglub 9000 64-Core"]
    assert names([one, one]) == ["1: a machine without a name", "2: a machine without a name"]
    drawn = figure([one, other])
    assert drawn.table["machine"].tolist() == names([one, other])
    assert drawn.table["tokens_per_second"].tolist() == [48.0, 12.0] and figure([study()]).missing


def test_rates_have_ratios_to_the_first_run_and_what_is_not_there_says_so():
    found = cells(study(FAST), study(SLOW), study())
    assert found["f16"] == [
        "48 tokens/s; flash, head",
        "12 tokens/s (0.25x); flash, head",
        "not measured",
    ]
    assert found["memory read"][1].endswith("(1.00x)") and "L1 read" not in found
    assert found["workload"] == [workload(ANSWERS)] * 3


def test_other_workloads_have_no_ratios():
    other = study(SLOW, context=512)
    assert cells(study(FAST), other)["f16"][1] == "12 tokens/s; flash, head"


def test_a_terminal_has_who_they_are_then_one_table_with_units_and_ratios():
    lines = text([study(FAST), study(SLOW), study()], ["old", "new", "none"])
    assert [line.split()[0] for line in lines[:3]] == ["old", "new", "none"] and " run; " in lines[
        0
    ]
    assert any(line.split() == ["unit", "old", "new", "none"] for line in lines)
    assert any(
        line.split() == ["decode", "f16", "tokens/s", "48", "12", "(0.25x)", "not", "measured"]
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
    other = study(SLOW, context=512)
    lines = text([study(FAST), other])
    assert "The workloads differ, so tokens/s have no ratio" in " ".join(" ".join(lines).split())
    assert any(line.split() == ["decode", "f16", "tokens/s", "48", "12"] for line in lines)


def test_many_runs_stand_in_several_tables():
    lines = text([study(FAST)] * 15)
    assert [line.split()[1:] for line in lines if line.split()[:1] == ["unit"]] == [
        list(map(str, range(first, min(first + 5, 16)))) for first in (1, 6, 11)
    ]
    assert max(map(len, lines)) <= 120
