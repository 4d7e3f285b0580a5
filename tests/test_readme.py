"""The README's commands work as written, and its two make targets are there."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kvbench.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^    (kvbench .*)$", README, re.MULTILINE)
TARGETS = re.findall(r"^    make ([\w-]+)", README, re.MULTILINE)
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_there_is_something_to_run():
    assert len(COMMANDS) >= 5 and set(TARGETS) == {"sweep", "test"} and len(PYTHON) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    arguments = shlex.split(command)[1:]
    if arguments[0] == "profile":
        arguments += ["--samples", "1", "--sample-time", "0.001"]
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("target", TARGETS)
def test_make_target(target):
    plan = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert plan.returncode == 0, plan.stderr


def test_make_sweep_runs_the_command_that_is_shown():
    shown = next(command for command in COMMANDS if command.startswith("kvbench profile decode"))
    assert shown.removeprefix("kvbench ") in (ROOT / "Makefile").read_text()


def test_python_example():
    exec(compile(PYTHON[0], "README.md", "exec"), {})  # noqa: S102


def test_folders_exist():
    for folder in re.findall(r"^\| `(\w+)/` ", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
