"""Complete machines from made-up trees."""

import json
import os
import shutil
from dataclasses import asdict

import pytest

from kvbench.machine import describe
from tests.machine import trees
from tests.machine.trees import CPU, NODE, grow, put

FACTS = """
    brand vendor architecture isa sockets cores smt core_kinds nodes snc l1d l2 l3 domains
    hypervisor container microcode kernel command_line mitigations quota throttled memory
    memory_limit page_bytes dram_peak
"""
ALL = [
    trees.zen4,
    trees.hybrid,
    trees.snc4,
    trees.graviton,
    trees.apple,
    trees.merged_l3,
    trees.bare_guest,
    trees.grace_hopper,
]


def values(machine, *names):
    return tuple(machine.facts[name].value for name in names)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_fact_has_a_source_and_unknown_ones_a_reason(kind, tmp_path):
    machine = describe(kind(tmp_path))
    assert sorted(machine.facts) == sorted(FACTS.split())
    for name, fact in machine.facts.items():
        assert fact.source, name
        assert fact.confidence in ("high", "low", "none"), name
        assert (fact.value is None) == (fact.confidence == "none"), name
        assert fact.note or fact.value is not None, name
    json.dumps(asdict(machine))


def test_nothing_to_read_at_all(tmp_path):
    machine = describe(put(tmp_path, {}))
    assert sorted(machine.facts) == sorted(FACTS.split())
    assert (
        machine.allowed
        == tuple(cpu.cpu for cpu in machine.cpus)
        == tuple(sorted(os.sched_getaffinity(0)))
    )
    assert (
        values(
            machine, "brand", "sockets", "cores", "smt", "nodes", "l3", "domains", "quota", "memory"
        )
        == (None,) * 9
    )
    assert [node.cpus for node in machine.nodes] == [machine.allowed]


KNOWN = {  # facts of whole machines
    trees.zen4: {
        "sockets": 1,
        "cores": 16,
        "smt": 2,
        "nodes": 1,
        "snc": 1,
        "l1d": 32 << 10,
        "l2": 1 << 20,
        "l3": 32 << 20,
        "domains": ["0-7,16-23", "8-15,24-31"],
    },
    trees.hybrid: {"core_kinds": {"core": "0-3", "atom": "4-7"}},
    trees.snc4: {"sockets": 2, "nodes": 8, "snc": 4, "domains": ["0-7", "8-15"]},
    trees.graviton: {
        "brand": "Neoverse-N1",
        "vendor": "Arm",
        "architecture": "aarch64",
        "hypervisor": "Amazon EC2",
        "cores": 64,
        "l3": 32 << 20,
        "microcode": None,
        "core_kinds": {},
    },
    trees.apple: {
        "l3": None,
        "domains": ["0-3", "4-7"],
        "page_bytes": 16384,
        "brand": "M1 Firestorm + M1 Icestorm",
        "core_kinds": {"M1 Firestorm": "4-7", "M1 Icestorm": "0-3"},
        "hypervisor": None,
    },
    trees.bare_guest: {"l1d": None, "l2": None, "l3": None, "domains": None, "cores": 4},
    trees.grace_hopper: {"nodes": 9, "snc": 1, "brand": "Neoverse-V2"},
}
NOTES = [
    (trees.zen4, "l3", "2 of 32 MiB"),
    (trees.hybrid, "l1d", "4 of 48 KiB, 4 of 32 KiB"),
    (trees.apple, "l2", "1 of 12 MiB, 1 of 4 MiB"),
    (trees.grace_hopper, "nodes", "of memory alone: 1; of nothing: 2-8"),
]
WARNED = {trees.hybrid: "kinds", trees.apple: "kinds", trees.bare_guest: "no cache is declared"}


@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.__name__)
def test_whole_machines(kind, tmp_path):
    machine = describe(kind(tmp_path))
    assert {name: machine.facts[name].value for name in KNOWN[kind]} == KNOWN[kind]
    assert all(machine.facts[name].note == note for tree, name, note in NOTES if tree == kind)
    assert [WARNED.get(kind, "") in line for line in machine.warnings] == [True] * (kind in WARNED)


def test_where_cpus_caches_and_nodes_are(tmp_path):
    zen, hybrid, snc, hopper = (
        describe(kind(tmp_path / kind.__name__))
        for kind in (trees.zen4, trees.hybrid, trees.snc4, trees.grace_hopper)
    )
    assert [(cpu.core, cpu.thread) for cpu in zen.cpus if cpu.cpu in (3, 19)] == [(3, 0), (3, 1)]
    assert [(cache.size, cache.cpus) for cache in zen.caches if cache.level == 2][3] == (
        1 << 20,
        (3, 19),
    )
    assert [cpu.kind for cpu in hybrid.cpus] == ["core"] * 4 + ["atom"] * 4
    assert [cache.cpus for cache in hybrid.caches if cache.size == 4 << 20] == [(4, 5, 6, 7)]
    assert [cpu.node for cpu in snc.cpus] == [cpu // 2 for cpu in range(16)]
    assert [node.node for node in hopper.nodes if not node.cpus] == list(range(1, 9))
    assert hopper.nodes[1].bytes == 96 << 30


def test_cpu_0_need_not_be_there(tmp_path):
    machine = describe(grow(tmp_path, cores=4, smt=2, offline={0}, allowed="1,5"))
    assert machine.allowed == (1, 5)
    assert [cpu.cpu for cpu in machine.cpus] == [1, 2, 3, 4, 5, 6, 7]
    # its sibling is offline
    assert [(cpu.core, cpu.thread) for cpu in machine.cpus if cpu.cpu == 4] == [(4, 0)]
    assert values(machine, "cores", "smt", "l3") == (4, 2, 32 << 20)


def test_firmware_that_numbers_no_sockets(tmp_path):
    more = {f"{CPU}/cpu{cpu}/topology/physical_package_id": -1 for cpu in range(8)}
    machine = describe(grow(tmp_path, more=more))
    assert machine.facts["sockets"].value == 1
    assert machine.facts["sockets"].confidence == "low"
    assert {cpu.socket for cpu in machine.cpus} == {0}


def test_siblings_by_their_older_name(tmp_path):
    files = grow(tmp_path, cores=4, smt=2)
    for path in tmp_path.rglob("core_cpus_list"):
        path.rename(path.with_name("thread_siblings_list"))
    assert values(describe(files), "cores", "smt", "domains") == (4, 2, ["0-7"])


@pytest.mark.parametrize("garbage", ["²", "-1 kB", "9" * 5000])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{CPU}/cpu0/topology/core_cpus_list", "{}"),
        (f"{CPU}/cpu0/topology/physical_package_id", "{}"),
        (f"{CPU}/cpu0/cache/index0/size", "{}"),
        (f"{CPU}/cpu0/cache/index0/shared_cpu_list", "{}"),
        (f"{NODE}/node0/cpulist", "{}"),
        (f"{NODE}/node0.bak/cpulist", "{}"),
        (f"{NODE}/node0/meminfo", "Node 0 MemTotal: {}"),
        (f"{NODE}/node0/meminfo", "MemTotal:"),
        ("proc/meminfo", "MemTotal: {} kB"),
        ("proc/self/status", "Cpus_allowed_list: {}"),
        ("sys/fs/cgroup/cpu.max", "{} 100000"),
        ("sys/fs/cgroup/memory.max", "{}"),
    ],
)
def test_garbage_does_not_crash(path, text, garbage, tmp_path):
    machine = describe(grow(tmp_path, cores=2, more={path: text.format(garbage)}))
    assert [cpu.cpu for cpu in machine.cpus] == [0, 1]
    json.dumps(asdict(machine))


def test_the_fingerprint_is_of_hardware(tmp_path):
    first = describe(trees.zen4(tmp_path / "first"))
    changed = {
        "proc/sys/kernel/osrelease": "6.9.0",
        "proc/cmdline": "mitigations=off",
        "proc/meminfo": "MemTotal: 1 kB",
    }
    second = trees.zen4(tmp_path / "second", allowed="3", memory=[31], more=changed)
    cpuinfo = tmp_path / "second/proc/cpuinfo"
    cpuinfo.write_text(
        cpuinfo.read_text().replace("cpu MHz\t: 20", "cpu MHz\t: 31").replace("0x1", "0x2")
    )
    second = describe(second)
    assert first.fingerprint == second.fingerprint
    assert first.environment != second.environment
    assert len(first.fingerprint) == 16


@pytest.mark.parametrize(
    "other",
    [
        {"brand": "Other CPU"},
        {"cores": 4},
        {"smt": 2},
        {"sockets": 2},
        {"caches": trees.SERVER[:3]},
        {"nodes": [[0, 1, 2, 3], [4, 5, 6, 7]]},
        {"arm": trees.NEOVERSE},
    ],
    ids=str,
)
def test_other_hardware_has_another_fingerprint(other, tmp_path):
    same = describe(grow(tmp_path / "same")).fingerprint
    assert describe(grow(tmp_path / "other", **other)).fingerprint != same


@pytest.mark.parametrize(
    "change",
    [
        {"proc/cmdline": "quiet"},
        {"sys/devices/system/cpu/vulnerabilities/meltdown": "Vulnerable"},
        {"sys/fs/cgroup/cpu.max": "150000 100000"},
        {"sys/fs/cgroup/memory.max": 1 << 30},
        {"proc/self/status": "Cpus_allowed_list: 1"},
        {"run/.containerenv": ""},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_environment_is_what_an_administrator_sets(change, tmp_path):
    plain = describe(grow(tmp_path / "plain"))
    changed = describe(grow(tmp_path / "changed", more=change))
    assert plain.environment != changed.environment
    assert plain.fingerprint == changed.fingerprint


def test_this_machine():
    machine = describe()
    assert set(machine.allowed) == os.sched_getaffinity(0)
    assert set(machine.allowed) <= {cpu.cpu for cpu in machine.cpus}
    assert machine.fingerprint == describe().fingerprint
    assert machine.facts["memory"].value > 1 << 28
    assert machine.facts["page_bytes"].value == os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("text", [None, "", "4-garbage", "4-6", "no nodes"])
def test_a_cpu_on_no_node(text, tmp_path):
    files = grow(tmp_path, sockets=2, cores=4)
    (tmp_path / NODE / "node1/cpulist").unlink()
    if text == "no nodes":
        shutil.rmtree(tmp_path / NODE)
    elif text is not None:
        put(tmp_path, {f"{NODE}/node1/cpulist": text})
    machine = describe(files)
    assert values(machine, "nodes", "snc") == (None, None)
    assert "each CPU on a NUMA node" in machine.facts["nodes"].note
    assert [node.cpus for node in machine.nodes] == [tuple(range(8))]


def test_a_tree_does_not_say_what_the_running_system_is(tmp_path):
    facts = describe(put(tmp_path, {"proc/cpuinfo": "processor: 0\nflags: fpu lm sse"})).facts
    for name in ("architecture", "kernel", "page_bytes"):
        assert (facts[name].value, facts[name].note) == (None, "the tree does not say")
