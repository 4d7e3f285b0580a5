"""A command and all that it starts end with it, and with the process that waits for it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from kvbench.watched import watched

WAITS = "(setsid sleep 1000 & echo $!); echo $$; sleep 1000; true"


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def awaited(what):
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def numbers(file):
    return [int(line) for line in Path(file).read_text().split()]


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("cat", 0)])
def test_its_exit_code(command, code):
    """The command has no input."""
    with TemporaryFile() as prints:
        assert watched(("sh", "-c", command), prints, os.environ) == code


def test_what_it_leaves_ends_with_it(tmp_path):
    with (tmp_path / "said").open("wb") as prints:
        code = watched(
            ("sh", "-c", "setsid sleep 1000 & echo $!; pwd"), prints, os.environ, tmp_path
        )
    child, folder = (tmp_path / "said").read_text().split()
    assert (code, folder) == (0, str(tmp_path))
    awaited(lambda: not alive(child))


def test_an_interruption_ends_it(tmp_path):
    said = tmp_path / "said"

    def interrupt():
        awaited(lambda: said.exists() and len(numbers(said)) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with said.open("wb") as prints, pytest.raises(KeyboardInterrupt):
        watched(("sh", "-c", WAITS), prints, os.environ)
    thread.join()
    awaited(lambda: not any(map(alive, numbers(said))))


def test_a_killed_waiter_ends_it(tmp_path):
    said = tmp_path / "said"
    code = (
        "import os, sys; from kvbench.watched import watched;"
        " watched(('sh', '-c', sys.argv[1]), sys.stdout.buffer, os.environ)"
    )
    with said.open("wb") as prints:
        waiter = subprocess.Popen([sys.executable, "-c", code, WAITS], stdout=prints)
    awaited(lambda: len(numbers(said)) == 2)
    waiter.kill()
    waiter.wait()
    awaited(lambda: not any(map(alive, numbers(said))))
