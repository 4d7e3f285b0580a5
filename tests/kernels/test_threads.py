"""Teams on crowded CPUs, on one CPU, and on none while idle. check/threads.c compares the answers
of 1 to 16 threads.
"""

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from tests.kernels.test_decode import case_of, shape_of
from tests.processes import succeeds
from tests.raw import ROOT, Bound, decode_args


@pytest.mark.parametrize("threads", [2, 16])
def test_many_passes_on_crowded_cpus_finish(raw, bench, threads):
    case = case_of(bench, shape_of(), [700])
    with Bound(raw, case.shape, case.lengths) as bound:
        bound.put(case.planes)
        args = decode_args(raw, bound, case.q, np.empty_like(case.q), "scalar")
        with raw.task("decode", args, threads) as task:
            begin = time.monotonic()
            bench.team(threads).run(task, passes=50)
            assert time.monotonic() - begin < 30


def run_apart(body, **environment):
    """Run code in its own process, with its own CPU mask."""
    text = "from tests.raw import *\nfrom tests import trial, cases\nimport os\n" + textwrap.dedent(
        body
    )
    own = os.environ | environment
    return succeeds([sys.executable, "-c", text], cwd=ROOT, timeout=120, env=own).stdout


def test_idle_team_uses_no_cpu():
    """The test has its own process, because threads of other libraries would count."""
    run_apart("""
        import time
        from tests.kernels.test_threads import shape_of
        raw, shape = Raw(), shape_of(capacity=300, kv_heads=1)
        with Team(raw, 4) as team, Bound(raw, shape, [300]) as bound:
            bound.put(type(bound.planes).filled(shape, 0))
            q = np.zeros((1, 1, shape.head_dim), np.float32)
            team.do("decode", decode_args(raw, bound, q, np.empty_like(q), "scalar"))
            time.sleep(0.2)
            begin = time.process_time()
            time.sleep(1.5)
            assert time.process_time() - begin < 0.05
    """)


def test_one_cpu_mask():
    out = run_apart("""
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        bench = trial.Bench()
        for index in range(12):
            case = cases.make(bench.words, 3, index)
            case.threads = 4
            assert trial.failures(bench, case, bench.raw.tiers()) == []
        print("fine")
        """)
    assert out.strip() == "fine"


ELSEWHERE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
FILE *fopen(const char *name, const char *mode)
{
    typedef FILE *opens(const char *, const char *);
    opens *real = (opens *)dlsym(RTLD_NEXT, "fopen");
    int planted = !strncmp(name, "/sys/fs/cgroup", 14) || !strcmp(name, "/proc/self/cgroup");
    char other[999];
    snprintf(other, sizeof other, "%s%s", planted ? getenv("ROOT") : "", name);
    return real(other, mode);
}
"""
WAITING = """
raw, others = Raw(), set(os.listdir("/proc/self/task"))
team, found = Team(raw, 2), set()
others = set(os.listdir("/proc/self/task")) - others

@raw.ffi.callback("void(const kvb_work *)")
def kernel(work):
    "A unit of one thread, while the other one has none: how does it wait?"
    work.max[0] = work.sum[0] = work.acc[0] = 0
    mine = str(threading.get_native_id())
    for _ in range(100):
        for task in others - {mine}:
            found.add(open(f"/proc/self/task/{task}/stat").read().rpartition(")")[2].split()[0])
        if "S" in found:
            return
        time.sleep(0.01)

shape = oracle.Shape("head", "f32", 1, 1, 1, 8)
with Bound(raw, shape, [8]) as bound:
    q = np.zeros((1, 1, 1), np.float32)
    team.do("decode", decode_args(raw, bound, q, q.copy(), "scalar", run=kernel))
team.close()
print("sleeps" if "S" in found else "spins")
"""


@pytest.mark.parametrize(
    ("limits", "how"),
    [
        ({"": "max 100000"}, "spins"),
        ({"": "200000 100000", "/a/b": "max 100000"}, "spins"),
        ({"/a/b": "199999 100000"}, "sleeps"),
        ({"/a": "50000 100000", "/a/b": "max 100000"}, "sleeps"),
        ({"": "150000 100000"}, "sleeps"),
    ],
)
def test_threads_sleep_under_a_quota(tmp_path, limits, how):
    """If they spun, they would use the CPU time of the thread that they wait for."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU only")
    files = {"sys/fs/cgroup" + group + "/cpu.max": limit for group, limit in limits.items()}
    for name, text in (files | {"proc/self/cgroup": "1:cpu:/c\n0::/a/b\n"}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "elsewhere.c").write_text(ELSEWHERE)
    subprocess.run(
        ["cc", "-w", "-shared", "-fPIC", "elsewhere.c", "-o", "elsewhere.so", "-ldl"],
        cwd=tmp_path,
        check=True,
    )
    preloaded = {"LD_PRELOAD": str(tmp_path / "elsewhere.so"), "ROOT": str(tmp_path)}
    assert (
        run_apart("import threading, time\nfrom tests import oracle\n" + WAITING, **preloaded)
        == how + "\n"
    )


def test_more_threads_than_cpus_sleep():
    out = run_apart(
        "import threading, time\nfrom tests import oracle\nos.sched_setaffinity(0,"
        " {min(os.sched_getaffinity(0))})\n" + WAITING
    )
    assert out == "sleeps\n"


def test_pinning_outside_the_mask_is_refused():
    """The refusal names the CPU; there is no endless wait or crash."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one CPU only")
    out = run_apart("""
        mask = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(mask)})
        raw = Raw()
        team = raw.ffi.new("kvb_team **")
        for cpu in (max(mask), -1, 1 << 20):
            code = raw.lib.kvb_team_open(raw.ffi.new("int32_t[1]", [cpu]), 1, team)
            refusals = raw.lib.KVB_BAD_ARGUMENT, raw.lib.KVB_UNSUPPORTED, raw.lib.KVB_SYSTEM
            assert code in refusals, code
            assert "cpu" in raw.message().lower(), raw.message()
        assert raw.lib.kvb_team_open(raw.ffi.new("int32_t[1]", [min(mask)]), 1, team) == 0
        raw.lib.kvb_team_close(team[0])
        print("fine")
        """)
    assert out.strip() == "fine"
