"""Runs that lack most of a report's facts: each says what it lacks, and has a report in every
form.
"""

import json
from dataclasses import replace

import pytest

import kvbench
from kvbench.report.words.gaps import gaps
from tests.cli.test_cli import output_of
from tests.report import made
from tests.report.texts import plain_text

DRAWN = ("nothing visited", "one point", "all failed", "probes alone")


@pytest.mark.parametrize("name", made.BARE)
def test_what_is_missing_is_said(name, tmp_path, capsys):
    records, points, launches, words = made.BARE[name]
    run = made.directory(tmp_path / "run", records, points, launches)
    forms = {}
    for form in ("md", "json", "csv", *(["html"] if name in DRAWN else [])):
        forms[form] = output_of(capsys, "report", str(run), "--format", form)
    said = json.loads(forms["json"])["missing"]
    assert forms["csv"].startswith("run,name,")
    for word in words:
        assert any(word in sentence for sentence in said), said
        assert word in forms["md"].replace("\\", "")
    if name in DRAWN:
        assert words[0] in " ".join(forms["html"].split())
        text = plain_text((run / "report" / "index.html").read_text())
        assert all(sentence in text for sentence in said)


def test_a_whole_run_lacks_nothing_though_visits_were_set_aside_and_added(rich):
    run = kvbench.load(rich)
    found = run.findings()
    aside = found.points.assign(launches=found.points["launches"] - 1, set_aside=1)
    assert gaps(found, run.manifest) == gaps(replace(found, points=aside), run.manifest) == []
    added = found.points.assign(launches=[20] * (len(found.points) - 1) + [1])
    assert gaps(replace(found, points=added), run.manifest)[0].startswith(
        "The run is not finished: "
    )


@pytest.mark.parametrize(
    ("began", "again"),
    [
        ("kvbench sweep quick --out 'a b' --launches 3", "kvbench sweep --out 'a b' --resume"),
        ("kvbench peers --out=there", "kvbench peers --out there --resume"),
        ("kvbench score", "kvbench score --out runs/quick-mine --resume"),
        ("kvbench explain gpt-2", "kvbench sweep --out runs/quick-mine --resume"),
        ("kvbench.sweep()", "kvbench sweep --out runs/quick-mine --resume"),
        ("kvbench sweep --out 'torn", "kvbench sweep --out runs/quick-mine --resume"),
    ],
)
def test_how_to_go_on_is_a_whole_command(began, again, tmp_path):
    records, points, launches, _ = made.BARE["nothing visited"]
    run = kvbench.load(made.directory(tmp_path / "run", records, points, launches))
    manifest = replace(run.manifest, command=began, suite="quick", run="mine")
    assert f"To go on: {again}" in gaps(run.findings(), manifest)
