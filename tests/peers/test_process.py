"""A peer's process is stopped, and ends, with all that its engine has started."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from kvbench.peers.known import known
from kvbench.peers.process import Process
from tests.peers import fakes

PATIENCE = 20.0  # seconds, on a machine that is busy
BEGIN = """
import os, signal, sys, time
from kvbench.peers.process import Process
from tests.peers import fakes
process = Process("forking", fakes.Forking, "", tuple(os.sched_getaffinity(0)), 8)
process.ask("begin", process.where, "f32", "head", 1, "")
if sys.argv[1] == "running":
    process._group.signal(signal.SIGCONT)
print("begun", flush=True)
time.sleep(1000)
"""


def spinning(process):
    """The leader of the group, and the processes that it forked."""
    return [each for each in process.children(recursive=True) if "python" in each.name()]


def test_a_fork_of_an_engine_stops_and_ends_with_it():
    own = psutil.Process()
    before = {*own.children(recursive=True)}
    cpus = tuple(os.sched_getaffinity(0))
    with Process("forking", fakes.Forking, "", cpus, PATIENCE) as process:
        process.ask("begin", process.where, "f32", "head", 1, "")
        family = [each for each in spinning(own) if each not in before]
        assert len(family) == 2
        wait_for(lambda: {each.status() for each in family} == {psutil.STATUS_STOPPED})
    wait_for(lambda: not any(map(lives, family)))
    assert not [each for each in own.children() if each not in before]


def test_a_process_that_left_the_group_ends_too():
    own, cpus = psutil.Process(), tuple(os.sched_getaffinity(0))
    before = {*own.children(recursive=True)}
    with Process("leaving", fakes.Leaving, "", cpus, PATIENCE) as process:
        process.ask("begin", process.where, "f32", "head", 1, "")
        family = [each for each in spinning(own) if each not in before]
        assert len({os.getsid(each.pid) for each in family}) == 2
    wait_for(lambda: not any(map(lives, family)))


@pytest.mark.parametrize("state", ["stopped", "running"])
def test_nothing_is_left_if_the_parent_is_killed(state):
    with subprocess.Popen([sys.executable, "-c", BEGIN, state], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        whole = psutil.Process(process.pid).children(recursive=True)
        assert len(spinning(psutil.Process(process.pid))) == 2
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: not any(map(lives, whole)))


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("/nowhere/python", "/nowhere/python: No such file or directory"),
        ("/bin/sh", "its process ended with exit code"),
        (os.devnull, f"{os.devnull}: Permission denied"),
    ],
)
def test_a_path_that_is_not_a_python_is_told_with_a_hint(python, said):
    found = known("numpy", python=python)
    assert said in found.lacking and "give a Python that has numpy" in found.lacking
    assert "\n" not in found.lacking and not found.version


def lives(process):
    """An ended process may exist until somebody waits for it."""
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
