"""Peers from outside in a real sweep: what is right is measured beside ours, and what lies, hangs
or dies costs its own rows alone; nobody of them is left behind.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import kvbench
from kvbench.model import OURS, Point
from tests.peers import fakes

SHORT = ["--launches", "2", "--samples", "3", "--sample-time", "0.002", "--patience", "8"]
SUITE = """
question = "What becomes of peers?"
contrasts = false
[axes]
q_heads = 4
kv_heads = 2
head_dim = 32
context = 2048
threads = 1
layers = 9
dtype = "f32"
engine = "all"
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A folder of packages with one that brings peers."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "fakes.py").write_text(Path(fakes.__file__).read_text())
    info = folder / "fakes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fakes\nVersion: 1.0\n")
    points = [f"{name.lower()} = fakes:{name}" for name in ("Right", *fakes.FAULTS)]
    (info / "entry_points.txt").write_text(
        "\n".join(["[kvbench.peers]", *points, "gone = nowhere:Gone", ""])
    )
    (folder / "peers.toml").write_text(SUITE)
    return folder


def sweep(outside, names, out, *more):
    peers = ",".join([OURS, *map(str.lower, names)])
    command = [
        sys.executable,
        "-m",
        "kvbench.cli",
        "sweep",
        str(outside / "peers.toml"),
        *SHORT,
        *more,
    ]
    (outside / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(outside), "TMPDIR": str(outside / "tmp")}
    return subprocess.Popen(
        [*command, "--axis", f"engine={peers}", "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


@pytest.fixture(scope="module")
def outcome(outside):
    process = sweep(outside, ("right", *fakes.FAULTS, "gone"), outside / "run")
    said = "".join(process.communicate(timeout=300))
    assert process.returncode == 4 and "Traceback" not in said, said
    return kvbench.load(outside / "run")


def records(run, engine):
    return [r for r in run.records if isinstance(r.point, Point) and r.point.engine == engine]


def test_all_have_a_record_in_each_launch(outcome):
    points = [record.point.name for record in outcome.records]
    assert sorted(points) == sorted(2 * [point.name for point in outcome.manifest.plan.points])
    (skip,) = outcome.manifest.skips
    assert skip.facts == {"engine": "gone"} and "ModuleNotFoundError" in skip.detail


def test_what_is_right_is_measured_beside_ours(outcome):
    for engine, own in ((OURS, {"core", "again"}), ("right", set())):
        for record in records(outcome, engine):
            assert not record.error and 0 < record.max_abs_err < 1e-6 and record.slices == 9
            assert {sample.program for sample in record.samples} == {
                "point",
                "twin",
                "twin_ahead",
                "fma",
                *own,
            }
            assert (record.overhead > 0) == (engine == "right")
    rows = outcome.points.set_index("engine")
    assert rows.loc["right", "kernel"].startswith("decode.right.head.f32")
    assert rows.loc["right", "kv_bytes"] == rows.loc[OURS, "kv_bytes"] == 2 * 2 * 2048 * 32 * 4
    assert rows.loc["right", "efficiency"] > 0


def test_nothing_that_an_engine_left_stays(outcome, outside):
    assert not list((outside / "tmp").rglob("*.ses"))


def test_both_are_of_the_same_rounds(outcome):
    def twins(engine):
        return [
            [s.seconds for s in r.samples if s.program == "twin"] for r in records(outcome, engine)
        ]

    assert twins(OURS) == twins("right")


@pytest.mark.parametrize("name", fakes.FAULTS)
def test_a_fault_never_yields_a_time(outcome, name):
    first, again = records(outcome, name.lower())
    assert not first.samples and fakes.FAULTS[name] in first.error
    assert again.error.startswith("given up after launch 0")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGKILL])
def test_no_stopped_process_is_left(outside, tmp_path, which):
    process = sweep(outside, ("right", "hanging"), tmp_path / "run", "--samples", "1000")
    family = _with_a_stopped_one(process)
    process.send_signal(which)
    process.communicate(timeout=60)
    assert not psutil.wait_procs(family, timeout=10)[1]
    assert process.returncode == (130 if which == signal.SIGINT else -which)


def _with_a_stopped_one(process):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        family = psutil.Process(process.pid).children(recursive=True)
        with suppress(psutil.NoSuchProcess):
            if any(each.status() == psutil.STATUS_STOPPED for each in family):
                return family
        time.sleep(0.01)
    raise AssertionError("no peer was ever stopped")
