"""Every check of the preflight on made-up machines: when it passes, when it warns, when it cannot
know.
"""

import os
import shutil

import pytest

from kvbench.errors import Refused
from kvbench.machine.preflight import CHECKS, Live, busy, preflight
from kvbench.machine.tree import Files
from kvbench.model import Cpu, DataCache, Fact, Machine, Node
from tests.machine.healthy import CLOCKSOURCE, CPU, HEALTHY, THP, Still
from tests.machine.trees import put
from tests.made_run import MIB


def machine(
    cpus=2,
    allowed=None,
    threads=1,
    nodes=1,
    kinds=("",),
    caches=((1, 32 << 10, 1), (3, 32 * MIB, 2)),
    **facts,
):
    """`threads` CPUs a core, nodes and kinds dealt in turn; caches are (level, size, sharers)."""
    known = {
        "page_bytes": 4096,
        "hypervisor": "none",
        "container": "none",
        "quota": "unlimited",
        "smt": threads,
        "nodes": nodes,
    }
    facts = known | facts
    return Machine(
        cpus=tuple(
            Cpu(i, i // threads * threads, 0, i % nodes, i % threads, kinds[i % len(kinds)])
            for i in range(cpus)
        ),
        allowed=tuple(range(cpus)) if allowed is None else allowed,
        caches=tuple(
            DataCache(level, size, tuple(range(first, min(first + share, cpus))))
            for level, size, share in caches
            for first in range(0, cpus, share)
        ),
        nodes=tuple(Node(i, tuple(range(i, cpus, nodes)), None) for i in range(nodes)),
        facts={name: Fact(value, "made up", "high") for name, value in facts.items()},
        warnings=(),
        fingerprint="f",
        environment="e",
    )


def look(tmp_path, name, tree=None, without=(), on=(), live=None, **facts):
    """Run a check on the healthy machine with these changes, with threads on the CPUs `on`."""
    put(tmp_path, HEALTHY | (tree or {}))
    for path in without:
        gone = tmp_path / path.lstrip("/")
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    checks = preflight(Files(tmp_path), machine(**facts), on, Still(tmp_path, **(live or {})))
    (found,) = (check for check in checks if check.name == name)
    return found


def test_a_healthy_machine(tmp_path):
    put(tmp_path, HEALTHY)
    checks = preflight(Files(tmp_path), machine(), (), Still(tmp_path))
    assert {check.name: check for check in checks if check.status != "ok"} == {}
    assert len({check.name for check in checks}) == len(CHECKS)
    assert all(check.why and check.value and not check.advice for check in checks)


@pytest.mark.parametrize(
    ("idle", "user", "share"),
    [(20, 0, 0.0), (19, 1, 0.0), (15, 5, 0.25), (2, 18, 0.9), (0, 0, 0.0)],
)
def test_how_busy_the_allowed_cpus_are(tmp_path, idle, user, share):
    """Ticks of CPU 0, the only allowed one, while this process sleeps; a tenth of its time counts
    as 0.
    """
    put(tmp_path, HEALTHY)
    line = f"cpu0 {user} 0 0 {idle} 0 0 0 0\ncpu1 999 0 0 0 0 0 0 0\nprocs_running 1\n"
    found = busy(
        machine(allowed=(0,)), Files(tmp_path), Still(tmp_path, quiet={"/proc/stat": line})
    )
    assert found == pytest.approx(share)


def test_nothing_is_known(tmp_path):
    """An empty tree, no known CPU, nothing to try: every check still answers, and says why it knows
    nothing.
    """
    nobody = Machine((), (), (), (), {}, (), "f", "e")
    checks = preflight(
        Files(tmp_path), nobody, (), Still(tmp_path, error=Refused("no", "ask"), quiet={})
    )
    assert len(checks) == len(CHECKS)
    assert all(check.value and check.why for check in checks)
    assert {check.status for check in checks} == {"unknown"}


STEADY = {f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "powersave" for cpu in (0, 1)}
EAGER = {
    f"{CPU}/cpu{cpu}/cpufreq/energy_performance_preference": "balance_performance" for cpu in (0, 1)
}
LAZY = {f"{CPU}/cpu{cpu}/cpufreq/energy_performance_preference": "power" for cpu in (0, 1)}


def stat(idle=20, user=0, steal=0, running=1):
    return {
        "/proc/stat": (
            f"cpu0 {user} 0 0 {idle} 0 0 0 {steal}\ncpu1 {user} 0 0 {idle} 0 0 0"
            f" {steal}\nprocs_running {running}\n"
        )
    }


OK = [
    ("governor", "powersave, intel_pstate, balance_performance", {"tree": STEADY | EAGER}),
    ("turbo", "off", {"tree": {f"{CPU}/intel_pstate/no_turbo": "1"}}),
    (
        "turbo",
        "on",
        {"tree": {f"{CPU}/cpufreq/boost": "1"}, "without": [f"{CPU}/intel_pstate/no_turbo"]},
    ),
    (
        "turbo",
        "off",
        {"tree": {f"{CPU}/cpu0/cpufreq/boost": "0", f"{CPU}/cpu1/cpufreq/boost": "0"}},
    ),
    ("steal", "0.0% of the time now", {}),
    ("allowed CPUs", "2 of 4: 0-1", {"cpus": 4, "allowed": (0, 1)}),
    ("SMT", "on; 4 CPUs of 2 cores", {"cpus": 4, "threads": 2, "on": (0, 2)}),
    (
        "core clock",
        (
            "3.00 GHz under load on 2 threads, varies by 0%; nominal 2.60; current 3.00; highest"
            " 3.80"
        ),
        {},
    ),
    ("clock source", "arch_sys_counter", {"tree": {CLOCKSOURCE: "arch_sys_counter"}}),
    ("CPU quota", "none", {}),
    ("CPU quota", "2 CPUs' worth of time; threads: 2, allowed CPUs: 2", {"quota": 2.0}),
    (
        "CPU quota",
        "1.5 CPUs' worth of time; threads: 1, allowed CPUs: 2",
        {"quota": 1.5, "on": (0,)},
    ),
    ("transparent huge pages", "madvise; 100% of an arena of 64 MiB in pages of 2 MiB", {}),
    ("NUMA balancing", "only one node", {"tree": {"/proc/sys/kernel/numa_balancing": "1"}}),
    ("NUMA balancing", "only one node", {"without": ["/proc/sys/kernel/numa_balancing"]}),
    (
        "page placement",
        "50% of the pages on node 0, 50% of the pages on node 1",
        {"live": {"pages": (8, 8)}, "nodes": 2},
    ),
    ("page placement", "only one node", {}),
    ("virtual machine", "no", {}),
]
WARN = [
    ("governor", "powersave, intel_pstate, power", {"tree": STEADY | LAZY}),
    ("governor", "powersave, intel_pstate", {"tree": STEADY}),
    ("governor", "schedutil", {"tree": {f"{CPU}/cpu1/cpufreq/scaling_governor": "schedutil"}}),
    (
        "turbo",
        "some",
        {"tree": {f"{CPU}/cpu0/cpufreq/boost": "0", f"{CPU}/cpu1/cpufreq/boost": "1"}},
    ),
    ("other tasks", "2.0 runnable", {"live": {"quiet": stat(running=3)}}),
    ("other tasks", "busy 50% of the time", {"live": {"quiet": stat(user=20)}}),
    ("steal", "10.0% of the time now", {"live": {"busy": stat(idle=20, user=18, steal=2)}}),
    ("allowed CPUs", "1 of 2: 1; they share an L3 with 0", {"allowed": (1,)}),
    ("SMT", "CPUs 3", {"cpus": 4, "threads": 2, "on": (0, 2), "allowed": (0, 1, 2)}),
    ("SMT", "2 cores would run two threads", {"cpus": 4, "threads": 2, "on": (0, 1, 2, 3)}),
    ("CPU quota", "1.5 CPUs' worth of time; threads: 2, allowed CPUs: 2", {"quota": 1.5}),
    (
        "CPU quota",
        "0.5 CPUs' worth of time; threads: 1, allowed CPUs: 2",
        {"quota": 0.5, "on": (0,)},
    ),
    ("virtual machine", "KVM", {"hypervisor": "KVM"}),
    ("core clock", "2.00 GHz", {"live": {"rounds": ((2.0, 2.0),) * 4}}),
    (
        "core clock",
        "varies by 10%",
        {"live": {"rounds": ((3.0, 3.0), (3.0, 2.7), (3.0, 2.7), (3.0, 2.7))}},
    ),
    ("core clock", "3.00 to 3.50 GHz", {"live": {"rounds": ((3.0, 3.5),) * 4}}),
    ("clock source", "hpet", {"tree": {CLOCKSOURCE: "hpet"}}),
    (
        "transparent huge pages",
        "never; 40% of",
        {"tree": {f"{THP}/enabled": "always madvise [never]"}, "live": {"huge": 0.4}},
    ),
    ("NUMA balancing", "on", {"tree": {"/proc/sys/kernel/numa_balancing": "1"}, "nodes": 2}),
    ("page placement", "100% of the pages on node 0", {"nodes": 2}),
    (
        "memory",
        "512 MiB available, 768 MiB",
        {"tree": {"/proc/meminfo": "MemAvailable: 524288 kB\n"}},
    ),
]
REFUSED = {"live": {"error": Refused("the system said no", "ask it")}}
UNKNOWN = [
    (
        "governor",
        "no cpufreq",
        {"without": [f"{CPU}/cpu{cpu}/cpufreq/scaling_governor" for cpu in (0, 1)]},
    ),
    ("turbo", "neither 0 nor 1", {"tree": {f"{CPU}/intel_pstate/no_turbo": "-1"}}),
    ("turbo", "no_turbo", {"without": [f"{CPU}/intel_pstate/no_turbo"]}),
    ("other tasks", "not understood", {"tree": {"/proc/stat": "cpu0 many"}, "live": {"quiet": {}}}),
    ("other tasks", "does not advance", {"live": {"quiet": {}}}),
    (
        "other tasks",
        "does not advance",
        {"tree": {"/proc/stat": "intr 0\n"}, "live": {"quiet": {}}},
    ),
    (
        "steal",
        "does not count",
        {"live": {"busy": {"/proc/stat": "cpu0 99 0 0 99\ncpu1 99 0 0 99\n"}}},
    ),
    ("steal", "the system said no", REFUSED),
    ("allowed CPUs", "does not say", {"allowed": (1,), "caches": ()}),
    ("CPU quota", "quota is not known", {"quota": None}),
    ("SMT", "smt is not known", {"smt": None}),
    ("virtual machine", "hypervisor is not known", {"hypervisor": None}),
    ("core clock", "the system said no", REFUSED),
    ("clock source", "sundial", {"tree": {CLOCKSOURCE: "sundial"}}),
    ("clock source", "is missing, empty", {"tree": {CLOCKSOURCE: ""}}),
    ("transparent huge pages", "the system said no", REFUSED),
    (
        "transparent huge pages",
        "the test needs",
        {"tree": {"/proc/meminfo": "MemAvailable: 65536 kB\n"}},
    ),
    ("NUMA balancing", "missing", {"without": ["/proc/sys/kernel/numa_balancing"], "nodes": 2}),
    ("page placement", "does not say", {"live": {"pages": ()}, "nodes": 2}),
    ("memory", "does not say how much", {"without": ["/proc/meminfo"]}),
]


@pytest.mark.parametrize(
    ("status", "name", "value", "change"),
    [
        (status, *row)
        for status, rows in (("ok", OK), ("warn", WARN), ("unknown", UNKNOWN))
        for row in rows
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_check(tmp_path, status, name, value, change):
    found = look(tmp_path, name, **change)
    assert (found.status, value in found.value) == (status, True), found
    assert found.advice or status != "warn", "a warning says what to do"
    assert "\n" not in found.value + found.why + found.advice


def test_the_running_system():
    """Only the list of CPUs is made up: those of this process."""
    live, cpus = Live(), sorted(os.sched_getaffinity(0))[:2]
    rounds = live.clock(cpus)
    assert len(rounds) > 4 and all(len(round_) == len(cpus) for round_ in rounds)
    assert all(0.01 < ghz < 20 for round_ in rounds for ghz in round_)
    memory, pages = live.touched(4 * MIB, cpus)
    assert memory["resident_bytes"] == 4 * MIB and all(node >= 0 for node in pages)
    assert 0 <= memory["huge_bytes"] <= memory["resident_bytes"]


def test_cpus_of_another_machine_are_not_tried():
    absent = max(os.sched_getaffinity(0)) + 1
    with pytest.raises(Refused, match=f"CPUs {absent} do not exist here"):
        Live().clock([absent])
    with pytest.raises(Refused, match=f"CPUs {absent} do not exist here"):
        Live().touched(4 * MIB, [absent])


def test_every_check_is_seen_in_every_state(tmp_path):
    """A check cannot be in a state that is not listed here."""
    nowhere = Files("/nowhere")
    checks = preflight(
        nowhere, machine(), (), Still(tmp_path, quiet={}, error=Refused("no", "ask"))
    )
    everything = {check.name for check in checks}
    assert everything == {name for name, *_ in WARN}
    assert everything == {name for name, *_ in UNKNOWN}
