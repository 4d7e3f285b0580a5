"""Whatever a path leads to: one line and an exit code that fits, soon, in little memory, and nothing is broken."""

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
from kvbench.native import library_path
from tests.paths import KINDS, NAMES, NO_FILE, STAYS, put
from tests.report import made

PLENTY = 1 << 30  # bytes
CODES = {0, 2, 5, 6}
LIBRARY = str(library_path())
TEXTS = {"suite", "base", "head", "lengths", "exports"}  # these may be paths, and look like texts
OUTPUTS = {"out", "plot", "exports", "folder"}
BEFORE, BEHIND = {"exports": "junit="}, {"suite": ".toml", "plot": ".png"}
TOLD = {  # what else a command is told, so that it does not measure: arguments, and options
    "compare": (["old", "new"], []),
    "doctor": ([], ["--threads", "0"]),
    "gate": ([], ["--base", LIBRARY, "--head", LIBRARY]),
    "history accept": (["nothing*"], ["--run", "new", "--reason", "none", "--root", "."]),
    "history add": (["new"], ["--root", "."]),
    "history export": ([], ["--root", "."]),
    "history show": ([], ["--root", "."]),
    "lab": (["gqa"], ["--threads", "0"]),
    "machine": ([], ["--threads", "0"]),
    "plan": (["smoke"], []),
    "profile": (["decode"], ["--threads", "0"]),
    "report": (["new"], []),
    "size": (["qwen3-0.6b"], []),
    "sweep": (["smoke"], []),
    "verify": ([], ["--isa", "none"]),
}
VARIED = {"report": ("html", "md", "json", "csv"), "history export": ("csv", "otava-csv", "otava-yaml")}
FILES = ("manifest.json", "journal.jsonl", "machine.json", "accepted.json")
READERS = (
    "report new --format csv", "report new", "compare old new", "history show --root .", "history add new --root other",
    "size qwen3-0.6b --machine new", "sweep --out new --resume",
)  # fmt: skip


def parameters(command=kvbench, *words):
    """Those of all commands that a path is given to."""
    context = click.Context(kvbench)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from parameters(command.get_command(context, name), *words, name)
    else:
        for found in command.params:
            if isinstance(found.type, click.Path) or found.name in TEXTS:
                yield " ".join(words), found, [each.name for each in command.params if isinstance(each, click.Argument)]


def line(words, found, arguments, more=()):
    """The words of a call; {} stands where the path goes."""
    given, options = (list(each) for each in TOLD.get(words, ([], [])))
    if isinstance(found, click.Argument):
        given[arguments.index(found.name)] = "{}"
        return [*words.split(), *given, *options, *more]
    return [*words.split(), *given, *options, *more, found.opts[-1], "{}"]


def outside():
    for words, found, arguments in parameters():
        forms = VARIED.get(words, ()) if found.name == "out" else ()
        for more in [("--format", form) for form in forms] or [()]:
            for kind in (*KINDS, *NAMES):
                yield line(words, found, arguments, more), found.name, kind


def named(cases, every):
    """Some of them in every test, the others in a full one."""
    for number, case in enumerate(cases):
        words = [" ".join(each) if isinstance(each, list) else each for each in case]
        mark = [pytest.mark.full] if number % every else []
        yield pytest.param(*case, id=" ".join(words).replace(LIBRARY, "LIBRARY"), marks=mark)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two runs that can be compared; and a huge file, which takes no room."""
    folder, points = tmp_path_factory.mktemp("whole"), [*made.decodes(made.CONTEXTS[:1])[:1], *made.READS[:6]]
    for name in ("old", "new"):
        made.directory(folder / name, made.whole(points, 3), points, run=name)
    with (folder / "sparse").open("wb") as file:
        file.truncate(5 << 30)
    return folder


@pytest.fixture(scope="module")
def server():
    command = [sys.executable, "-m", "tests.paths"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]) as own:
        yield own
        own.stdin.close()


@pytest.fixture
def scene(whole, tmp_path):
    for name in ("old", "new"):
        shutil.copytree(whole / name, tmp_path / name)
    return tmp_path


def ended(server, folder, arguments):
    """What the command said, once it is clear that it ended as a command should."""
    server.stdin.write(json.dumps({"arguments": arguments, "folder": str(folder)}).encode() + b"\n")
    server.stdin.flush()
    found = json.loads(server.stdout.readline())
    assert not found["hung"], found["err"]
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
    if kind == "empty" or kind in NO_FILE and not (name in OUTPUTS or kind == "folder"):
        assert found["code"], found


@pytest.mark.parametrize(("command", "file", "kind"), list(named(product(READERS, FILES, (*KINDS, "link")), 14)))
def test_what_lies_in_a_run(command, file, kind, scene, whole, server):
    path = scene / file if file == "accepted.json" else scene / "new" / file
    if path.exists():
        path.rename(path.with_name(f"{file}.else"))
    put(kind, path, whole / "sparse")
    found = ended(server, scene, command.split())
    if file != "accepted.json" and command.startswith(("report", "compare")):
        assert found["code"] == 2 and len(found["err"].splitlines()) == 1, found
    if file != "accepted.json" and command == "history show --root .":
        assert file == "machine.json" or "left out" in found["out"] + found["err"], found
