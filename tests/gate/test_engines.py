"""A gate of two builds of another engine: its sides, and its conclusions from played records."""

import csv
import hashlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kvbench.errors import BadArgument, BadLibrary, Exit, NotComparable, Refused
from kvbench.gate import EngineRequest, engine_side, gate
from kvbench.gate.engines import rivals
from kvbench.model.verdict import CONTAMINATED, EQUIVALENT, REGRESSION
from kvbench.peers.builds import Build
from tests.cli.test_cli import output_of, refused
from tests.gate.made_duels import player, slower

SMALL = ("model=qwen3-0.6b", "context=256", "threads=1")
OPTIONS = ("--engine", "ggml", "--seed", "1", *(f"--{each}" for each in SMALL))
FAMILY = "decode.ggml.position.q8_0"


def made(path, content=b""):
    """A file that begins like a library of this machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(Path("/proc/self/exe").read_bytes()[:64] + content)
    return str(path)


@pytest.fixture
def paths(tmp_path):
    """Two copies of one library."""
    return [made(tmp_path / name / "libggml.so") for name in ("a", "b")]


@pytest.fixture
def planned(paths):
    """The points for two builds of ggml."""

    def of(base=paths[0], head=paths[1], axes=SMALL, **asked):
        sides = (engine_side("ggml", each) for each in (base, head))
        return rivals(*sides, EngineRequest("ggml", axes=axes, seed=1, **asked))

    return of


# ---- sides ---------------------------------------------------------------------------------------


def test_a_library_is_told_by_its_digest(paths, monkeypatch):
    sha256 = hashlib.sha256(Path(paths[0]).read_bytes()).hexdigest()
    monkeypatch.chdir(Path(paths[0]).parent)
    side = engine_side("ggml", "libggml.so")
    assert side.text == f"libggml.so (sha256 {sha256[:8]})"
    assert side.build == Build(path=paths[0])


def test_an_interpreter_is_told_by_the_version_that_it_has(tmp_path):
    """Two names of one environment are the same build."""
    (tmp_path / "link").symlink_to(sys.prefix)
    names = sys.executable, str(tmp_path / "link" / "bin" / Path(sys.executable).name)
    sides = [engine_side("numpy", name) for name in names]
    assert [side.build for side in sides] == [Build(python=name) for name in names]
    assert sides[0].text.startswith(f"{sys.executable} ({np.__version__}, sha256 ")
    assert sides[0].code == sides[1].code


@pytest.mark.parametrize(
    ("engine", "name", "kind", "said"),
    [
        ("ggml", "HEAD", BadArgument, "neither a library nor an interpreter"),
        ("ggml", "text", BadLibrary, "is not a library"),
        ("ggml", "folder", BadLibrary, "it is a folder"),
        ("numpy", "libggml.so", Refused, "only takes its own library"),
        ("numpy", "python", Refused, "Permission denied"),
    ],
)
def test_a_file_that_is_not_a_side_is_refused(tmp_path, engine, name, kind, said):
    made(tmp_path / "libggml.so")
    for each in ("text", "python"):
        (tmp_path / each).write_text("text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(kind, match=said):
        engine_side(engine, str(tmp_path / name))


# ---- points --------------------------------------------------------------------------------------


def test_points_are_of_the_layout_that_the_engine_keeps(planned, paths):
    plan = planned().plan
    assert {point.engine for point in plan.points} == {"ggml"}
    assert {point.layout for point in plan.points} == {"position"}
    assert {point.dtype for point in plan.points} == {"f16", "bf16", "q8_0"}
    assert plan.contest and not plan.library and not plan.against
    assert plan.peers == dict(zip(("ggml@base", "ggml@head"), paths, strict=True))


def test_points_are_those_that_were_asked_for(planned):
    axes = ("model=qwen3-0.6b,gpt-2", "context=256,512", "dtype=q8_0", "threads=1")
    points = planned(axes=axes).plan.points
    found = sorted((point.shape.q_heads, point.shape.context, point.dtype) for point in points)
    assert found == [(heads, tokens, "q8_0") for heads in (12, 16) for tokens in (256, 512)]


@pytest.mark.parametrize("linked", [False, True])
def test_the_same_build_is_not_measured(planned, paths, tmp_path, linked):
    os.symlink(paths[0], tmp_path / "link.so")
    head = str(tmp_path / "link.so") if linked else paths[0]
    found = planned(head=head)
    assert not found.plan.points
    assert found.unmeasured == "3 points not measured: base and head are the same build"
    assert gate(found)[0].verdict == EQUIVALENT
    assert len(planned(head=head, every=True).plan.points) == 3


def test_points_that_the_engine_lacks_are_told(planned):
    with pytest.raises(BadArgument, match="ggml@base has no position i8"):
        planned(axes=("dtype=i8", *SMALL))


def test_points_that_do_not_fit_memory_are_refused(planned, monkeypatch):
    monkeypatch.setattr("kvbench.gate.engines.available_memory", lambda: 1 << 20)
    with pytest.raises(Refused, match="fits memory"):
        planned()


# ---- verdicts ------------------------------------------------------------------------------------


def test_two_copies_of_a_build_are_the_same(planned):
    found, _ = gate(planned(), execute=player())
    assert found.verdict == EQUIVALENT and len(found.points) == 3 and not found.missing


def test_a_slower_build_is_a_regression_and_names_its_family(planned):
    found, _ = gate(planned(), execute=player(slower(0.1, FAMILY)))
    assert found.verdict == REGRESSION
    verdicts = {
        row.name.partition(".avx")[0].partition("/")[0]: row.verdict for row in found.points
    }
    assert {name for name, word in verdicts.items() if word == REGRESSION} == {
        name for name in verdicts if name.startswith(FAMILY)
    }
    changed = [row for row in found.families if row.verdict == REGRESSION]
    assert changed and all(row.name.startswith(FAMILY) for row in changed)
    assert all(0.09 < row.effect < 0.11 for row in changed)
    assert "control: 1 point in" in " ".join(found.notes)


def test_a_control_that_changes_contaminates(planned):
    """A player that treats controls like other points makes head slow there too."""

    def execute(job):
        return player(slower(0.1, FAMILY))(replace(job, plan=replace(job.plan, controls=())))

    found, _ = gate(planned(), execute=execute)
    assert found.verdict == CONTAMINATED and "controls alarmed" in " ".join(found.notes)


@pytest.mark.parametrize("change", [os.unlink, lambda path: made(Path(path), b"another")])
def test_a_build_that_changes_meanwhile_cannot_be_compared(planned, paths, change):
    def execute(job):
        if job.launch == 3:
            change(paths[1])
        return player()(job)

    with pytest.raises(NotComparable, match="head changed while it was measured"):
        gate(planned(), execute=execute)


# ---- the command ---------------------------------------------------------------------------------


SUITE = """
question = "Is it slower?"
launches = 1
sample_time = 0.001
[axes]
q_heads = 4
kv_heads = 2
head_dim = 32
context = 64
layers = 3
threads = 1
dtype = "f32"
engine = "all"
"""


def test_nothing_is_played(monkeypatch, capsys, tmp_path):
    """One interpreter on both sides, in a single launch: nothing is clear."""
    monkeypatch.setattr("kvbench.cli.compare.gate.say_busy", lambda hint: None)
    suite, base = tmp_path / "x.toml", sys.executable
    suite.write_text(SUITE)
    sides = "--engine", "numpy", "--base", base, "--head", base, "--every"
    how = "--suite", suite, "--out", tmp_path / "out"
    said = output_of(capsys, "gate", *sides, *how, "--json", code=Exit.UNCLEAR)
    (point,) = json.loads(said)["points"]
    assert point["point"].startswith("decode.numpy.head.f32") and point["base_gbps"] > 0
    with (tmp_path / "out" / "pairs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["stage"] == "screen" and len(rows) >= 6
    assert all(float(row["base_s"]) > 0 and float(row["head_s"]) > 0 for row in rows)


def failing(job):
    for record in player()(job):
        broken = record.point.dtype == "q8_0"
        yield replace(record, samples=(), error="ggml@head is off by 7") if broken else record


@pytest.mark.parametrize(
    ("execute", "code", "said"),
    [
        (player(), Exit.FINE, EQUIVALENT),
        (player(slower(0.1, FAMILY)), Exit.FAILED, "REGRESSION: decode.ggml"),
        (player(noise=0.5), Exit.UNCLEAR, "would have been seen"),
        (failing, Exit.ERRORS, "ggml@head is off by 7"),
    ],
)
def test_exit_codes(monkeypatch, capsys, paths, execute, code, said):
    monkeypatch.setattr("kvbench.runner.launch", execute)
    monkeypatch.setattr("kvbench.cli.compare.gate.say_busy", lambda hint: None)
    base, head = paths
    assert said in output_of(capsys, "gate", "--base", base, "--head", head, *OPTIONS, code=code)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("--model gpt-2 --threads 1", Exit.USAGE, "--model --threads works with --engine only"),
        ("--engine ggml --isa scalar", Exit.USAGE, "--isa works with our kernels only"),
        ("--engine nosuch", Exit.USAGE, "--engine: 'nosuch'"),
        ("--engine=", Exit.USAGE, "--engine: ''"),
        ("--engine ggml --dtype i8", Exit.USAGE, "ggml@base has no position i8"),
        ("--engine ggml --only nothing.*", Exit.USAGE, "--only nothing.*"),
        ("--engine numpy", Exit.REFUSED, "only takes its own library"),
        ("--engine ggml --suite gate", Exit.USAGE, "only our engine"),
    ],
)
def test_an_impossible_request_is_one_line(capsys, paths, options, code, said):
    base, head = paths
    asked = "--base", base, "--head", head, *options.split()
    refused(capsys, "gate", *asked, words=(said,), code=code)
