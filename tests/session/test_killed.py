"""SIGKILL of the parent, the worker or both: no finished visit is lost, and the run can be
resumed.
"""

import json
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from kvbench.store import RunDirectory

SUITE = """
question = "What is left of a run that is killed?"
launches = 2
samples = 2
sample_time = 0.004
[axes]
q_heads = 4
kv_heads = 2
head_dim = 32
context = [64, 128]
threads = 1
dtype = "all"

[[grid]]
residency = "hot"

[[grid]]
op = "step"
layers = 3
window = 40
full_every = 2
between = 6400
dtype = "f16"
"""
SHORT = SUITE.replace('"all"', '["f32", "i8"]').replace("[64, 128]", "64")
KILLS = {"parent": (True, False), "worker": (False, True), "both": (True, True)}


def sweep(folder, *arguments):
    command = [
        sys.executable,
        "-m",
        "kvbench.cli",
        "sweep",
        *arguments,
        "--out",
        str(folder / "run"),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def workers(pid):
    try:
        return [
            p
            for p in psutil.Process(pid).children(recursive=True)
            if "kvbench.worker" in " ".join(p.cmdline())
        ]
    except psutil.NoSuchProcess:
        return []


def journal(folder):
    """The full lines, read only with json."""
    path = folder / "run" / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def visits(found):
    return [(record["launch"], record["point"]) for record in found]


def killed(folder, suite, who, wait):
    """A run that is killed once, after `wait`; and its journal then."""
    (folder / "suite.toml").write_text(suite)
    process = sweep(folder, str(folder / "suite.toml"))
    wait()
    parent, worker = KILLS[who]
    left = workers(process.pid)
    if parent:
        process.kill()
    for one in left if worker else ():
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.communicate(timeout=120)
    gone = psutil.wait_procs(left, timeout=10)[1]
    assert not gone, "a worker outlived its parent"
    return journal(folder)


def check(folder, suite, who, wait):
    before = killed(folder, suite, who, wait)
    if (folder / "run" / "manifest.json").exists():
        assert len(RunDirectory.open(folder / "run").records) == len(before)
        arguments = ["--resume"]
    else:
        assert not before, "a journal without a run"
        arguments = [str(folder / "suite.toml")]
    process = sweep(folder, *arguments)
    said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    after = journal(folder)
    assert after[: len(before)] == before, "what was finished has changed"
    plan = json.loads((folder / "run" / "manifest.json").read_text())["plan"]
    found = visits(after)
    assert len(found) == len(set(found)) == 2 * len(plan["points"])
    assert not any(record["error"] for record in after)
    assert (folder / "run" / "run.json.gz").exists()
    return before


@pytest.mark.parametrize("who", KILLS)
def test_killed_once(tmp_path, who):
    """Killed when the first visit is in the journal; later ones are not made, or in the making."""

    def wait():
        deadline = time.monotonic() + 60
        while not journal(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)

    assert check(tmp_path, SHORT, who, wait)
