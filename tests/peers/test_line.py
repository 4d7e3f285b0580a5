"""Third-party peers in a real sweep: right ones are measured beside ours, and each fault costs only
its own rows.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kvbench
from kvbench.model import OURS, Point
from tests.peers import fakes
from tests.peers.conftest import NUMPY
from tests.peers.outside import register

SWEEP = "import json, sys, kvbench; kvbench.sweep(**json.loads(sys.argv[1]))"
SHORT = {"launches": 2, "samples": 3, "sample_time": 0.002, "patience": 8}
BUILDS = ("right@one", "right@two")
OF_A_PEER = {  # modules of ours that run in its process
    "kvbench.apart",
    "kvbench.errors",
    "kvbench.leftovers",
    "kvbench.named",
    "kvbench.peers",
    "kvbench.peers.builds",
    "kvbench.peers.code",
    "kvbench.peers.child",
    "kvbench.peers.interface",
    "kvbench.peers.known",
    "kvbench.peers.numpy",
}
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
q_len = 2
sinks = "heads"
softcap = 20
alibi = 8
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A folder of packages, one of which has peers."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "fakes.py").write_text(Path(fakes.__file__).read_text())
    named = (*fakes.RIGHT, *fakes.FAULTS, *fakes.LATER)
    points = [f"{name.lower()} = fakes:{name}" for name in named]
    register(folder, "fakes", [*points, "gone = nowhere:Gone"])
    (folder / "peers.toml").write_text(SUITE)
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "right.so").write_text(name)
    (folder / "tmp").mkdir()
    return folder


@pytest.fixture(scope="module")
def outcome(outside, interpreter):
    """One sweep of all peers, with two builds of one, and two in another interpreter."""
    vanishing = interpreter.with_name("vanishing")
    vanishing.symlink_to("python")
    builds = [f"right={outside / name / 'right.so'}" for name in ("one", "two")]
    others = [name.lower() for name in (*fakes.RIGHT[1:], *fakes.FAULTS, *fakes.LATER)]
    asked = {
        "suite": str(outside / "peers.toml"),
        "out": str(outside / "run"),
        "peers": [*builds, *others, "gone"],
        "pythons": [f"inward={interpreter}", f"vanishing={vanishing}"],
        **SHORT,
    }
    environment = {**os.environ, "PYTHONPATH": str(outside), "TMPDIR": str(outside / "tmp")}
    command = [sys.executable, "-c", SWEEP, json.dumps(asked)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return kvbench.load(outside / "run")


def records(run, engine):
    return [r for r in run.records if isinstance(r.point, Point) and r.point.engine == engine]


def test_all_have_a_record_in_each_launch(outcome):
    points = [record.point.name for record in outcome.records]
    assert sorted(points) == sorted(2 * [point.name for point in outcome.manifest.plan.points])
    (skip,) = outcome.manifest.skips
    assert skip.facts == {"engine": "gone"} and "ModuleNotFoundError" in skip.detail


def test_a_right_engine_is_measured_beside_ours(outcome):
    for engine, own in ((OURS, {"core", "again"}), (BUILDS[0], set())):
        for record in records(outcome, engine):
            assert not record.error and 0 < record.max_abs_err < 1e-6 and record.slices == 9
            assert {sample.program for sample in record.samples} == {
                "point",
                "twin",
                "twin_ahead",
                "fma",
                *own,
                *({"core_off"} if own and record.ran != "off" else ()),
            }
            assert (record.overhead > 0) == (engine != OURS)
    rows = outcome.points.set_index("engine")
    assert rows.loc[BUILDS[0], "kernel"].startswith(f"decode.{BUILDS[0]}.head.f32")
    assert rows.loc[BUILDS[0], "kv_bytes"] == rows.loc[OURS, "kv_bytes"] == 2 * 2 * 2048 * 32 * 4
    assert rows.loc[BUILDS[0], "efficiency"] > 0


def test_nothing_that_an_engine_left_stays(outcome, outside):
    assert not list((outside / "tmp").rglob("*.ses"))


def test_both_are_of_the_same_rounds(outcome):
    def twins(engine):
        return [
            [s.seconds for s in r.samples if s.program == "twin"] for r in records(outcome, engine)
        ]

    assert twins(OURS) == twins(BUILDS[0])


@pytest.mark.parametrize("name", fakes.FAULTS)
def test_a_fault_never_yields_a_time(outcome, name):
    first, again = records(outcome, name.lower())
    assert not first.samples and fakes.FAULTS[name] in first.error
    assert again.error.startswith("given up after launch 0")


@pytest.mark.parametrize("name", fakes.RIGHT[1:])
def test_what_engines_may_do(outcome, name):
    """A flood of prints, a copy of the process that returns, another interpreter."""
    for record in records(outcome, name.lower()):
        assert not record.error and record.samples


@pytest.mark.parametrize("name", fakes.LATER)
def test_a_fault_in_the_middle_leaves_what_was_before(outcome, name):
    first, again = records(outcome, name.lower())
    assert first.samples and not first.error
    assert not again.samples and fakes.LATER[name] in again.error


def test_two_builds_are_two_rows_of_a_line(outcome, outside):
    one, two = (records(outcome, word) for word in BUILDS)
    assert [[s.seconds for s in r.samples if s.program == "twin"] for r in one] == [
        [s.seconds for s in r.samples if s.program == "twin"] for r in two
    ]
    engines = {engine.name: engine for engine in outcome.manifest.engines}
    assert [engines[word].path for word in BUILDS] == [
        str(outside / name / "right.so") for name in ("one", "two")
    ]
    assert len({engines[word].sha256 for word in BUILDS}) == 2


def test_another_interpreter_needs_numpy_alone(outcome, interpreter):
    for record in records(outcome, "inward"):
        modules = record.flags.split()
        tops = {name.partition(".")[0] for name in modules} - {*sys.stdlib_module_names}
        # a distribution may have a sitecustomize of its own
        assert tops - {"__main__", "__mp_main__", "sitecustomize"} == {"fakes", "kvbench", "numpy"}
        assert {name for name in modules if name.startswith("kvbench.")} == OF_A_PEER
    engines = {engine.name: engine for engine in outcome.manifest.engines}
    assert engines["inward"].version == NUMPY and engines["inward"].python == str(interpreter)
    assert not engines["right@one"].python
