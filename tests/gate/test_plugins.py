"""A gate of two builds of a plug-in, and other files that may be given for one."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from kvbench.errors import Exit
from kvbench.gate import Request, build
from kvbench.gate.duels import pairs
from kvbench.gate.kernels import rivals
from kvbench.model.verdict import EQUIVALENT
from kvbench.native import library_path
from kvbench.runner import launch
from tests.cli.test_cli import errors_of, output_of
from tests.made_job import job
from tests.raw import ROOT

INSTALLED = library_path()
_SCORED = "score *= w->scale;"


def _example(path, slow=""):
    """The documented plug-in. `slow`: extra work for each score."""
    text = (ROOT / "kernels" / "example" / "plugin.c").read_text()
    assert text.count(_SCORED) == 1
    path.with_suffix(".c").write_text(text.replace(_SCORED, f"{_SCORED}{slow}"))
    command = [
        "cc",
        "-O2",
        "-march=native",
        "-shared",
        "-fPIC",
        f"-I{ROOT / 'kernels'}",
        path.with_suffix(".c"),
    ]
    subprocess.run([*command, "-lm", "-o", path], check=True)
    return build(str(path))


def test_two_builds_of_a_plug_in_are_measured_on_its_own_points(tmp_path):
    """Their bytes decide which is base and which is head; a visit that is really made has pairs."""
    base = _example(tmp_path / "base.so")
    head = _example(tmp_path / "head.so", " for (volatile int i = 0; i < 100; i++) { }")
    found = rivals(base, head, Request(seed=1), tmp_path / "copies")
    plan = found.plan
    assert (
        {point.variant for point in plan.points} == {"textbook"}
        and not found.unmeasured
        and not found.missing
    )
    assert {point.layout for point in plan.points} == {"head", "position", "paged"}
    assert {point.residency for point in plan.points} == {"rotate", "hot"}
    assert [Path(file).read_bytes() for file in (*plan.plugin, *plan.against_plugin)] == [
        side.library.read_bytes() for side in (base, head)
    ]
    point = min(plan.points, key=lambda each: each.shape.context)
    (tmp_path / "answers").mkdir()
    brief = replace(plan, samples=2, sample_time=0.001)
    (record,) = launch(job(brief, [point], folder=tmp_path / "answers"))
    assert not record.error and len(list(pairs(record))) == 2


def test_one_plug_in_twice_is_the_same(tmp_path, capsys):
    path = _example(tmp_path / "one.so").library
    said = output_of(
        capsys,
        "gate",
        "--base",
        str(path),
        "--head",
        str(shutil.copy(path, tmp_path / "two.so")),
        code=Exit.FINE,
    )
    assert (
        said.startswith(EQUIVALENT) and "base and head are the same plug-in, byte for byte" in said
    )


def test_a_file_that_is_neither_is_refused(tmp_path, capsys):
    """Another project's library is not even loaded: this one would end the process."""
    source, made = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text(
        "void _exit(int); __attribute__((constructor)) static void loaded(void) { _exit(0); }"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, source], check=True)
    said = errors_of(capsys, "gate", "--base", str(made), "--head", str(made), code=Exit.REFUSED)
    assert "neither a kernel library of kvbench nor a plug-in" in said and "--engine NAME" in said
    assert len(said.splitlines()) == 1 and "undefined symbol" not in said


def test_a_plug_in_is_not_held_against_a_library(tmp_path, capsys):
    path = _example(tmp_path / "one.so").library
    assert "is a plug-in, but libkvbench.so" in errors_of(
        capsys, "gate", "--base", str(path), "--head", str(INSTALLED), code=Exit.NOTHING
    )
