"""SIGINT and SIGTERM, once or twice, at random times: exit code 130, no process left or
stopped, no traceback, nothing in the folder for temporary files, and a hint that works.

    python -m pytest -m full tests/session/test_signals.py

makes 60 of them; `make test` a handful.
"""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from kvbench.native import library_path
from tests.cli.test_cli import CPU, TINY
from tests.gate.test_builds import CMAKE, SOURCE, git

SWEEP = ["sweep", *TINY, "--axis", "op=decode", "--cpus", CPU, "--launches", "2", "--samples", "2"]
COMMANDS = {
    "sweep": [*SWEEP, "--sample-time", "0.002", "--report", "--out", "a run"],
    "score": ["score", "--out", "a run"],
    "peers": (
        [
            "peers",
            "--peers",
            "numpy",
            "--model",
            "gpt-2",
            "--context",
            "64",
            "--dtype",
            "f32",
            "--launches",
            "2",
        ]
        + ["--out", "a run"]
    ),
    "tune only": ["sweep", "--tune-only", *TINY, "--cpus", CPU],
    "gate": [
        "gate",
        "--base",
        "one/libkvbench.so",
        "--head",
        "other/libkvbench.so",
        "--budget",
        "60s",
    ],
    "build": ["gate", "--base", "v1", "--head", "."],
}
SLOW_COMPILER = """\
#!/bin/sh
case "$*" in *--version*) exec cc "$@" ;; esac
: > "$TMPDIR/left-by-the-compiler"
sleep 60
exec cc "$@"
"""
TERM, INT = (signal.SIGTERM,), (signal.SIGINT,)
WHILE_IT_COMPILES = 0.0
SOME = [  # command, seconds from the moment that it hears signals, signals, seconds between two
    ("sweep", 4.0, TERM, 0.0),
    ("sweep", 2.5, (*INT, *INT), 0.05),
    ("tune only", 3.0, INT, 0.0),
    ("build", WHILE_IT_COMPILES, TERM, 0.0),
    ("build", WHILE_IT_COMPILES, (*TERM, *INT), 0.02),
]
PATIENCE = 60.0  # seconds, on a machine that is busy; an idle one takes four


def drawn(number):
    dice = random.Random(number)
    signals = dice.choice([INT, TERM, TERM, (*INT, *INT), (*TERM, *TERM), (*TERM, *INT)])
    return (
        dice.choice([*COMMANDS]),
        dice.uniform(0, 12),
        signals,
        dice.choice([0.0, 0.02, 0.15, 0.5, 1.5]),
    )


@pytest.mark.parametrize(("command", "after", "signals", "between"), SOME)
def test_signals(tmp_path, command, after, signals, between):
    trial(tmp_path, command, after, signals, between)


@pytest.mark.full
@pytest.mark.parametrize("number", range(60))
def test_sixty_signals_at_random_times(tmp_path, number):
    trial(tmp_path, *drawn(number))


def trial(folder, command, after, signals, between):
    mark, facts = uuid.uuid4().hex, surroundings(folder)
    facts["env"]["KVBENCH_TRIAL"] = mark
    process = start(COMMANDS[command], facts)
    wait_for_handlers(process)
    if after == WHILE_IT_COMPILES:
        wait_for_compiler(folder)
    with suppress(subprocess.TimeoutExpired):
        process.wait(after)
    ended = process.poll()
    for number in signals:
        process.send_signal(number)
        time.sleep(between)
    out, err = process.communicate(timeout=PATIENCE)
    said = f"{command}: {signals} after {after:.1f} s, {between} s between them\n{out}\n{err}"
    assert process.returncode == (130 if ended is None else ended) or process.returncode in (
        0,
        3,
    ), said
    assert "Traceback" not in err and "Exception" not in err and "internal error" not in err, said
    assert left(mark) == [], said
    assert os.listdir(facts["env"]["TMPDIR"]) == [], said
    if ended is None and process.returncode == 130 and len(signals) == 1:
        assert err.splitlines()[-1].startswith("kvbench: interrupted"), said
    if hint := re.search(r"to go on: kvbench (.*)$", err, re.MULTILINE):
        follow(shlex.split(hint[1]), facts, said)


def surroundings(folder):
    """A folder with all that the commands name, and an environment of their own."""
    for name in ("one", "other", "tmp", "cache", "kernels"):
        (folder / name).mkdir()
    for name in ("one", "other"):
        shutil.copy(library_path().with_name("abi.h"), folder / name)
        with Path(shutil.copy(library_path(), folder / name / "libkvbench.so")).open("ab") as file:
            file.write(name.encode())
    compiler = folder / "slow-cc"
    compiler.write_text(SLOW_COMPILER)
    compiler.chmod(0o755)
    (folder / "kernels" / "CMakeLists.txt").write_text(CMAKE)
    (folder / "kernels" / "answer.c").write_text(SOURCE)
    (folder / "kernels" / "abi.h").write_text("int answer(void);\n")
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.0"\n')
    git(folder, "init")
    git(folder, "add", "kernels", "pyproject.toml")
    git(folder, "commit", "-m", "one")
    git(folder, "tag", "v1")
    (folder / "kernels" / "answer.c").write_text(SOURCE.replace("1", "2"))
    own = {
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "CC": str(compiler),
    }
    return {"cwd": folder, "env": {**os.environ, **own}}


def start(arguments, facts):
    command = [sys.executable, "-m", "kvbench.cli", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes, **facts)


def wait_for_handlers(process):
    """Before the handlers are set, SIGTERM ends Python itself."""
    caught = 1 << (signal.SIGTERM - 1)
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        found = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
        if found and int(found[1], 16) & caught:
            return
        time.sleep(0.005)


def wait_for_compiler(folder):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not any(
        "left-by-the-compiler" in names for _, _, names in os.walk(folder)
    ):
        time.sleep(0.05)


def left(mark):
    """Processes of a trial that still exist some seconds after its end: number, state and
    command.
    """
    for _ in range(100):
        found = [*marked(mark)]
        if not found:
            return []
        time.sleep(0.1)
    return found


def marked(mark):
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    yield entry.name, state, (entry / "cmdline").read_bytes().replace(b"\0", b" ")


def follow(words, facts, said):
    """Run the command in a hint: to its end if that is near, else interrupt it."""
    again = start(words, facts)
    try:
        out, err = again.communicate(timeout=PATIENCE if words[0] == "sweep" else 10)
        assert again.returncode in (0, 3, 4), f"{said}\n{words}: {out}\n{err}"
    except subprocess.TimeoutExpired:
        again.send_signal(signal.SIGTERM)
        out, err = again.communicate(timeout=PATIENCE)
        assert again.returncode == 130 and "interrupted" in err, f"{said}\n{words}: {out}\n{err}"
