"""The workflow files call kvbench as it is: every option exists, and every exit code ends in what it should."""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from kvbench.cli._program import kvbench as program
from kvbench.errors import Exit
from kvbench.exports import kinds

ROOT = Path(__file__).resolve().parents[2]
GITHUB = yaml.safe_load((ROOT / ".github" / "workflows" / "kvbench.yml").read_text())
GITLAB = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
SCRIPTS = {
    **{
        f"github {job}": [step["run"] for step in facts["steps"] if "run" in step]
        for job, facts in GITHUB["jobs"].items()
    },
    **{f"gitlab {job}": facts["script"] for job, facts in GITLAB.items() if "script" in facts},
}
LINES = {name: "\n".join(lines).replace("\\\n", " ").splitlines() for name, lines in SCRIPTS.items()}
CALLS = [(name, line.strip()) for name, lines in LINES.items() for line in lines if line.strip().startswith("kvbench ")]
GATING = {name: line for name, line in CALLS if "gate" in line}


def arguments(line):
    return shlex.split(line.partition("||")[0])[1:]


def parsed(line):
    """As the program itself reads it, up to where it would begin."""
    name, *rest = arguments(line)
    found = program.get_command(click.Context(program), name)
    assert found, f"there is no kvbench {name}"
    return found.make_context(name, rest).params


def test_both_do_the_same():
    jobs = {"test", "gate", "nightly"}
    assert GITHUB["jobs"].keys() == jobs and GITLAB.keys() - {"default"} == jobs
    for job in jobs:
        commands = [
            [arguments(line)[0] for name, line in CALLS if name == f"{place} {job}"] for place in ("github", "gitlab")
        ]
        assert commands[0] == commands[1]
    assert {arguments(line)[0] for _, line in CALLS} == {"gate", "doctor", "sweep", "compare"}


@pytest.mark.parametrize(("job", "line"), CALLS)
def test_every_command_is_one(job, line):
    asked = parsed(line)
    for export in asked.get("exports", ()):
        kind, _, path = export.partition("=")
        assert kind in kinds() and path


@pytest.mark.parametrize("job", GATING)
def test_the_verdict_is_kept(job):
    """A JUnit file is written where the job looks for it; and compare is asked for its exit code."""
    asked = parsed(GATING[job])
    (report,) = (export.removeprefix("junit=") for export in asked["exports"] if export.startswith("junit="))
    place, name = job.split()
    if place == "gitlab":
        assert GITLAB[name]["artifacts"]["reports"]["junit"] == report
        assert GITLAB[name]["artifacts"]["when"] == "always"
    else:
        last = GITHUB["jobs"][name]["steps"][-1]
        assert last["if"] == "always()" and report in last["with"]["path"].split()
    assert "--gate" in GATING[job] or arguments(GATING[job])[0] == "gate"


@pytest.mark.parametrize("job", [job for job in GATING if job.startswith("github")])
@pytest.mark.parametrize("code", Exit)
def test_github_ends_as_the_gate_does_but_for_what_is_unclear(job, code, tmp_path):
    """The step runs with a kvbench that does nothing but end so."""
    (script,) = (script for script in SCRIPTS[job] if "--export" in script)
    fake = tmp_path / "kvbench"
    fake.write_text(
        f"#!/bin/sh\nfor word; do case $word in annotations=*) echo ::word > ${{word#*=}}; esac; done\nexit {code}\n"
    )
    fake.chmod(0o755)
    surroundings = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": "summary",
        "BASE": "b",
        "MACHINE": "m",
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if code == Exit.UNCLEAR else code)
    assert done.stdout == "::word\n" and not done.stderr


@pytest.mark.parametrize("job", [job.split()[1] for job in GATING if job.startswith("gitlab")])
def test_gitlab_warns_where_it_is_unclear(job):
    assert GITLAB[job]["allow_failure"] == {"exit_codes": Exit.UNCLEAR}


def test_the_base_is_there():
    assert GITHUB["jobs"]["gate"]["steps"][0]["with"]["fetch-depth"] == 0
    assert GITLAB["gate"]["variables"]["GIT_DEPTH"] == 0


def test_what_is_installed_and_run_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = "\n".join(line for lines in LINES.values() for line in lines)
    assert set(re.findall(r"\.\[(\w+)\]", text)) <= extras.keys()
    assert os.access(ROOT / ".ci" / "run", os.X_OK) and ".ci/run" in text


def test_nothing_that_others_wrote_is_run():
    """What stands in a pull request, such as the name of its branch, comes as a variable and never as code."""
    assert "${{" not in "\n".join(line for lines in LINES.values() for line in lines)
