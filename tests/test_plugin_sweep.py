"""A plug-in in a real sweep: its kernels are verified, measured and reported beside ours, and the wrong ones are not."""

import subprocess
import sys

import pytest

import kvbench
from kvbench.model import Point
from tests.faulty import build_plugin

SMALL = ["--axis", "op=decode", "--axis", "context=64", "--axis", "threads=1", "--axis", "layout=head"]
SHORT = ["--launches", "2", "--samples", "1", "--sample-time", "0.001"]


def sweep(*asked):
    command = [sys.executable, "-m", "kvbench.cli", "sweep", *map(str, asked)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    made = build_plugin(folder / "mixed.so")
    axes = ["--axis", "model=falcon-7b", "--axis", "dtype=f32,f16"]
    done = sweep("smoke", *SMALL, *SHORT, *axes, "--plugin", made, "--out", folder / "run")
    return done, kvbench.load(folder / "run"), made


def records(run, variant):
    return [r for r in run.records if isinstance(r.point, Point) and r.point.variant == variant]


def test_the_sweep_goes_on_and_says_so(outcome):
    done, run, _ = outcome
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stdout + done.stderr and "with errors" in done.stdout
    visits = [(r.launch, r.point.name) for r in run.records]
    assert len(visits) == len(set(visits)) == 2 * len(run.manifest.plan.points)


def test_they_are_measured_beside_ours(outcome):
    """Each with its own twin and core roof; ours in both formats, theirs in the one they have."""
    _, run, _ = outcome
    assert len(records(run, "right")) == 2 and len(records(run, "flash")) == 4
    for found in records(run, "right"):
        assert not found.error and 0 < found.max_abs_err < 1e-5
        assert {sample.program for sample in found.samples} == {"point", "twin", "twin_ahead", "core"}
    points = run.frame("points").set_index("variant")
    assert points.loc["right", "gbps"] > 0 and points.loc["right", "efficiency"] > 0


def test_they_are_compared_with_ours(outcome):
    rows = outcome[1].findings().overall
    pairs = rows[rows["factor"] == "variant"]
    assert [(row.base, row.other, row.pairs) for row in pairs.itertuples() if row.pairs] == [("flash", "right", 1)]


@pytest.mark.parametrize(
    ("variant", "said"), [("wrong", "off by"), ("nans", "off by nan"), ("late", "off by"), ("crash", "SIGSEGV")]
)
def test_a_wrong_one_never_yields_a_time(outcome, variant, said):
    found = records(outcome[1], variant)
    assert len(found) == 2 and all(said in record.error and not record.samples for record in found)


def test_the_run_knows_what_was_measured(outcome):
    _, run, made = outcome
    manifest = run.manifest
    assert manifest.plan.plugin == manifest.options["plugin"] == str(made)
    assert (
        manifest.versions["plugin"].startswith("mixed.so (") and "decode.right.head.f32." in manifest.versions["plugin"]
    )


def test_a_changed_plug_in_is_not_continued(outcome):
    _, run, made = outcome
    assert sweep("--out", run.path, "--resume").returncode == 4  # nothing is left to do
    made.unlink()  # what is mapped must not change
    build_plugin(made, "-DLATE=7")
    done = sweep("--out", run.path, "--resume")
    assert done.returncode == 6 and "plug-in" in done.stderr and len(done.stderr.splitlines()) == 1
    made.unlink()
    done = sweep("--out", run.path, "--resume")
    assert done.returncode == 5 and "mixed.so" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_redacted_report_does_not_name_it(outcome):
    command = [sys.executable, "-m", "kvbench.cli", "report", str(outcome[1].path), "--format", "json"]
    whole, redacted = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["--redact"])
    )
    assert "mixed.so" in whole and "mixed.so" not in redacted and "right" in redacted
