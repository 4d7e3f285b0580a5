"""The workflows of results/gate-your-engine.md run exactly as printed there. Small repositories
stand in for llama.cpp and for a user's kernel, and visits are played. With ggml itself this was
tried by hand, because ggml takes minutes to build.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kvbench.errors import Exit
from tests.cli.test_workflows import CALLED, KVBENCH
from tests.gate.test_builds import git
from tests.processes import succeeds
from tests.raw import ROOT

PAGE = (ROOT / "results" / "gate-your-engine.md").read_text()
ENGINE, PLUGIN = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
EXAMPLE = (ROOT / "kernels" / "example" / "plugin.c").read_text()
CMAKE = "cmake_minimum_required(VERSION 3.18)\nproject(ggml C)\nadd_library(ggml ggml.c)\n"
FILES = {
    ENGINE: {"CMakeLists.txt": CMAKE, "ggml.c": "int ggml(void) { return 1; }\n"},
    PLUGIN: {"my.c": EXAMPLE},
}
EACH = pytest.mark.parametrize("workflow", FILES, ids=["engine", "plugin"])


def gating(workflow):
    """Return the script of the step that runs the gate."""
    steps = yaml.safe_load(workflow)["jobs"]["gate"]["steps"]
    (script,) = [step["run"] for step in steps if "kvbench gate" in step.get("run", "")]
    return script


@EACH
def test_the_service_would_take_it(workflow, tmp_path):
    path = tmp_path / "kvbench.yml"
    path.write_text(workflow)
    schema = ("--builtin-schema", "vendor.github-workflows", str(path))
    succeeds([sys.executable, "-m", "check_jsonschema", *schema])
    checkout, *_ = yaml.safe_load(workflow)["jobs"]["gate"]["steps"]
    assert checkout["with"]["fetch-depth"] == 0


@EACH
def test_it_builds_both_and_ends_as_the_gate_does(workflow, tmp_path):
    """A pull request has one commit, which makes its side a tenth slower."""
    project, path = tmp_path / "project", tmp_path / "bin"
    for folder in (project, path):
        folder.mkdir()
    git(project, "init", "--initial-branch=main")
    for change in ("", "int changed = 1;\n"):
        for name, text in FILES[workflow].items():
            (project / name).write_text(text + change if name.endswith(".c") else text)
        git(project, "add", ".")
        git(project, "commit", "-m", "one")
    for name, text in (("kvbench", CALLED), ("kvbench.py", KVBENCH)):
        (path / name).write_text(text)
        (path / name).chmod(0o755)
    own = {
        "PATH": os.pathsep.join([str(path), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "BASE": "HEAD~1",
        "SLOWER": "0.1",
        "SLOWED": "decode.",
        "NOISE": "0.01",
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", gating(workflow)],
        cwd=project,
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == Exit.FAILED, done.stdout + done.stderr
    summary = (tmp_path / "summary.md").read_text()
    assert "## kvbench gate: REGRESSION: " in summary and "HEAD~1 (" in summary.replace("\\", "")


@EACH
def test_only_an_unclear_verdict_leaves_the_job_green(workflow):
    for code in Exit:
        script = f"kvbench() {{ return {int(code)}; }}\n{gating(workflow)}"
        given = {"GITHUB_STEP_SUMMARY": "x", "BASE": "main"}
        ended = subprocess.run(["bash", "-e", "-c", script], env=given, check=False)
        assert ended.returncode == (0 if code == Exit.UNCLEAR else code)
