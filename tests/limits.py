"""Time limits of tests. They are generous: if a test hits one, look at the machine first."""

import os
import subprocess
import time
from pathlib import Path


class OutOfTime(AssertionError):
    """Raised when something takes longer than a test waits for it."""


LATE = (OutOfTime, subprocess.TimeoutExpired, TimeoutError)


def busy() -> str:
    """How busy the machine is, over a tenth of a second."""
    before = _times()
    time.sleep(0.1)
    total, idle = (new - old for new, old in zip(_times(), before, strict=True))
    share = 1 - idle / total if total else 1.0
    load = os.getloadavg()[0]
    return f"its CPUs are {share:.0%} busy, load {load:.1f} on {os.cpu_count()} CPUs"


def _times() -> tuple[int, int]:
    """Ticks of all CPUs since the start: all ticks, and idle ones."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


def advice(error: BaseException) -> str:
    """The text that a failed test adds if it hit a time limit; else ""."""
    if not isinstance(error, LATE):
        return ""
    return (
        f"A time limit ran out. This machine: {busy()}. Run this test alone before you believe it."
    )
