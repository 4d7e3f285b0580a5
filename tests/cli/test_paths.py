"""Whatever a path leads to: one line and an exit code that fits, soon, in little memory, and
nothing is broken.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
from itertools import product
from pathlib import Path

import click
import pytest

from kvbench.cli._program import kvbench
from kvbench.machine.tree import Files
from kvbench.native import library_path
from kvbench.store import write_text
from tests.cli.paths import KINDS, NAMES, NO_FILE, PATIENCE, STAYS, put
from tests.cli.test_cli import call
from tests.limits import OutOfTime
from tests.report import made

PLENTY = 1 << 30  # bytes
CODES = {0, 2, 5, 6}
LIBRARY = str(library_path())
# these may be paths, and look like texts
TEXTS = {"source", "suite", "arguments", "base", "head", "lengths", "exports"}
OUTPUTS = {"out", "plot", "exports", "folder", "tuning"}
BEFORE, BEHIND = {"exports": "junit="}, {"suite": ".toml", "plot": ".png"}
TOLD = {  # what else a command is told, so that it does not measure: arguments, and options
    "compare": (["old", "new"], []),
    "doctor": ([], ["--threads", "0"]),
    "explain": (["qwen3-0.6b"], ["--machine", "new"]),
    "fleet": (["new"], ["--from"]),
    "gate": ([], ["--base", LIBRARY, "--head", LIBRARY]),
    "history accept": (["nothing*"], ["--run", "new", "--reason", "none", "--root", "."]),
    "history add": (["new"], ["--root", "."]),
    "history export": ([], ["--root", "."]),
    "history show": ([], ["--root", "."]),
    "machine": ([], ["--threads", "0"]),
    "profile": (["decode"], ["--threads", "0"]),
    "report": (["new"], []),
    "score": (["new"], []),
    "size": (["qwen3-0.6b"], []),
    "sweep": (["smoke"], []),
    "verify": ([], ["--isa", "none"]),
}
VARIED = {  # by command and parameter: what else it is told, in turn
    ("report", "out"): [("--format", form) for form in ("html", "md", "json", "csv")],
    ("score", "out"): [("--pack",)],
    ("score", "run"): [(), ("--check",), ("--pack", "--out", "named.tar.gz")],
    ("sweep", "suite"): [(), ("--dry-run",)],
    ("sweep", "tuning"): [(), ("--tune-only",)],
}
FILES = ("manifest.json", "journal.jsonl", "machine.json")
READERS = (
    "report new --format csv",
    "report new",
    "compare old new",
    "history show --root .",
    "history add new --root other",
    "size qwen3-0.6b --machine new",
    "sweep --out new --resume",
)
INSIDE = [
    *product(READERS, FILES, (*KINDS, "link")),
    *product(READERS[3:4], ["accepted.json"], (*KINDS, "link")),
]


def parameters(command=kvbench, *words):
    """The options and arguments of all commands that take a path."""
    context = click.Context(kvbench)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from parameters(command.get_command(context, name), *words, name)
    else:
        for found in command.params:
            if isinstance(found.type, click.Path) or found.name in TEXTS:
                yield (
                    " ".join(words),
                    found,
                    [each.name for each in command.params if isinstance(each, click.Argument)],
                )


def line(words, found, arguments, more=()):
    """The words of a call; {} stands where the path goes."""
    given, options = (list(each) for each in TOLD.get(words, ([], [])))
    if isinstance(found, click.Argument):
        given[arguments.index(found.name)] = "{}"
        return [*words.split(), *given, *options, *more]
    return [*words.split(), *given, *options, *more, found.opts[-1], "{}"]


def outside():
    for words, found, arguments in parameters():
        for more in VARIED.get((words, found.name), [()]):
            for kind in (*KINDS, *NAMES):
                yield line(words, found, arguments, more), found.name, kind


def named(cases, every):
    """The cases to test: some of them in every test run, all of them in a full run."""
    for number, case in enumerate(cases):
        words = [" ".join(each) if isinstance(each, list) else each for each in case]
        mark = [pytest.mark.full] if number % every else []
        yield pytest.param(*case, id=" ".join(words).replace(LIBRARY, "LIBRARY"), marks=mark)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two runs that can be compared; and a huge file, which takes no room."""
    folder, points = (
        tmp_path_factory.mktemp("whole"),
        [
            *made.decodes(made.CONTEXTS[:1])[:1],
            *made.READS[:6],
        ],
    )
    for name in ("old", "new"):
        made.directory(folder / name, made.whole(points, 3), points, run=name)
    with (folder / "sparse").open("wb") as file:
        file.truncate(5 << 30)
    return folder


@pytest.fixture(scope="module")
def server():
    command = [sys.executable, "-m", "tests.cli.paths"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as own:
        yield own
        own.stdin.close()


@pytest.fixture
def scene(whole, tmp_path):
    for name in ("old", "new"):
        shutil.copytree(whole / name, tmp_path / name)
    return tmp_path


def ended(server, folder, arguments):
    """The output of a command, after a check that it ended as a command should."""
    server.stdin.write(json.dumps({"arguments": arguments, "folder": str(folder)}).encode() + b"\n")
    server.stdin.flush()
    found = json.loads(server.stdout.readline())
    if found["hung"]:
        raise OutOfTime(f"{arguments} took more than {PATIENCE:g} s; it had said: {found['err']}")
    assert found["code"] in CODES, (found["code"], found["err"])
    assert "Traceback" not in found["err"] and "internal error" not in found["err"], found["err"]
    assert found["memory"] < PLENTY, found["err"]
    if found["code"]:
        assert found["err"].splitlines()[-1].startswith("kvbench: "), found["err"]
    return found


@pytest.mark.parametrize(("arguments", "name", "kind"), list(named(outside(), 9)))
def test_what_a_command_is_told(arguments, name, kind, scene, whole, server):
    path = scene / f"named{BEHIND.get(name, '')}"
    said = BEFORE.get(name, "") + put(kind, path, whole / "sparse")
    before = path.lstat().st_mode if kind in STAYS else None
    devices = [os.stat(f"/dev/{each}").st_rdev for each in ("zero", "full")]
    found = ended(server, scene, [said if word == "{}" else word for word in arguments])
    assert before is None or path.lstat().st_mode == before
    assert [os.stat(f"/dev/{each}").st_rdev for each in ("zero", "full")] == devices
    if kind == "empty" or name not in OUTPUTS and kind in NO_FILE:
        assert found["code"], found


@pytest.mark.parametrize(("command", "file", "kind"), list(named(INSIDE, 11)))
def test_what_lies_in_a_run(command, file, kind, scene, whole, server):
    path = scene / file if file == "accepted.json" else scene / "new" / file
    if path.exists():
        path.rename(path.with_name(f"{file}.else"))
    put(kind, path, whole / "sparse")
    found = ended(server, scene, command.split())
    # of runs it leaves out what it cannot read
    if "history show" not in command or file == "accepted.json":
        # it is not read, or not there
        fine = command.startswith("size") or (file, kind) == ("machine.json", "loop")
        assert fine or found["code"] == 2 and len(found["err"].splitlines()) == 1, found
    elif file != "machine.json" and (file, kind) != ("manifest.json", "folder"):  # which is no run
        assert "left out" in found["out"], found


def test_an_output_stays_what_it_is(tmp_path):
    """A pipe gets all of it, more than it holds; of a link the file behind it is replaced, but of a
    run's own none.
    """
    pipe, link, target = (tmp_path / name for name in ("pipe", "link", "target"))
    os.mkfifo(pipe)
    with subprocess.Popen(["wc", "-c", pipe], stdout=subprocess.PIPE) as reader:
        with pipe.open("wb"):  # it waits for the reader
            write_text(pipe, "x" * 200_000, asked=True)
        assert int(reader.communicate()[0].split()[0]) == 200_000
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    link.symlink_to(target)
    write_text(link, "there", asked=True)
    assert link.is_symlink() and target.read_text() == "there"
    with pytest.raises(OSError, match="it is a link"):
        write_text(link, "")


@pytest.mark.parametrize(
    "command",
    ["sweep smoke --out run", "sweep smoke --dry-run", "machine --quick", "gate"],
)
def test_without_proc_nothing_is_measured(command, tmp_path, monkeypatch, capsys):
    """One line, in the place of an error for each ceiling."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Files, "__init__", lambda self, root=None: setattr(self, "root", tmp_path))
    monkeypatch.setattr(Files, "live", property(lambda self: True))
    assert call(*command.split()) == 5
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "/proc/meminfo does not say" in err
    assert not list(tmp_path.iterdir())
