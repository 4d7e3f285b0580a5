"""Programs that tests run."""

import subprocess
import time
from contextlib import suppress

import psutil


def succeeds(command, **how):
    """What a program that ended in 0 has said: its `stdout` and `stderr`."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert not done.returncode, (done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done


def gone(pid):
    """Within ten seconds; one whose end nobody asked for yet counts as gone."""
    with suppress(psutil.NoSuchProcess):
        process, deadline = psutil.Process(int(pid)), time.monotonic() + 10
        while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.05)
        return process.status() == psutil.STATUS_ZOMBIE
    return True
