"""The workflow files call kvbench as it is: every option exists, and every exit code ends in what
it should.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib

import click
import pytest
import yaml

from kvbench.cli._program import kvbench as program
from kvbench.errors import Exit
from kvbench.exports import kinds
from kvbench.native import library_path
from tests.history import made
from tests.processes import succeeds
from tests.raw import ROOT
from tests.report.made import RUN

WORKFLOWS, ACTION = (
    ROOT / ".github" / "workflows",
    ROOT / ".github" / "actions" / "gate" / "action.yml",
)
GITHUB = yaml.safe_load((WORKFLOWS / "kvbench.yml").read_text())
GITLAB = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
STEPS = {job: facts["steps"] for job, facts in GITHUB["jobs"].items()}
STEPS["gate"] = STEPS["gate"] + yaml.safe_load(ACTION.read_text())["runs"]["steps"]
SCRIPTS = {
    **{
        f"github {job}": [step["run"] for step in steps if "run" in step]
        for job, steps in STEPS.items()
    },
    **{f"gitlab {job}": facts["script"] for job, facts in GITLAB.items() if "script" in facts},
}
LINES = {
    name: "\n".join(lines).replace("\\\n", " ").splitlines() for name, lines in SCRIPTS.items()
}
CALLS = [
    (name, line.strip())
    for name, lines in LINES.items()
    for line in lines
    if line.strip().startswith("kvbench ")
]


def arguments(line):
    return shlex.split(re.split(r" \|\| | > ", line)[0])[1:]


def parsed(line):
    """As the program itself reads it, up to where it would begin."""
    name, *rest = arguments(line.replace("$BUDGET", "4m"))
    above = click.Context(program, **program.context_settings)
    found = program.get_command(above, name)
    assert found, f"there is no kvbench {name}"
    return found.make_context(name, rest, parent=above).params


def test_both_do_the_same():
    jobs = {"test", "gate", "nightly"}
    assert GITHUB["jobs"].keys() == jobs and GITLAB.keys() - {"default"} == jobs
    for job in jobs:
        commands = [
            [arguments(line)[0] for name, line in CALLS if name == f"{place} {job}"]
            for place in ("github", "gitlab")
        ]
        assert commands[0] == commands[1]
    assert {arguments(line)[0] for _, line in CALLS} == {"gate", "doctor", "sweep", "history"}


@pytest.mark.parametrize(("job", "line"), CALLS)
def test_every_command_is_one(job, line):
    asked = parsed(line)
    for export in asked.get("exports", ()):
        kind, _, path = export.partition("=")
        assert kind in kinds() and path


@pytest.mark.parametrize(
    ("kind", "path"),
    [("github-workflows", path) for path in sorted(WORKFLOWS.iterdir())]
    + [("github-actions", ACTION), ("gitlab-ci", ROOT / ".gitlab-ci.yml")],
)
def test_the_services_would_take_them(kind, path):
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{kind}",
        str(path),
    ]
    succeeds(command)


def test_gitlab_keeps_the_verdict_and_warns_where_it_is_unclear():
    (line,) = [line for name, line in CALLS if name == "gitlab gate"]
    assert f"junit={GITLAB['gate']['artifacts']['reports']['junit']}" in parsed(line)["exports"]
    assert GITLAB["gate"]["artifacts"]["when"] == "always"
    assert GITLAB["gate"]["allow_failure"] == {"exit_codes": Exit.UNCLEAR}


# ---- the steps of GitHub's, run as it runs them --------------------------------------------------

KVBENCH = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
import kvbench.runner
from tests.gate.made_duels import player, slower
from tests.report import made
rates = slower(float(os.environ["SLOWER"]), os.environ["SLOWED"])
kvbench.runner.launch = player(rates, float(os.environ["NOISE"]))
if sys.argv[1] == "sweep":
    points = made.decodes()[:3]
    made.directory(__import__("pathlib").Path(sys.argv[4]), made.whole(points, 3), points, 3)
    sys.exit(0)
from kvbench.cli import main
sys.exit(main())
"""
CALLED = f"""#!/bin/sh
exec "{sys.executable}" "$0.py" "$@"
"""  # a path that has spaces cannot stand behind #!
GH = """#!/bin/sh
case "$*" in *--jq*) echo "$OLD" ;; *) echo "$@" >> asked ;; esac
"""


@pytest.fixture
def step(tmp_path):
    """Runs the step of that name with a kvbench whose timings are made up; gives its exit code and
    output.
    """
    for name, text in (("kvbench", CALLED), ("kvbench.py", KVBENCH), ("gh", GH)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    given = {name: str(tmp_path / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    given |= {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "NOISE": "0.01",
        "SLOWER": "0",
        "SLOWED": "decode.flash",
        "GITHUB_RUN_ID": "7",
    }

    def run(job, name, **more):
        (script,) = (
            step["run"] for step in STEPS[job] if name in (step.get("id"), step.get("name"))
        )
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | given | more,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize(
    ("slower", "noise", "code", "ends", "verdict"),
    [
        ("0.1", "0.01", 1, 1, "REGRESSION"),
        ("0", "0.01", 0, 0, "EQUIVALENT"),
        ("0", "0.5", 3, 0, "INCONCLUSIVE"),
    ],
)
def test_a_pull_request(step, tmp_path, slower, noise, code, ends, verdict):
    """Gate, comment, exit code: a new comment, or the old one anew."""
    sides = {}
    for name in ("BASE", "HEAD"):
        (tmp_path / f"{name}.so").write_bytes(library_path().read_bytes() + name.encode())
        sides[name] = str(tmp_path / f"{name}.so")
    found, said = step(
        "gate", "gate", **sides, SUITE="gate", BUDGET="4m", SLOWER=slower, NOISE=noise
    )
    assert found == 0, said
    assert (tmp_path / "GITHUB_OUTPUT").read_text().splitlines() == [
        f"code={code}",
        f"verdict={verdict}",
    ]
    comment = (tmp_path / "gate.md").read_text()
    assert (
        f"## kvbench gate: {verdict}: " in comment
        and comment == (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    )
    slowed = re.search(r"- all 40 decode\.flash points are (9\.[5-9]|10\S*) % slower", comment)
    assert bool(slowed) == bool(ends) and f"title=kvbench gate%3A {verdict}" in said
    for old, asked in (
        ("", "api all --field body=@gate.md"),
        ("5", "api --method PATCH each/5 --field body=@gate.md"),
    ):
        assert step("gate", "comment", COMMENTS="all", EACH="each", OLD=old)[0] == 0
        assert (tmp_path / "asked").read_text().splitlines()[-1] == asked
    assert step("gate", "verdict", CODE=str(code))[0] == ends


@pytest.mark.parametrize("code", Exit)
def test_the_job_ends_as_the_gate_does_but_for_what_is_unclear(step, code):
    assert step("gate", "verdict", CODE=str(int(code)))[0] == (0 if code == Exit.UNCLEAR else code)


@pytest.mark.parametrize(("fell", "ends"), [(1.0, 0), (0.9, 1)])
def test_a_night(step, tmp_path, fell, ends):
    """Sweep, history, exit code, and the artifacts are there."""
    shares = made.flat(30, 6)
    shares[20:] *= fell
    made.write(tmp_path / "past", shares)
    assert step("nightly", "sweep", HISTORY="past") == (0, f"{RUN}: past/7\n")
    assert step("nightly", "history", HISTORY="past")[0] == ends
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    assert (
        summary.startswith("```\n")
        and "30 runs of 6 points" in summary
        and ("open -" in summary) == bool(ends)
    )
    assert (tmp_path / "history" / "index.html").exists()
    assert all((tmp_path / path).exists() for path in STEPS["nightly"][-1]["with"]["path"].split())


def test_the_container_runs_a_score_of_what_is_there():
    lines = (ROOT / ".github" / "Dockerfile").read_text().splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    assert [yaml.safe_load(line.split(" ", 1)[1]) for line in lines[-2:]] == [
        ["kvbench"],
        ["score"],
    ]
    assert {"kernels", "kvbench", "suites", "pyproject.toml"} <= set(copied)


def test_the_base_is_there():
    assert GITHUB["jobs"]["gate"]["steps"][0]["with"]["fetch-depth"] == 0
    assert GITLAB["gate"]["variables"]["GIT_DEPTH"] == 0


def test_what_is_installed_and_run_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    text = "\n".join(line for lines in LINES.values() for line in lines)
    assert set(re.findall(r"\.\[(\w+)\]", text)) <= extras.keys()
    assert os.access(ROOT / ".ci" / "run", os.X_OK) and ".ci/run" in text


def test_nothing_that_others_wrote_is_run():
    """What stands in a pull request, such as the name of its branch, comes as a variable and never
    as code.
    """
    assert "${{" not in "\n".join(line for lines in LINES.values() for line in lines)
