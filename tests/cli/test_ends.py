"""How a command ends after a signal: in order, or at once if that takes too long or a second
one comes.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

# A program with a child that is stopped and a temporary folder, which does not end when it is told
# to.
STUBBORN = """
import os, signal, subprocess, sys, time
from pathlib import Path
from kvbench.leftovers import scratch
from kvbench.cli import _program, _signals, main

def run(arguments):
    run = Path(sys.argv[1])
    _signals.resumable("sweep", run)
    with scratch() as folder:
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        child.send_signal(signal.SIGSTOP)
        (run / "ready").write_text(f"{child.pid} {folder}")
        while True:
            try:
                time.sleep(1000)
            except KeyboardInterrupt:
                (run / "told").write_text("")

_program.run = run
main()
"""


@pytest.mark.parametrize(("whole", "signals"), [(True, 1), (True, 2), (False, 2)])
def test_what_does_not_end_by_itself_is_ended(tmp_path, whole, signals):
    """After a second signal at once, else after some seconds. The hint is true."""
    run = tmp_path / "a run"
    run.mkdir()
    if whole:
        (run / "manifest.json").write_text("{}")
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN, run], stderr=subprocess.PIPE, text=True
    )
    child, folder = awaited(run / "ready").split(" ", 1)
    process.send_signal(signal.SIGTERM)
    awaited(run / "told")
    if signals == 2:
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    again = f"to go on: kvbench sweep --out '{run}' --resume" if whole else "run the command again"
    assert process.returncode == 130
    assert again in said and said.count("\n") == 1, said
    assert not Path(folder).exists()
    for _ in range(100):
        with suppress(OSError):
            if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.1)
                continue
        return
    raise AssertionError("the child was left")


def awaited(path):
    for _ in range(1200):
        if path.exists() and (text := path.read_text()) is not None:
            if text or path.name == "told":
                return text
        time.sleep(0.05)
    raise AssertionError(f"{path} never came")


def test_jobs_in_the_background_go_on_ignoring_the_keyboard():
    code = (
        "from kvbench.cli import _signals; import signal; _signals.take_signals();"
        " print(signal.getsignal(2) == signal.SIG_IGN)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stdout == "True\n"
