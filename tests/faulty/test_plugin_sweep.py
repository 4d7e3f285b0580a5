"""Plug-ins in a real sweep. Their kernels are verified, measured and reported beside ours. Those
that lie, cheat or damage memory get no time, and cost the others nothing.
"""

import hashlib
import subprocess
import sys

import pytest

import kvbench
from kvbench.model import PLAIN, Point
from kvbench.native import default_library, forms
from tests.faulty import FAULTS, HONEST, build_plugin

SMALL = [
    "--axis",
    "op=decode",
    "--axis",
    "context=300",
    "--axis",
    "threads=1",
    "--axis",
    "layout=head",
]
HEADS = ["--axis", "q_heads=4", "--axis", "kv_heads=2", "--axis", "head_dim=256"]
SHORT = ["--launches", "2", "--samples", "2", "--sample-time", "0.001", "--patience", "5"]


def sweep(*asked):
    command = [sys.executable, "-m", "kvbench.cli", "sweep", *map(str, asked)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    made = build_plugin(folder / "mixed.so")
    done = sweep(
        "smoke",
        *SMALL,
        *HEADS,
        *SHORT,
        "--axis",
        "dtype=f32,f16",
        "--plugin",
        made,
        "--out",
        folder / "run",
    )
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
    """Each has its own twin and core roof. Ours are measured in both formats, theirs in the one
    they have.
    """
    _, run, _ = outcome
    assert len(records(run, "right")) == 2 and len(records(run, "flash")) == 4
    assert not any(record.error for record in records(run, "flash"))
    for found in records(run, "right"):
        assert not found.error and 0 < found.max_abs_err < 1e-5
        assert {sample.program for sample in found.samples} == {
            *("point", "fma", "twin", "twin_ahead", "core", "ceiling"),
            *(f"ceiling_{form}" for form in forms("read", default_library()) if form != PLAIN),
        }
    points = run.frame("points").set_index("variant")
    assert points.loc["right", "gbps"] > 0 and points.loc["right", "efficiency"] > 0


def test_they_have_processes_of_their_own(outcome):
    """In every other launch plug-ins come first: neither side always gets a fresh process."""
    _, run, _ = outcome
    for launch in (0, 1):
        visits = [
            r for r in run.records if r.launch == launch and not r.error.startswith("given up")
        ]
        parts = {
            foreign: {r.part for r in visits if is_foreign(r) == foreign}
            for foreign in (False, True)
        }
        assert len(parts[False]) == 1 and not parts[False] & parts[True]
        assert (min(parts[True]) < min(parts[False])) == bool(launch)


def is_foreign(record):
    return isinstance(record.point, Point) and record.point.variant != "flash"


@pytest.mark.parametrize(("variant", "said"), FAULTS.items())
def test_a_fault_never_yields_a_time(outcome, variant, said):
    found = records(outcome[1], variant)
    rows = outcome[1].frame("points").set_index("variant")
    assert len(found) == 2 and said in rows.loc[variant, "error"]
    assert rows.loc[[variant], ["gbps", "seconds", "efficiency"]].isna().all(axis=None)
    assert all(said in record.error and not record.samples for record in found)


def test_the_run_knows_what_was_measured(outcome):
    _, run, made = outcome
    manifest = run.manifest
    assert list(manifest.plan.plugin) == manifest.options["plugin"] == [str(made)]
    (engine,) = manifest.engines
    assert (engine.name, engine.path) == ("plug-in mixed.so", str(made))
    assert (
        engine.sha256 == hashlib.sha256(made.read_bytes()).hexdigest()
        and engine.version == "interface 4"
    )
    assert set(manifest.plan.foreign) == HONEST | FAULTS.keys()
    assert (
        manifest.versions["plugin"].startswith("mixed.so (")
        and "decode.right.head.f32." in manifest.versions["plugin"]
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
    command = [
        sys.executable,
        "-m",
        "kvbench.cli",
        "report",
        str(outcome[1].path),
        "--format",
        "json",
    ]
    whole, redacted = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["--redact"])
    )
    assert "mixed.so" in whole and "mixed.so" not in redacted and "right" in redacted
