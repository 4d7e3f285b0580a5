"""kvbench sweep --tune-only, and what a sweep makes of it, as users call them."""

import json

import pytest

from kvbench.native import default_library
from kvbench.worker.tuning import HEATS, ROUNDS
from tests.cli.test_cli import CPU, call, errors_of, output_of

TINY = [
    "smoke",
    "--axis",
    "context=64",
    "--axis",
    "dtype=f16",
    "--axis",
    "threads=1",
    "--axis",
    "op=decode",
]
TINY += ["--axis", "layout=head", "--cpus", CPU]
BRIEF = ["--launches", "1", "--samples", "1", "--sample-time", "0.001"]


@pytest.fixture(autouse=True)
def still(monkeypatch):
    monkeypatch.setattr("kvbench.session.session.preflight", lambda *_: ())


def printed(capsys, *arguments):
    return json.loads(output_of(capsys, *arguments, "--json"))


def seen(file):
    """Ratios that are kept."""
    return sum(
        len(own)
        for ratios in json.loads(file.read_text())["classes"].values()
        for own in ratios.values()
    )


def test_it_prints_a_table_and_keeps_what_was_seen(capsys, tmp_path):
    file = tmp_path / "seen.json"
    first = printed(capsys, "sweep", "--tune-only", *TINY, "--tuning", str(file))
    assert (
        first["file"] == str(file)
        and len(first["classes"]) == len(json.loads(file.read_text())["classes"]) > 0
    )
    kept = seen(file)
    again = printed(capsys, "sweep", "--tune-only", *TINY, "--tuning", str(file))
    assert seen(file) > kept and len(again["classes"]) == len(first["classes"])
    fresh = printed(capsys, "sweep", "--tune-only", *TINY, "--tuning", str(file), "--fresh")
    assert fresh["classes"][0]["choice"]["rounds"] <= HEATS * ROUNDS
    lines = output_of(capsys, "sweep", "--tune-only", *TINY, "--tuning", str(file)).splitlines()
    assert len(lines) == 1 + len(first["classes"]) and "schedule" in lines[0]


def test_a_damaged_file_is_one_line_and_a_fresh_measurement(capsys, tmp_path):
    file = tmp_path / "seen.json"
    file.write_text("{")
    assert call("sweep", "--tune-only", *TINY, "--tuning", str(file)) == 0
    said = capsys.readouterr()
    assert said.err.count("tuned afresh") == 1 and said.out.count("\n") > 1
    assert json.loads(file.read_text())["classes"]


@pytest.mark.parametrize(
    "asked, word", [(["--tuning", "off"], None), (["--schedule", "cross"], "cross")]
)
def test_a_sweep_that_is_told_does_not_tune(capsys, tmp_path, asked, word):
    run = tmp_path / "run"
    assert call("sweep", *TINY, *BRIEF, *asked, "--out", str(run)) == 0
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    decodes = [line for line in lines if line["point"].startswith("decode.")]
    assert {line["ran"] for line in decodes} == {word or default_library().schedule("auto")}
    assert not any(line["tuned"] for line in lines)


def test_a_sweep_says_what_it_chose(capsys, tmp_path):
    file, run = tmp_path / "seen.json", tmp_path / "run"
    assert (
        "tuning "
        in errors_of(
            capsys, "sweep", *TINY, *BRIEF, "--tuning", str(file), "--out", str(run), code=0
        )
        and json.loads(file.read_text())["classes"]
    )
    report = json.loads(output_of(capsys, "report", str(run), "--format", "json"))
    assert report["schedules"] and {row["ran"] for row in report["points"]} <= {
        row["preset"] for row in report["schedules"]
    }
