"""A run directory as a run: what it was measured on, what was checked before, what it says."""

import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import kvbench
from kvbench.analysis.summary import plain
from kvbench.model import Check
from kvbench.results import geometries
from kvbench.store import RunDirectory
from kvbench.store.run import FILES
from tests.made_run import DECODE, MACHINE, probe, visit
from tests.store.made import manifest
from tests.test_cli import call

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "suites" / "models.toml"
SHIPPED = sorted(path.parent for path in (ROOT / "results").glob("*/*/manifest.json"))
MACHINES = sorted((ROOT / "results").glob("*/*/machine.json"))
WARNED = Check("load", "warn", "1.5", "others work", "wait")


def written(path, facts):
    records = [visit(0, {"point": [15.0]}), replace(probe(0, 20.0), steps=1)]
    points = tuple(record.point for record in records)
    with RunDirectory.create(path, manifest(points=points, launches=1, run="mine")) as run:
        run.write_machine({"topology": asdict(MACHINE)} | facts)
        for record in records:
            run.append(record)
    return kvbench.load(path)


def test_a_run_says_what_was_measured_and_what_was_checked(tmp_path):
    run = written(tmp_path / "run", {"preflight": [asdict(WARNED)]})
    assert run.checks == (WARNED,) and run.machine == MACHINE
    said = {sentence["topic"]: sentence["text"] for sentence in plain(run.summary())["diagnosis"]}
    assert said["bandwidth"].startswith("Decode attention reads up to 15 GB/s from memory, 75% of the 20 GB/s")
    assert said["doubt"] == "Doubts about the machine: load (1.5)."
    assert list(run.frame("points")["name"]) == [DECODE.name]


@pytest.mark.parametrize("lines", [None, [], "none", [None, 3, {"name": "load"}]])
def test_a_preflight_that_cannot_be_read_is_none(tmp_path, lines):
    assert written(tmp_path / "run", {"preflight": lines}).checks == ()


def test_geometries_are_those_of_the_file():
    known = tomllib.loads(MODELS.read_text())
    found = {model.name: model for model in geometries()}
    assert found.keys() == known.keys()
    for name, facts in known.items():
        expected, got = {"window": 0, "window_every": 0, **facts, "name": name}, asdict(found[name])
        assert got == {key: expected[key] for key in got}


# ---- what is shipped -------------------------------------------------------------------------------------------------


def renamed(shipped, path):
    """A copy that is another run."""
    shutil.copytree(shipped, path)
    for name in ("manifest.json", "machine.json"):
        facts = json.loads((path / name).read_text())
        (path / name).write_text(json.dumps(facts | {"run": "another"}))
    return path


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda path: path.parent.name)
def test_a_run_that_is_shipped_can_be_read(shipped, tmp_path, capsys):
    """Runs of format 1, whose lines name no run; and they are no longer added to."""
    root = tmp_path / "runs"
    for arguments in (
        ("report", shipped, "--format", "csv"),
        ("compare", tmp_path / "base", shipped, "--bless"),
        ("history", "add", shipped, "--root", root),
        ("history", "show", "--root", root),
    ):
        assert call(*map(str, arguments)) == 0, capsys.readouterr().err
    assert call("sweep", "--out", str(tmp_path / "base"), "--resume") == 2
    assert "format 1, which is only read" in capsys.readouterr().err
    asked = [sys.executable, "-m", "pyperf", "stats", shipped / "run.json.gz"]
    subprocess.run(asked, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.full
@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda path: path.parent.name)
def test_every_command_that_a_readme_names_reads_it(shipped, tmp_path, capsys):
    other = renamed(shipped, tmp_path / "other")
    for arguments in (
        *(("report", shipped, "--format", form) for form in ("md", "json")),
        ("report", shipped, "-o", tmp_path / "page"),
        ("report", shipped, other, "-o", tmp_path / "pages"),
        ("compare", other, shipped, "--bless"),
        ("history", "export", "--root", tmp_path),
    ):
        assert call(*map(str, arguments)) == 0, capsys.readouterr().err


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.parent.name)
def test_every_machine_that_is_shipped_can_be_named(machine, capsys):
    assert call("size", "llama-3-8b", "--context", "4096", "--machine", str(machine.parent)) == 0
    assert "GB/s" in capsys.readouterr().out


def test_whatever_is_shipped_is_a_whole_run_or_none():
    """A folder with a manifest has all else, too."""
    assert len(SHIPPED) >= 3
    for path in SHIPPED:
        assert {each.name for each in path.iterdir()} == set(FILES)
