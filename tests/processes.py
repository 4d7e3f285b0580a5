"""Programs that tests run."""

import subprocess
import time
from contextlib import suppress

import psutil


def succeeds(command, **how):
    """Run a program that must end in 0; its `stdout` and `stderr`."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert not done.returncode, (done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done


def gone(pid):
    """Whether the process ends within ten seconds. A zombie counts as ended."""
    with suppress(psutil.NoSuchProcess):
        process, deadline = psutil.Process(int(pid)), time.monotonic() + 10
        while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.05)
        return process.status() == psutil.STATUS_ZOMBIE
    return True
