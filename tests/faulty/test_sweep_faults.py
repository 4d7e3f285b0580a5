"""Kernels that crash, hang or lie, in a real sweep: each is an error record with a reason, and the rest is measured."""

import os
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

import kvbench
from kvbench.model import Point, Probe
from tests.faulty import build

MARK = {"KVBENCH_TEST": f"faults of {os.getpid()}"}
SMALL = ["--axis", "op=decode", "--axis", "context=64", "--axis", "threads=1", "--axis", "layout=head"]
SHORT = ["--launches", "2", "--samples", "1", "--sample-time", "0.001"]


def sweep(library, out, *axes):
    asked = [*SMALL, *SHORT, "--axis", "model=falcon-7b", *axes, "--library", library, "--out", out]
    command = [sys.executable, "-m", "kvbench.cli", "sweep", "smoke", *map(str, asked)]
    return subprocess.run(
        command, env={**os.environ, **MARK}, capture_output=True, text=True, timeout=300, check=False
    ), kvbench.load(out)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faulty")
    library = build(folder)
    lies = sweep(library, folder / "lies", "--axis", "dtype=f16,i8", "--axis", "variant=all")
    return *lies, *sweep(library, folder / "dies", "--axis", "dtype=f32,bf16", "--patience", "8")


def records(run, **facts):
    """Those of points, by launch."""
    found = [r for r in run.records if isinstance(r.point, Point)]
    return [r for r in found if all(getattr(r.point, name) == value for name, value in facts.items())]


def test_the_sweep_goes_on_and_says_so(outcome):
    done, run, crashed, hard = outcome
    for process in (done, crashed):
        assert process.returncode == 4, process.stderr
        assert "Traceback" not in process.stdout + process.stderr
        assert "with errors" in process.stdout
    for found in (run, hard):
        visits = [(r.launch, r.point.name) for r in found.records]
        assert len(visits) == len(set(visits)) == 2 * len(found.manifest.plan.points)


def test_a_right_kernel_is_measured(outcome):
    first, second = records(outcome[1], dtype="f16", variant="flash")
    assert not first.error and not second.error and first.samples and second.samples


@pytest.mark.parametrize(
    ("dtype", "variant", "said"),
    [("i8", "flash", "off by 1"), ("f16", "perhead", "off by nan"), ("f16", "twopass", "off by 1")],
)
def test_a_wrong_answer_never_yields_a_time(outcome, dtype, variant, said):
    """The last one answers right at first: it is caught after its samples, and they are dropped."""
    run = outcome[1]
    for record in records(run, dtype=dtype, variant=variant):
        assert said in record.error and not record.samples
    points = run.frame("points")
    row = points[(points["dtype"] == dtype) & (points["variant"] == variant)]
    assert len(row) == 1 and row["gbps"].isna().all() and said in row["error"].iloc[0]


@pytest.mark.parametrize(("dtype", "said"), [("f32", "SIGSEGV"), ("bf16", "hangs")])
def test_a_crash_or_an_endless_loop_is_a_reason(outcome, dtype, said):
    first, second = records(outcome[3], dtype=dtype)
    assert said in first.error and said in second.error and "given up" in second.error
    assert not first.samples and not second.samples


def test_ceilings_are_measured_all_the_same(outcome):
    for run in (outcome[1], outcome[3]):
        probes = [r for r in run.records if isinstance(r.point, Probe)]
        assert probes and all(r.samples and not r.error for r in probes)


def test_nobody_is_left(outcome):
    """The one that looped for ever is dead."""
    assert not [process for process in psutil.process_iter() if MARK.items() <= surroundings(process).items()]


def surroundings(process):
    with suppress(psutil.Error):
        return process.environ()
    return {}
