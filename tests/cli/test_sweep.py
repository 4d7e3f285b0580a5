"""kvbench sweep as its users meet it: real runs of small suites, interrupted, out of space, or
impossible.
"""

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time

import psutil
import pytest

import kvbench
from kvbench.store.run import FILES
from tests.cli.test_cli import CPU, TINY, call, errors_of
from tests.processes import succeeds

SHORT = ["--cpus", CPU, "--launches", "2", "--samples", "2", "--sample-time", "0.002"]
FEW = ["--only", "*.head.f16.*", "--only", "*.paged.f16.*"]
DECODES = [*TINY, *SHORT, "--axis", "op=decode"]
ASKED = [*TINY, *SHORT, *FEW, "--axis", "op=decode,append,bulk"]


def sweep(*arguments, **facts):
    command = [sys.executable, "-m", "kvbench.cli", "sweep", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **facts
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "run"
    process = sweep(*ASKED, "--out", path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return path, out, err


def test_the_summary_names_what_to_do_next(measured):
    path, out, err = measured
    assert f"  run       {path}" in out and "  next      " in out
    for words in ("GB/s", "Fastest decode", "What limits", " RUN ", "memory "):
        assert words in out
    assert "into" in err and " points, " in err and "Traceback" not in out + err


def test_the_next_command_can_be_typed(measured, tmp_path):
    """A sweep is called in one folder and writes to another; its files are counted."""
    line = next(line for line in measured[1].splitlines() if line.startswith("  next "))
    command = f"{line.removeprefix('  next').strip()} --out report"
    succeeds(command, shell=True, cwd=tmp_path)
    assert "<svg" in (tmp_path / "report" / "index.html").read_text()


def test_files_of_the_run(measured):
    path = measured[0]
    assert set(FILES) == {file.name for file in path.iterdir()}
    facts = json.loads((path / "manifest.json").read_text())
    assert facts["command"].startswith("kvbench sweep smoke --axis context=64")
    assert facts["options"]["launches"] == 2


def test_rates_are_bytes_over_time(measured):
    """From the journal with nothing but json and arithmetic, beside the frame."""
    run = kvbench.load(measured[0])
    points = run.frame("points").set_index("name")
    lines = [json.loads(line) for line in (measured[0] / "journal.jsonl").read_text().splitlines()]
    assert (
        len(points)
        == len({record.point.name for record in run.records if hasattr(record.point, "shape")})
        >= 4
    )
    assert (points["launches"] + points["set_aside"] == 2).all()
    for name, row in points[points["set_aside"] == 0].iterrows():
        medians = []
        for line in (line for line in lines if line["point"] == name):
            own = [s["seconds"] / s["passes"] for s in line["samples"] if s["program"] == "point"]
            medians.append(sum(sorted(own)) / 2)
        seconds = sum(medians) / 2
        moved = next(line for line in lines if line["point"] == name)["traffic"]["point"][
            "bytes_compulsory"
        ]
        assert row["gbps"] == pytest.approx(moved / seconds / 1e9)
        assert row["max_abs_err"] >= 0


def test_every_visit_was_verified(measured):
    for record in kvbench.load(measured[0]).records:
        if getattr(record.point, "op", "") == "decode":
            assert 0 < record.max_abs_err < 1e-4, "float32 is never exactly float64"


def test_a_budget_too_small_for_one_launch(tmp_path, capsys):
    """The budget is printed before and after, and the printed command goes on."""
    asked = [*DECODES, "--out", tmp_path / "a run", "--budget", "1.5"]
    start = time.monotonic()
    assert call("sweep", *map(str, asked)) in (0, 3)
    spent = time.monotonic() - start
    said = capsys.readouterr().err
    assert "it stops after the budget of 2 s, within a launch if need be" in said
    assert "stopped by the budget of 2 s, after" in said
    run = kvbench.load(tmp_path / "a run")
    assert len(run.records) < 2 * len(run.manifest.plan.points)
    ends = [record.began + record.wall for record in run.records]
    assert not ends or max(ends) - min(record.began for record in run.records) <= 1.2 * 1.5
    again = shlex.split(said.splitlines()[-1].partition("to go on: kvbench ")[2])
    assert again == ["sweep", "--out", str(tmp_path / "a run"), "--resume"]
    assert spent < 120
    assert call(*again, "--budget", "1000") == 0
    assert len(kvbench.load(tmp_path / "a run").records) == 2 * len(run.manifest.plan.points)


def test_interrupted(tmp_path):
    """Ctrl-C goes to the terminal's whole group: a valid partial run, how to go on, 130, and nobody
    left.
    """
    asked = [*DECODES, *FEW, "--sample-time", "0.02"]
    process = sweep(*asked, "--out", tmp_path / "run", start_new_session=True)
    journal = tmp_path / "run" / "journal.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and b"\n" in journal.read_bytes()):
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in out + err
    assert f"kvbench sweep --out {tmp_path / 'run'} --resume" in err.splitlines()[-1]
    assert not psutil.wait_procs(children, timeout=10)[1]
    partial = kvbench.load(tmp_path / "run")
    assert partial.records
    assert call("sweep", "--out", f"{tmp_path}/run", "--resume") == 0
    whole = kvbench.load(tmp_path / "run")
    assert whole.records[: len(partial.records)] == partial.records
    assert len(whole.records) == 2 * len(whole.manifest.plan.points)


@pytest.mark.parametrize("instant", ["Session.left", "Session.records", "Session.finish"])
def test_interrupted_where_nothing_is_measured(tmp_path, capsys, monkeypatch, instant):
    """Before the first visit and after the last there is a run already: it is continued, not
    begun anew.
    """
    asked = [*DECODES, "--only", "*.head.f16.*", "--out", tmp_path / "a run"]
    with monkeypatch.context() as patch:
        patch.setattr(f"kvbench.session.{instant}", stop)
        patch.setattr("kvbench.session.session.preflight", lambda *_: ())
        assert call("sweep", *map(str, asked)) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert (
        last == f"kvbench: interrupted; to go on: kvbench sweep --out '{tmp_path}/a run' --resume"
    )
    assert call("sweep", "--out", f"{tmp_path}/a run", "--resume") == 0


def test_interrupted_before_there_is_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("kvbench.session.session.preflight", stop)
    assert (
        "run the command again"
        in errors_of(capsys, "sweep", *ASKED, "--out", f"{tmp_path}/run", code=130)
        and not (tmp_path / "run").exists()
    )


def stop(*_):
    raise KeyboardInterrupt


def test_no_space_left(tmp_path):
    """A limit on the size of files stands for a full disk: the journal meets it half-way."""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    process = sweep(*ASKED, "--out", tmp_path / "run", preexec_fn=limited)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert "Traceback" not in out + err and len(err.splitlines()[-1]) < 400
    assert "journal.jsonl" in err.splitlines()[-1]
    kept, _, _ = (tmp_path / "run" / "journal.jsonl").read_bytes().rpartition(b"\n")
    assert kept and all(json.loads(line) for line in kept.splitlines())
    assert call("sweep", "--out", f"{tmp_path}/run", "--resume") == 0
    assert (tmp_path / "run" / "journal.jsonl").read_bytes().startswith(kept)
