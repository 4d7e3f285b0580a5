"""The summary of a run: its numbers by hand, its words as people read them."""

import json
from dataclasses import replace

import pytest

from kvbench.analysis.means.findings import findings
from kvbench.report.ending import short, summary, text
from kvbench.report.words.findings import sentences
from kvbench.report.words.first import tiles
from kvbench.store import plain
from kvbench.texts import WIDTH
from tests.made_run import DECODE, MACHINE, RUN, STORE, failed, probe, visit
from tests.report.answered import ANSWERS

HEAD, POSITION = DECODE, replace(DECODE, layout="position")


def found_in(records, **known):
    return findings(RUN, records, MACHINE, **known)


def whole():
    """Six launches of two points, and one that always failed."""
    records = [probe(n, 20.0) for n in range(6)]
    for n in range(6):
        records += [
            visit(n, {"point": [15.0], "twin": [20.0], "core": [80.0]}, HEAD),
            visit(n, {"point": [6.0], "copy": [8.0]}, STORE),
            failed(n, POSITION, error="it hung\nafter 300 s"),
        ]
    return records


def test_failures_are_told():
    found = found_in(whole())
    facts = summary(found)
    assert (facts.points, facts.launches, facts.failed) == (3, 6, 1)
    assert facts.errors == ("decode position f16: it hung\nafter 300 s",)
    assert short(found)[-2:] == [
        "3 points, 6 launches; 1 with errors",
        "  decode position f16: it hung after 300 s",
    ]
    many = [failed(0, replace(HEAD, shape=replace(HEAD.shape, context=64 << n))) for n in range(9)]
    shown = short(found_in(many))
    assert shown[-4] == "9 points, 1 launch; 9 with errors" and shown[-1] == "  and 7 more"


def test_a_terminal_has_every_answer_of_the_page():
    found = replace(found_in(whole()), answers=ANSWERS)
    lines = text(found)
    flat = " ".join(" ".join(lines).split())
    for each in tiles(ANSWERS):
        assert each.title in flat and each.value in flat and each.detail in flat
    assert all(each.text in flat for each in sentences(found)) and len(sentences(found)) > 6
    assert any(line.split()[:4] == ["i8", "dot,", "head", "90.2"] for line in lines)
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize(
    "records",
    [
        [],
        [probe(0, 20.0)],
        [failed(0, error="x" * 500)],
        [visit(0, {"point": [9.0], "copy": [12.0]}, STORE)],
        whole(),
    ],
)
def test_it_is_short_and_valid_json(records):
    found = found_in(records)
    facts = json.loads(json.dumps(plain(summary(found)), allow_nan=False))
    assert facts["version"] == 2 and facts["run"] == RUN and facts["answers"]["workload"]
    assert facts["points"] == len(
        {record.point for record in records if hasattr(record.point, "shape")}
    )
    lines = text(found)
    assert len(lines) <= 50 and max(map(len, lines)) <= WIDTH
    assert not any("nan" in line or "None" in line for line in lines)


def test_numbers_in_json_keep_all_their_digits():
    facts = json.loads(json.dumps(plain(summary(replace(found_in([]), answers=ANSWERS)))))
    row = facts["answers"]["decodes"]["rows"][1]
    assert row["lead"]["figure"]["value"] == 71.6 / 90.2
    assert row["limit"]["reason"] == "core" and row["core"]["held"] == "its core speed"
