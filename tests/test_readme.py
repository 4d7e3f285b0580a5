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
    assert len(COMMANDS) >= 5 and set(TARGETS) == {"sweep", "test"} and len(PYTHON) == 2


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One folder for all commands: some go on where others have stopped."""
    return tmp_path_factory.mktemp("readme")


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command, capsys, monkeypatch, place):
    """As written, but for how long is measured."""
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    monkeypatch.chdir(place)
    arguments = shlex.split(command)[1:]
    if arguments[0] in ("profile", "sweep"):
        arguments += ["--samples", "1", "--sample-time", "0.001"]
    if arguments[0] == "sweep":
        arguments += ["--launches", "1"]
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("target", TARGETS)
def test_make_target(target):
    plan = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert plan.returncode == 0, plan.stderr


def test_make_sweep_runs_the_command_that_is_shown():
    assert COMMANDS[0] == "kvbench sweep --report" and "$(BIN)/kvbench sweep --report\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("program", PYTHON)
def test_python_example(program, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {})  # noqa: S102


def test_folders_exist():
    for folder in re.findall(r"^\| `(\w+)/` ", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
