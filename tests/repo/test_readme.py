"""Every command of the README and of the pages that it leads to ends in what the page promises."""

import re
import shlex
import shutil
import subprocess
import sys
from glob import glob

import pytest

from kvbench.errors import Exit
from kvbench.exports import kinds
from tests.cli.test_cli import call, output_of
from tests.cli.test_exit_codes import played
from tests.raw import ROOT
from tests.repo.promises import PROMISES, Promise
from tests.repo.situations import STAGED

PAGES = {path: (ROOT / path).read_text() for path in PROMISES}
README, EVERY = PAGES["README.md"], "\n".join(PAGES.values())
INDENTED = re.compile(r"^    ((?:kvbench|cc) .*)$", re.MULTILINE)
FENCED = re.compile(r"```(?:sh|bash)\n(.*?)```", re.DOTALL)
TARGETS = re.findall(r"^    make ([\w-]+)", README, re.MULTILINE)
CONTRIBUTING = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
LINKING = PAGES | {
    ".github/CONTRIBUTING.md": CONTRIBUTING,
    **{page: (ROOT / page).read_text() for page in ("kvbench/README.md", "kernels/README.md")},
}
PYTHON = re.findall(r"```python\n(.*?)```", EVERY, re.DOTALL)


def commands(text):
    """Those that a page shows, as they are to be typed."""
    text = text.replace(" \\\n      ", " ")
    fenced = (line for block in FENCED.findall(text) for line in block.splitlines())
    typed = (line for line in fenced if line.startswith(("kvbench ", "cc ")))
    lines = [*INDENTED.findall(text), *typed]
    return [re.sub(r" {2,}#.*", "", line) for line in lines]


COMMANDS = list(dict.fromkeys(line for line in commands(EVERY) if line.startswith("kvbench ")))
COMPILED = next(line for line in commands(README) if line.startswith("cc "))


def test_there_is_something_to_run():
    assert len(README.splitlines()) <= 150 and len(COMMANDS) >= 45
    assert set(TARGETS) == {"sweep", "test"} and len(PYTHON) == 2


@pytest.mark.parametrize("page", PAGES)
def test_every_command_promises_something(page):
    shown = {line for line in commands(PAGES[page]) if line.startswith("kvbench ")}
    others = {line for other, promised in PROMISES.items() if other != page for line in promised}
    assert PROMISES[page].keys() <= shown and shown <= PROMISES[page].keys() | others


class Place:
    """A folder in which commands are called one after another: some go on where others have
    stopped.
    """

    def __init__(self, folder, shortened):
        self.folder, self.shortened, self.said = folder, shortened, {}
        (folder / "results").mkdir()
        for path in (ROOT / "results").iterdir():
            (folder / "results" / path.name).symlink_to(path)
        for number, name in enumerate(("zen3-kvm-2", "zen4-kvm-2")):
            shutil.copytree(ROOT / "results" / name / "quick", folder / "shared" / f"host{number}")

    def call(self, command, capsys, patch):
        """What it printed; a command is called once."""
        if command not in self.said:
            promise = Promise(()) if command == "cc" else _promise(command)
            for other in promise.after:
                self.call(other, capsys, patch)
            patch.chdir(self.folder)
            if command == "cc" or ">" in command:
                self.said[command] = _in_a_shell(COMPILED if command == "cc" else command)
            else:
                with pytest.MonkeyPatch.context() as own:
                    self.said[command] = self._here(command, promise, capsys, own)
        return self.said[command]

    def _here(self, command, promise, capsys, patch):
        if promise.how and (self.shortened or promise.how in STAGED):
            promise.how(patch, self.folder)
        patch.chdir(self.folder)
        words = shlex.split(command)[1:]
        arguments = [
            path for word in words for path in (sorted(glob(word)) if "*" in word else [word])
        ]
        capsys.readouterr()
        code = call(*arguments, *(promise.more if self.shortened or "sweep" in words else ()))
        said = capsys.readouterr()
        assert code == promise.code, said.err
        return said.out


def _promise(command):
    return next(promised[command] for promised in PROMISES.values() if command in promised)


def _in_a_shell(line):
    """With this kvbench, and from another folder than its sources."""
    program = f"{shlex.quote(sys.executable)} -m kvbench.cli"
    text = f'kvbench() {{ {program} "$@"; }}\n{line}'
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", text], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def holds(command, place, capsys, patch):
    said, promise = place.call(command, capsys, patch), _promise(command)
    for pattern in promise.shows:
        assert re.search(pattern, f"\n{said}" if pattern.startswith("\\n") else said), (
            f"{pattern}\n{said}"
        )
    for name, pattern in promise.writes.items():
        found = sorted(place.folder.glob(name))
        assert found, f"{name} was not written"
        texts = (path.read_bytes().decode(errors="replace") for path in found)
        assert any(re.search(pattern, text) for text in texts), f"{name}: {pattern}"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("read me"), shortened=True)


# test_tables.py calls this one, too, and it reads every kept run
TABLES = "kvbench report results/* --tables"


@pytest.mark.parametrize(
    "command",
    [pytest.param(line, marks=pytest.mark.full) if line == TABLES else line for line in COMMANDS],
)
def test_command(command, capsys, monkeypatch, place):
    holds(command, place, capsys, monkeypatch)


@pytest.mark.full
def test_all_in_earnest(capsys, monkeypatch, tmp_path):
    place = Place(tmp_path, shortened=False)
    for command in COMMANDS:
        holds(command, place, capsys, monkeypatch)
    for program in PYTHON:
        exec(compile(program, "README.md", "exec"), {})  # noqa: S102


def test_two_launches_a_side_are_inconclusive_as_the_page_says(tmp_path, capsys, monkeypatch):
    played(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("base", "head"):
        assert call("sweep", "smoke", "--launches", "2", "--out", name) == 0
    capsys.readouterr()
    assert output_of(capsys, "compare", "base", "head", "--gate", code=Exit.UNCLEAR).startswith(
        "INCONCLUSIVE: "
    )


def test_the_table_of_exit_codes_is_whole():
    text = PAGES["results/ci.md"]
    table = text[text.index("| exit code |") :].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert sorted(
        int(code) for cell in cells for code in re.findall(r"(?:^| )(\d+) ", cell)
    ) == sorted(Exit)


def test_the_table_of_exports_is_whole():
    text = PAGES["results/ci.md"]
    table = text[text.index("| kind | for |") :].partition("\n\n")[0]
    assert sorted(
        re.findall(r"`([\w-]+)`", "\n".join(x.split("|")[1] for x in table.splitlines()))
    ) == sorted(kinds())


@pytest.mark.parametrize("page", ["kvbench/README.md", "kernels/README.md"])
def test_files_of_tests_that_a_page_names_exist(page):
    found = re.findall(r"\btests/[\w/.]*\w", (ROOT / page).read_text())
    assert found and all((ROOT / path).exists() for path in found), found


@pytest.mark.parametrize("page", LINKING)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", LINKING[page]):
        assert (ROOT / page).parent.joinpath(link).exists(), link


def anchors(path):
    """What a link may name of a page: its headings, as GitHub writes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", path.read_text())
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKING)
def test_links_name_headings_that_exist(page):
    for link, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", LINKING[page]):
        path = (ROOT / page).parent / link if link else ROOT / page
        assert anchor in anchors(path), f"{link}#{anchor}"


@pytest.mark.parametrize(
    "target", [*TARGETS, *re.findall(r"^    make ([\w-]+)", CONTRIBUTING, re.MULTILINE)[1:]]
)
def test_make_target(target):
    plan = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert plan.returncode == 0, plan.stderr


def test_make_sweep_runs_the_command_that_is_shown():
    shown = commands(PAGES["results/reading-a-report.md"])[0]
    assert shown == "kvbench sweep --report"
    assert f"$(BIN)/{shown}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("program", PYTHON)
def test_python_example(program, monkeypatch, tmp_path):
    played(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {})  # noqa: S102
