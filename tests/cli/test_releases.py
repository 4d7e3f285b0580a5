"""The workflows that release wheels and measure an Arm machine: their commands exist, nothing is
published by a push, and what others wrote is never run.
"""

import os
import re
import subprocess

import pytest
import yaml

from tests.cli.test_workflows import WORKFLOWS, parsed
from tests.raw import ROOT

PATHS = {name: WORKFLOWS / f"{name}.yml" for name in ("wheels", "arm")}
FILES = {name: yaml.safe_load(path.read_text()) for name, path in PATHS.items()}
STEPS = [
    (f"{name} {job}", step)
    for name, workflow in FILES.items()
    for job, facts in workflow["jobs"].items()
    for step in facts["steps"]
]
LINES = [
    (place, line.strip()) for place, step in STEPS for line in step.get("run", "").splitlines()
]
CALLS = [(place, line) for place, line in LINES if line.startswith("kvbench ")]
JOBS = FILES["wheels"]["jobs"]


def test_arm_asks_all_questions():
    assert [line.split()[1] for place, line in CALLS if place == "arm measure"] == [
        "doctor",
        "verify",
        "sweep",
        "score",
        "score",
    ]


@pytest.mark.parametrize(("place", "line"), [call for call in CALLS if "--version" not in call[1]])
def test_every_command_is_one(place, line):
    parsed(line)


def test_nothing_is_published_but_by_hand():
    hand = "github.event_name == 'workflow_dispatch' && inputs.tag != ''"
    assert JOBS["publish"]["if"] == hand and JOBS["publish"]["environment"] == "pypi"
    for name, workflow in FILES.items():
        assert workflow["permissions"] == {"contents": "read"}, name
        for job, facts in workflow["jobs"].items():
            asked = facts.get("permissions", {})
            assert asked == ({"id-token": "write"} if job == "publish" else {}), job
    assert FILES["arm"][True].keys() == {"workflow_dispatch"}  # YAML reads `on` as true
    publishing = [place for place, step in STEPS if "pypi-publish" in step.get("uses", "")]
    assert publishing == ["wheels publish"]


def test_only_checked_files_are_published():
    """Each job waits for the one before it."""
    needs = {job: facts.get("needs") for job, facts in JOBS.items()}
    assert needs == {"sdist": None, "wheels": "sdist", "check": "wheels", "publish": "check"}
    assert JOBS["check"]["strategy"] == JOBS["wheels"]["strategy"]


@pytest.mark.parametrize(("tag", "code"), [("v1.2.3", 0), ("v1.2.4", 1), ("$(touch x)", 1)])
def test_a_tag_of_another_version_is_not_published(tag, code, tmp_path):
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "kvbench-1.2.3.tar.gz").touch()
    (script,) = [step["run"] for _, step in STEPS if step.get("name") == "version"]
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env=os.environ | {"TAG": tag},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code and (tag in done.stdout) == bool(code)
    assert not (tmp_path / "x").exists()


def test_a_score_that_is_invalid_is_packed(tmp_path):
    """And the job ends as the score did."""
    (script,) = [step["run"] for _, step in STEPS if step.get("name") == "score"]
    said = 'kvbench() { echo "$*" >> said; case "$*" in *--pack*) ;; *) return 3 ;; esac; }\n'
    given = os.environ | {"NAME": "Two words"}
    done = subprocess.run(["bash", "-e", "-c", said + script], cwd=tmp_path, env=given, check=False)
    assert done.returncode == 3
    assert (tmp_path / "said").read_text().splitlines() == [
        "score --out runs/score",
        "score --pack runs/score --out runs/score.tar.gz --name Two words",
    ]


def test_nothing_that_others_wrote_is_run():
    assert "${{" not in "\n".join(line for _, line in LINES)


def test_the_release_page_names_what_there_is():
    page = (ROOT / ".github" / "CONTRIBUTING.md").read_text().partition("## How a release")[2]
    assert {"wheels.yml", "arm.yml"} <= set(re.findall(r"workflows/([\w.]+)\)", page))
    assert JOBS["publish"]["environment"] in re.findall(r"`(\w+)`", page)
