"""kvbench history on the command line: what it prints, writes and refuses, and its exit codes."""

import csv
import io
import json
import re
import sys

import numpy as np
import pytest

from kvbench.analysis.judge import groups
from kvbench.history import load
from kvbench.report.history import text
from tests.cli.test_cli import call, output_of, refused
from tests.history import made
from tests.history.made import FELL, POINTS, ROSE, RUNS, STEPPED
from tests.report import made as report


def shown(capsys, root, *more):
    capsys.readouterr()
    return json.loads(output_of(capsys, "history", "--json", "--root", str(root), *more))


def steps(facts):
    """Steps by the point's index."""
    places = {point.name: place for place, point in enumerate(made.points(POINTS))}
    return {
        places[point["point"]]: [(step["run"], step["state"]) for step in point["steps"]]
        for machine in facts["machines"]
        for point in machine["points"]
        if point["steps"]
    }


# ---- show ----------------------------------------------------------------------------------------


def test_show_json(capsys, steady):
    facts = shown(capsys, steady)
    (machine,) = facts["machines"]
    assert facts["version"] == 1 and facts["notes"] == [] and machine["fingerprint"] == "f00dcafe"
    assert [run["run"] for run in machine["runs"]] == [f"run-{number:04}" for number in range(RUNS)]
    assert steps(facts) == {FELL: [(STEPPED, "open")], ROSE: [(STEPPED, "open")]}
    worst = machine["points"][0]
    assert worst["point"] == made.points(POINTS)[FELL].name and worst["runs"] == RUNS
    assert worst["baseline"] == pytest.approx(0.7, rel=0.02) and worst["latest"] == pytest.approx(
        0.63, rel=0.06
    )
    (step,) = worst["steps"]
    assert step["low"] <= step["effect"] <= step["high"] and step["effect"] == pytest.approx(
        -0.1, abs=0.02
    )
    assert (
        step["q"] <= 0.01
        and step["changed"] == ["build"]
        and step["created"].startswith("2026-01-21")
    )


def test_show_text(capsys, steady):
    out = output_of(capsys, "history", "show", "--root", str(steady))
    lines = out.splitlines()
    assert (
        "30 runs of 10 points, 2026-01-01 to 2026-01-30: 2 open steps, 1 of them down" in lines[0]
    )
    down = next(place for place, line in enumerate(lines) if "open -" in line)
    assert (
        STEPPED in lines[down]
        and "2026-01-21" in lines[down]
        and "the build changed" in lines[down]
    )
    assert (
        lines[down - 1].split()[-4:-2] == ["30", lines[down - 1].split()[-3]] and "witness" in out
    )


def test_gate(root):
    assert call("history", "show", "--root", str(root), "--gate") == 1
    rose = made.points(POINTS)[ROSE].name
    assert call("history", "show", "--root", str(root), "--gate", "--point", rose) == 0
    fell = made.points(POINTS)[FELL].name
    assert (
        call("history", "accept", fell, "--run", STEPPED, "--reason", "meant", "--root", str(root))
        == 0
    )
    assert call("history", "show", "--root", str(root), "--gate") == 0


def test_a_choice_of_points_changes_no_result(capsys, steady):
    every = {point["point"]: point for point in shown(capsys, steady)["machines"][0]["points"]}
    some = shown(capsys, steady, "--point", "*.f16.*")["machines"][0]["points"]
    assert 0 < len(some) < POINTS and all(point == every[point["point"]] for point in some)
    refused(
        capsys,
        "history",
        "show",
        "--root",
        str(steady),
        "--point",
        "none*",
        words=["--point", "none*", "patterns"],
    )


def test_two_machines_are_two_histories(capsys, root):
    made.write(
        root / "other", made.flat(3, 2), first=100, machine=["beef"] * 3, environment=["e9"] * 3
    )
    facts = shown(capsys, root)
    assert [(each["fingerprint"], len(each["runs"])) for each in facts["machines"]] == [
        ("f00dcafe", RUNS),
        ("beef", 3),
    ]
    assert all(point["few"] and not point["steps"] for point in facts["machines"][1]["points"])
    assert steps(facts).keys() == {FELL, ROSE}
    assert [each["fingerprint"] for each in shown(capsys, root, "--machine", "be")["machines"]] == [
        "beef"
    ]
    refused(
        capsys,
        "history",
        "show",
        "--root",
        str(root),
        "--machine",
        "x",
        words=["--machine", "beef", "f00dcafe"],
    )


def test_no_run_and_one_run(capsys, tmp_path):
    assert "No run yet" in output_of(capsys, "history", "show", "--root", str(tmp_path))
    made.write(tmp_path, made.flat(1, 2))
    out = output_of(capsys, "history", "show", "--root", str(tmp_path))
    needs = {point["needs"] for point in shown(capsys, tmp_path)["machines"][0]["points"]}
    assert (
        f"2 of 2 points have too few runs to find a step: 1 run, and {min(needs)} more are needed."
        in out
    )
    assert "+0.0%" not in out and "-0.0%" not in out and "Order of the rows" not in out
    assert max(map(len, out.splitlines())) <= 120


def test_a_new_point_among_old_ones_is_told_in_a_line_and_has_no_row(capsys, tmp_path):
    shares = made.flat(30, 10)
    shares[:27, 4] = np.nan
    made.write(tmp_path, shares)
    out = output_of(capsys, "history", "show", "--root", str(tmp_path))
    assert re.search(
        r"\b1 of 10 points has too few runs to find a step: 3 runs, and \d+ more are needed",
        out,
    )
    rows = [
        line
        for line in out.splitlines()
        if re.search(r" 30 +\d+\.\d% ", line) and not line.startswith("  family")
    ]
    assert len(rows) >= 9 and "Order of the rows: open steps down, the largest first" in " ".join(
        out.split()
    )


def test_rows_are_in_the_order_that_is_stated(capsys, root):
    """Down before up, then the largest recent change."""
    facts = shown(capsys, root)["machines"][0]["points"]
    out = output_of(capsys, "history", "show", "--root", str(root))
    effects = [[step["effect"] for step in point["steps"]] for point in facts]
    assert effects[0][0] < 0 < effects[1][0] and not any(effects[2:])
    changes = [abs(point["change"]) for point in facts[2:]]
    assert changes == sorted(changes, reverse=True)
    places = [out.index(f"  {point['short']} ") for point in facts]
    assert places == sorted(places)


@pytest.mark.parametrize("runs", [5, 6])
def test_without_ruptures_no_runs_are_read(capsys, tmp_path, monkeypatch, runs):
    made.write(tmp_path, made.flat(runs, 2))
    monkeypatch.setitem(sys.modules, "ruptures", None)
    if runs < 6:
        assert call("history", "show", "--root", str(tmp_path)) == 0
        return
    monkeypatch.setattr("kvbench.history.whole.summaries", lambda *_: pytest.fail("runs were read"))
    refused(
        capsys,
        "history",
        "show",
        "--root",
        str(tmp_path),
        words=["ruptures", "pip install 'kvbench[history]'"],
    )


def test_broken_runs_are_told(capsys, root):
    for number in range(8):
        (root / f"run-{number:04}" / "manifest.json").write_text("{")
    out = output_of(capsys, "history", "show", "--root", str(root))
    assert out.count("left out") == 5 and "and 3 more" in out and "22 runs" in out


def test_a_folder_whose_name_is_not_text_is_named(capsys, root):
    (root / "run-0003").rename(root / "\udcff")
    out = output_of(capsys, "history", "show", "--root", str(root), "--report", str(root / "page"))
    assert r"left out: the name of \udcff is not UTF-8" in out and "29 runs" in out
    assert r"\udcff" in (root / "page" / "index.html").read_text()


def test_bad_roots(capsys, tmp_path):
    refused(capsys, "history", "show", "--root", str(tmp_path / "none"), words=["--root", "none"])
    (tmp_path / "accepted.json").write_text("[]")
    refused(
        capsys, "history", "show", "--root", str(tmp_path), words=["accepted.json", "correct it"]
    )
    (tmp_path / "accepted.json").write_text('{"format": 1, "accepted": [{"run": 7}]}')
    refused(capsys, "history", "show", "--root", str(tmp_path), words=["accepted.json"])


SEEDS, NIGHTS = range(20), 60
PLANTED = {
    "decode.flash.*.f32.*": (20, 0.97),
    "decode.flash.*.i8.*": (38, 0.92),
}  # by family: first run, times as efficient


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_are_at_their_commits_whatever_the_host_does(seed, tmp_path):
    """Sixty nights of ten launches on a host whose caches drift; half a percent of that is left
    beside the witness.
    """
    chance, measured = np.random.default_rng(seed), made.points(72)
    drift = 0.005 * np.sin(
        2 * np.pi * (np.arange(NIGHTS) / chance.uniform(25, 60) + chance.random())
    )
    shares = 0.7 * np.exp(drift)[:, None] * np.ones(len(measured))
    for family, (at, factor) in PLANTED.items():
        shares[at:, [family in groups(point) for point in measured]] *= factor
    versions = [
        {"commit": f"{1000 + number}c0ffee", "message": f"change {number}", "branch": "main"}
        for number in range(NIGHTS)
    ]
    made.write(tmp_path, shares, noise=0.014, seed=seed, versions=versions)
    (past,) = load(tmp_path, print).pasts
    found = {
        trend.series.point: [step.run for step in trend.steps]
        for trend in past.families
        if trend.steps
    }
    assert found == {family: [at] for family, (at, _) in PLANTED.items()}
    lines = [line.partition(", commit ")[2] for line in text([past], ())]
    assert "1020c0f change 20 (main): git log 1019c0f..1020c0f" in lines


# ---- add -----------------------------------------------------------------------------------------


def test_add_copies_what_is_not_there(capsys, tmp_path):
    paths = made.write(tmp_path / "from", made.flat(3, 2))
    root = tmp_path / "runs"
    assert output_of(
        capsys, "history", "add", *map(str, paths), "--root", str(root)
    ).splitlines() == [f"{path.name}: {root / path.name}" for path in paths]
    for path in paths:
        assert (root / path.name / "journal.jsonl").read_bytes() == (
            path / "journal.jsonl"
        ).read_bytes()
    assert len(shown(capsys, root)["machines"][0]["runs"]) == 3


def test_add_replaces_a_copy_of_the_same_run(capsys, tmp_path):
    """A run that was continued; also if its folder has another name."""
    points, root = report.decodes()[:4], tmp_path / "runs"
    half = report.directory(tmp_path / "half", report.whole(points[:2], 3), points, 3)
    whole = report.directory(tmp_path / "whole", report.whole(points, 3), points, 3)
    assert call("history", "add", str(half), "--root", str(root)) == 0
    (root / "half").rename(root / "renamed")
    assert len(shown(capsys, root)["machines"][0]["points"]) == 2
    assert call("history", "add", str(whole), "--root", str(root)) == 0
    assert not (root / "whole").exists() and (root / "renamed" / "summary.json").exists()
    assert len(shown(capsys, root)["machines"][0]["points"]) == 4


def test_add_refuses(capsys, tmp_path, root):
    refused(
        capsys, "history", "add", str(tmp_path), "--root", str(root), words=["not a run directory"]
    )
    (other,) = made.write(tmp_path / "from", made.flat(1, 1), first=500)
    other = other.rename(other.with_name("run-0000"))
    refused(capsys, "history", "add", str(other), "--root", str(root), words=["run-0000", "rename"])


# ---- export --------------------------------------------------------------------------------------


def table(capsys, root):
    capsys.readouterr()
    return list(
        csv.DictReader(io.StringIO(output_of(capsys, "history", "export", "--root", str(root))))
    )


def test_export_csv(capsys, tmp_path):
    shares = made.flat(3, 2) * np.array([[1.0], [0.9], [1.1]]) * [[1.0, 0.5]]
    made.write(tmp_path, shares, noise=0)
    rows = table(capsys, tmp_path)
    names = [point.name for point in made.points(2)]
    assert [(row["run"], row["point"]) for row in rows] == [
        (f"run-{n:04}", name) for n in range(3) for name in sorted(names)
    ]
    for row in rows:
        share = shares[int(row["run"][-1]), names.index(row["point"])]
        assert float(row["efficiency"]) == pytest.approx(share) == pytest.approx(float(row["low"]))
        assert float(row["bytes_per_second"]) == pytest.approx(share * made.TWIN * 1e9)
        assert row["launches"] == "3" and row["machine"] == "f00dcafe" and row["witness"] == "twin"
