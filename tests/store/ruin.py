"""Run directories ruined at random, through every command that reads one.

There must be no traceback and no hang; what was finished is not lost, what reads writes nothing, and neither lines nor
files of another run are taken for the run's own.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from kvbench.cli._program import run
from kvbench.errors import KvbenchError
from kvbench.session import Session
from kvbench.store import RunDirectory
from tests.session.test_session import Played, options

OTHER = "other"  # name of the folder of another run
PATIENCE = 120  # seconds of a command
FILES = ("manifest.json", "journal.jsonl", "machine.json")
ODD = (
    "null", "true", "-1", "0", "1.5", '"x"', '""', "[]", "{}", "[[]]", '{"a": 1}', '{"a": 1, "a": 2}', "1e300",
    "1e999", "-1e999", "NaN", "Infinity", "1" + "0" * 400, "-1" + "0" * 5000, "18446744073709551616", '"\\ud800"',
    '"\\u0000"', '"a\\nb"', "[" * 5000 + "]" * 5000, "[" * 200 + "1e999" + "]" * 200, '"2026-99-99T00:00:00+00:00"',
    '{"a":' * 3000 + "1" + "}" * 3000,
)  # fmt: skip
MARK = "this value is replaced"


# ---- damages ---------------------------------------------------------------------------------------------------------


def places(value, path=()):
    """The keys that lead to every value inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(text, chance):
    """One value of a JSON text replaced, left out, renamed or added."""
    facts = json.loads(text)
    *way, key = chance.choice(list(places(facts)))
    inner = facts
    for step in way:
        inner = inner[step]
    act = chance.randrange(5)
    if act == 0:
        del inner[key]
    elif act == 1 and isinstance(inner, dict):
        inner["strange"] = inner.pop(key)
    elif act == 2 and isinstance(inner, dict):
        inner["strange"] = 1
    else:
        inner[key] = MARK
    return json.dumps(facts).replace(json.dumps(MARK), chance.choice(ODD)).encode()


def change_json(path, chance):
    lines = path.read_bytes().splitlines(keepends=True) if path.suffix == ".jsonl" else [path.read_bytes()]
    at = chance.randrange(len(lines))
    lines[at] = changed(lines[at], chance) + b"\n"
    path.write_bytes(b"".join(lines))


def change_bytes(path, chance):
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 2, 50))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content)


def truncate(path, chance):
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def garbage(path, chance):
    start = chance.choice((b"", b"\x1f\x8b\x08", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00" * 64, b'{"format":4}'))
    path.write_bytes(start + chance.randbytes(chance.choice((0, 1, 100, 5000))) + chance.choice((b"", b"\n")))


def other(path):
    """The same file of another run, which lies beside this one."""
    return path.parent.with_name(OTHER) / path.name


def take_lines(path, chance):
    """Lines of the other run in the place of some, or behind all."""
    own, theirs = (each.read_bytes().splitlines(keepends=True) for each in (path, other(path)))
    at = chance.randrange(len(own) + 1)
    own[at : at + chance.randrange(3)] = chance.sample(theirs, chance.randrange(1, 4))
    path.write_bytes(b"".join(own))


def take_file(path, chance):
    path.write_bytes(other(path).read_bytes())


def link(path, chance):
    path.unlink()
    path.symlink_to(chance.choice((other(path), other(path).parent, path)))


def replace_by_something_else(path, chance):
    path.unlink()
    make = chance.choice((path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to(path), lambda: None))
    make()


DAMAGES = (
    change_json, change_json, change_json, change_json, change_bytes, truncate, garbage, replace_by_something_else,
    take_lines, take_file, link,
)  # fmt: skip
FOREIGN = (take_lines, take_file, link)  # what these bring in must be told from the run's own


# ---- every reader ----------------------------------------------------------------------------------------------------


def commands(path, place):
    """By name. The last one writes."""
    base = str(path.with_name("sound"))
    forms = {f"report {form}": ("report", str(path), "--format", form) for form in ("md", "json", "csv")}
    return {
        "report html": ("report", str(path), "-o", str(place / "page")),
        **forms,
        "compare BASE RUN": ("compare", base, str(path)),
        "compare RUN BASE": ("compare", str(path), base, "--json"),
        "history show": ("history", "show", "--root", str(path.parent)),
        "history export": ("history", "export", "--root", str(path.parent)),
        "sweep --resume": ("sweep", "--out", str(path), "--resume"),
    }


@contextmanager
def played():
    """Nothing is really measured, and nobody looks at the machine."""
    with patch("kvbench.session.session.preflight", lambda *_: ()), patch("kvbench.runner.launch", Played(0.05)):
        yield


def made(place):
    """Three runs of one machine: one to be ruined, one to be held against, another one."""
    for name in ("run", "sound", OTHER):
        with played(), Session.begin(options(), place / name) as session:
            list(session.records())
            session.finish()


def said(arguments):
    """Exit code and messages of a command."""
    out, err = StringIO(), StringIO()
    signal.alarm(PATIENCE)
    with played(), redirect_stdout(out), redirect_stderr(err):
        code = run(list(arguments))
    signal.alarm(0)
    return code, err.getvalue()


def late(*_):
    raise TimeoutError(f"it hangs, for {PATIENCE} s")


def content(path):
    """Kinds of everything below, and bytes of files."""
    found = {each: (each.lstat().st_mode, os.readlink(each) if each.is_symlink() else "") for each in path.rglob("*")}
    return found | {each: each.read_bytes() for each in found if each.is_file() and not each.is_symlink()}


def wrong(code, err):
    """What no command may do."""
    faults = [word for word in ("internal error", "Traceback", "it hangs") if word in err]
    return faults if not code or f"\n{err}".count("\nkvbench: ") else [*faults, f"exit code {code} without a line"]


def foreign(path, sound):
    """Whether anything is taken for the run's own that is not."""
    try:
        found = RunDirectory.open(path)
        strange = [record for record in found.records if record not in sound.records]
        return bool(strange) or found.machine() not in (None, sound.machine())
    except KvbenchError:
        return False


def lines(path):
    """Whole ones."""
    journal = path / "journal.jsonl"
    return journal.read_bytes().split(b"\n")[:-1] if journal.is_file() else []


def ruined(place, chance, faults):
    """One run, ruined once or twice, through all commands."""
    path = place / "run"
    acts = [chance.choice(DAMAGES) for _ in range(chance.choice((1, 1, 2)))]
    sound = RunDirectory.open(path)
    for act, name in zip(acts, chance.sample((*FILES, "run.json.gz", "summary.json"), len(acts)), strict=True):
        on_text = act is change_json
        (change_bytes if on_text and name == "run.json.gz" else act)(path / name, chance)
    about = ", ".join(act.__name__ for act in acts)
    if set(acts) <= set(FOREIGN) and foreign(path, sound):
        faults.append(f"{about}: what is of another run was accepted")
    around = content(place / OTHER), content(place / "sound")
    own, before = content(path), lines(path)
    with tempfile.TemporaryDirectory() as pages:
        for name, arguments in commands(path, Path(pages)).items():
            code, err = said(arguments)
            faults += [f"{about}: {name}: {fault}: {err[-300:]}" for fault in wrong(code, err)]
            if content(path) != own and name != "sweep --resume":
                faults.append(f"{about}: {name} has changed the run")
    if lines(path)[: len(before)] != before:
        faults.append(f"{about}: --resume has lost what was finished")
    if (content(place / OTHER), content(place / "sound")) != around:
        faults.append(f"{about}: something else was written to")
    if not code:
        asked = [sys.executable, "-m", "pyperf", "stats", str(path / "run.json.gz")]
        told = subprocess.run(asked, capture_output=True, text=True, check=False)
        faults += [f"{about}: pyperf: {told.stderr[-300:]}"] if told.returncode else []


def ruin(count, seed):
    """The faults of so many runs."""
    signal.signal(signal.SIGALRM, late)
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        made(Path(folder, "whole"))
        for number in range(count):
            place = Path(folder, "place")
            shutil.copytree(Path(folder, "whole"), place)
            ruined(place, random.Random(f"{seed} {number}"), faults)
            shutil.rmtree(place)
    return faults
