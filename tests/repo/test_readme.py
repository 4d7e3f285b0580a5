"""Commands of the README and of the pages that it leads to work as written; its two make targets are there."""

import html
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_cli import call
from tests.cli.test_exit_codes import played

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    path: (ROOT / path).read_text()
    for path in ("README.md", "suites/README.md", "results/README.md", "kvbench/cli/README.md")
}
README, EVERY = PAGES["README.md"], "\n".join(PAGES.values())
COMMANDS = list(dict.fromkeys(re.findall(r"^    (kvbench .*)$", EVERY, re.MULTILINE)))
TARGETS = re.findall(r"^    make ([\w-]+)", README, re.MULTILINE)
PYTHON = re.findall(r"```python\n(.*?)```", EVERY, re.DOTALL)


def test_there_is_something_to_run():
    assert len(README.splitlines()) <= 150 and len(COMMANDS) >= 30
    assert set(TARGETS) == {"sweep", "test"} and len(PYTHON) == 2


def furnished(folder):
    """One folder for all commands: some go on where others have stopped. With what they are given to work on."""
    line = re.search(r"^    (cc .*)$", README, re.MULTILINE)[1]
    subprocess.run(
        [str(folder / word) if word == "my.so" else word for word in shlex.split(line)], cwd=ROOT, check=True
    )
    (folder / "results").symlink_to(ROOT / "results")
    return folder


def run(command, folder, capsys, patch, more=()):
    """As written, but for how long is measured."""
    patch.chdir(folder)
    arguments = [*shlex.split(command)[1:], *more]
    if arguments[0] in ("profile", "sweep"):
        arguments += ["--samples", "1", "--sample-time", "0.001"]
    if arguments[0] == "sweep":
        arguments += ["--launches", "1"]
    assert call(*arguments) == 0
    assert capsys.readouterr().out


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return furnished(tmp_path_factory.mktemp("readme"))


# What takes long, and what is done instead: the visits of some sweeps are played; not all that verify knows is
# tried.
SHORTENED = {
    "kvbench sweep --report": (played, ()),
    "kvbench sweep smoke --plugin my.so --axis op=decode --axis dtype=f32 --report": (played, ()),
    "kvbench machine --quick": (played, ()),
    "kvbench tune": (played, ()),
    "kvbench sweep --schedule weave": (played, ()),
    "kvbench sweep --axis schedule=off,cross,weave,stream": (played, ()),
    "kvbench verify --plugin my.so": (None, ("--quick",)),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command, capsys, monkeypatch, place, tmp_path):
    situation, more = SHORTENED.get(command, (None, ()))
    if situation:
        situation(monkeypatch, tmp_path)
    run(command, place, capsys, monkeypatch, more)


def test_what_is_shortened_is_there():
    assert SHORTENED.keys() <= set(COMMANDS)


@pytest.mark.full
def test_all_in_earnest(capsys, monkeypatch, tmp_path):
    furnished(tmp_path)
    for command in COMMANDS:
        run(command, tmp_path, capsys, monkeypatch)


def test_claims_are_the_report_s():
    """What is said of the example stands in the report that is linked there, and in the same words."""
    text = PAGES["results/README.md"]
    (page,) = re.findall(r"\(([^)]*/report/index\.html)\)", text)
    report = html.unescape(" ".join(re.sub(r"<[^>]+>", " ", (ROOT / "results" / page).read_text()).split()))
    claims = text[text.index(page) : text.index("![", text.index(page))].split("\n- ")[1:]
    assert len(claims) >= 5
    for claim in claims:
        assert " ".join(claim.split()) in report, claim


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGES[page]):
        assert (ROOT / page).parent.joinpath(link).exists(), link


@pytest.mark.parametrize("target", TARGETS)
def test_make_target(target):
    plan = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert plan.returncode == 0, plan.stderr


def test_make_sweep_runs_the_command_that_is_shown():
    assert (
        COMMANDS[0] == "kvbench sweep --report" and "$(BIN)/kvbench sweep --report\n" in (ROOT / "Makefile").read_text()
    )


@pytest.mark.parametrize("program", PYTHON)
def test_python_example(program, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {})  # noqa: S102


def test_folders_exist():
    for folder in re.findall(r"^\| `(\w+)/` ", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
