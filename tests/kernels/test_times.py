"""Times of a run against an outside clock: the test itself measures the length of a task. It checks
only bounds, which hold on a busy machine, too.
"""

import mmap
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.kernels.test_decode import shape_of
from tests.raw import Bound, Closed, decode_args


class Clocked(Closed):
    """A decode of one unit by a Python function, which notes when it begins and ends."""

    def __init__(self, raw, work):
        self.raw, self.spans = raw, []

        @raw.ffi.callback("void(const kvb_work *)")
        def kernel(unit):
            begin = time.monotonic_ns()
            work()
            unit.max[0] = unit.sum[0] = unit.acc[0] = 0
            self.spans.append((begin, time.monotonic_ns()))

        self._kernel = kernel
        self._bound = Bound(raw, shape_of(dtype="f32", kv_heads=1, head_dim=1, capacity=8), [8])
        q = np.zeros((1, 1, 1), np.float32)
        args = decode_args(raw, self._bound, q, q.copy(), "scalar", run=kernel)
        self._planned = raw.task("decode", args, 1)
        self.task = self._planned.__enter__()

    def seconds(self) -> list[float]:
        return [(end - begin) * 1e-9 for begin, end in self.spans]

    def close(self):
        self._planned.__exit__(None, None, None)
        self._bound.close()


def run(raw, team, task, passes, between=None):
    times = raw.ffi.new("kvb_run_times *")
    each, threads = raw.ffi.new("double[]", passes), raw.ffi.new("double[]", 1)
    times.pass_seconds, times.thread_seconds = each, threads
    tasks = raw.ffi.new("kvb_task *[1]", [task])
    begin = time.monotonic()
    raw.check(raw.lib.kvb_run(team.team[0], tasks, 1, passes, between or raw.ffi.NULL, times))
    return times, list(each), threads[0], time.monotonic() - begin


def test_seconds_are_those_of_the_passes(raw, team):
    with Clocked(raw, lambda: time.sleep(0.01)) as clocked:
        times, each, own, outside = run(raw, team, clocked.task, 5)
    inside = clocked.seconds()
    assert sum(inside) <= times.seconds <= outside
    assert all(low <= found for low, found in zip(inside, each, strict=True))
    assert sum(each) == pytest.approx(times.seconds, rel=1e-6)
    assert sum(inside) <= own <= times.seconds * (1 + 1e-6)


def test_time_between_passes_is_not_counted(raw, team):
    work, rest = Clocked(raw, lambda: time.sleep(0.002)), Clocked(raw, lambda: time.sleep(0.03))
    with work, rest:
        times, each, own, outside = run(raw, team, work.task, 4, rest.task)
    assert len(rest.spans) == len(work.spans) == 4
    assert sum(work.seconds()) <= times.seconds <= outside - sum(rest.seconds())
    assert sum(each) == pytest.approx(times.seconds, rel=1e-6)
    assert sum(work.seconds()) <= own <= outside - sum(rest.seconds())


def test_stages_of_a_run_before_are_forgotten(raw, team):
    shape = shape_of(dtype="f32", kv_heads=1, capacity=100)
    with Bound(raw, shape, [100]) as bound:
        bound.put(type(bound.planes).filled(shape, 0))
        q = np.zeros((1, 1, shape.head_dim), np.float32)
        found = []
        for stages in (1, 0):
            args = decode_args(raw, bound, q, q.copy(), "scalar", stages=stages)
            with raw.task("decode", args, 1) as task:
                found.append(list(team.run(task).stage_share))
    assert sum(found[0]) == pytest.approx(1) and found[1] == [0, 0, 0]


def test_faults_are_those_of_the_run(raw, team):
    pages, kept = 300, []

    def touch():
        memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
        if hasattr(memory, "madvise") and hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, len(memory), mmap.PAGESIZE):
            memory[at] = 1
        kept.append(memory)

    with Clocked(raw, touch) as clocked:
        times, *_ = run(raw, team, clocked.task, 2)
    assert 2 * pages <= times.faults < 20 * pages


def switched() -> int:
    """Return the involuntary context switches of this thread."""
    with open("/proc/thread-self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("nonvoluntary"))


def test_switches_are_those_of_the_run(raw):
    """Another process also uses the CPU of the thread."""
    cpu, seen = min(os.sched_getaffinity(0)), []

    def spin():
        before, end = switched(), time.monotonic() + 0.2
        while time.monotonic() < end:
            pass
        seen.append(switched() - before)

    rival = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    opened = raw.ffi.new("kvb_team **")
    raw.check(raw.lib.kvb_team_open(raw.ffi.new("int32_t[1]", [cpu]), 1, opened))
    team = type("Pinned", (), {"team": opened})
    clocked = Clocked(raw, spin)
    process = subprocess.Popen([sys.executable, "-c", rival])
    try:
        times, *_ = run(raw, team, clocked.task, 2)
    finally:
        process.kill()
        process.wait()
        raw.lib.kvb_team_close(opened[0])
        clocked.close()
    assert times.switches >= sum(seen)
    assert times.switches > 0


def test_threads_stay_on_their_cpus(raw):
    allowed = sorted(os.sched_getaffinity(0))
    cpus = [allowed[-1], allowed[0]]
    before = set(os.listdir("/proc/self/task"))
    team = raw.ffi.new("kvb_team **")
    raw.check(raw.lib.kvb_team_open(raw.ffi.new("int32_t[2]", cpus), 2, team))
    members = sorted(int(task) for task in set(os.listdir("/proc/self/task")) - before)
    found = [os.sched_getaffinity(member) for member in members]
    raw.lib.kvb_team_close(team[0])
    assert sorted(map(sorted, found)) == sorted([cpu] for cpu in cpus)
