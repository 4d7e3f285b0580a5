"""Control groups of both versions: nested, in namespaces, and absent."""

import resource

import pytest

from kvbench.errors import Refused
from kvbench.machine import available_memory
from kvbench.machine.allowance import has_groups, memory_limit, quota_cpus, throttled
from kvbench.machine.describe import limit_facts
from tests.machine.trees import NODE, Live, put

TOP = "sys/fs/cgroup"
MEMINFO = {"proc/meminfo": "MemTotal: 8192 kB\nMemAvailable: 4096 kB"}
UNLIMITED = {"4 KiB": 0x7FFFFFFFFFFFF000, "64 KiB": 0x7FFFFFFFFFFF0000}  # by the size of a page


def version2(root, path="/app/run", **files):
    return put(root, {"proc/self/cgroup": f"0::{path}", **MEMINFO, **_under(files)})


def version1(root, path="/app/run", **files):
    return put(
        root,
        {
            "proc/self/cgroup": f"4:memory:{path}\n3:cpu,cpuacct:{path}\n0::/",
            **MEMINFO,
            **_under(files),
        },
    )


def _under(files):
    return {f"{TOP}/{name}": text for group in files.values() for name, text in group.items()}


def test_version_2_takes_the_tightest_of_all_levels(tmp_path):
    files = version2(
        tmp_path,
        inner={
            "app/run/cpu.max": "max 100000",
            "app/run/memory.max": "3000000",
            "app/run/memory.current": "1000000",
        },
        outer={
            "app/cpu.max": "150000 100000",
            "app/memory.max": "2000000",
            "app/memory.current": "1500000",
        },
        other={"else/cpu.max": "10000 100000", "else/memory.max": "1000"},
    )
    assert quota_cpus(files) == 1.5
    assert memory_limit(files) == 2000000
    assert available_memory(files) == 500000


def test_version_1_takes_the_tightest_of_all_levels(tmp_path):
    files = version1(
        tmp_path,
        cpu={
            "cpu/app/run/cpu.cfs_quota_us": "-1",
            "cpu/app/run/cpu.cfs_period_us": "100000",
            "cpu/app/cpu.cfs_quota_us": "75000",
            "cpu/app/cpu.cfs_period_us": "50000",
        },
        memory={
            "memory/app/run/memory.limit_in_bytes": "3000000",
            "memory/app/run/memory.usage_in_bytes": "1000000",
            "memory/app/memory.limit_in_bytes": "2000000",
            "memory/app/memory.usage_in_bytes": "1500000",
        },
    )
    assert quota_cpus(files) == 1.5
    assert memory_limit(files) == 2000000
    assert available_memory(files) == 500000


@pytest.mark.parametrize("page", UNLIMITED)
def test_an_unlimited_group_has_no_limit(page, tmp_path):
    files = version1(
        tmp_path / "1", memory={"memory/app/run/memory.limit_in_bytes": UNLIMITED[page]}
    )
    assert memory_limit(files) is None and quota_cpus(files) is None
    files = version2(
        tmp_path / "2", inner={"app/run/cpu.max": "max 100000", "app/run/memory.max": "max"}
    )
    assert memory_limit(files) is None and quota_cpus(files) is None
    assert available_memory(files) == 4096 << 10
    facts = limit_facts(files)
    assert facts["quota"].value == facts["memory_limit"].value == "unlimited"


GROUPS = [  # memory.current, .stat and .max, and what is left
    ("2500000", "anon 500000\ninactive_file 1500000", "3000000", 2000000),
    # read later: more gives way than was used before
    ("1000000", "inactive_file 1500000", "3000000", 3000000),
    ("2000", "", "1000", 0),
]


@pytest.mark.parametrize(("current", "stat", "most", "left"), GROUPS)
def test_page_cache_gives_way(current, stat, most, left, tmp_path):
    group = {"memory.max": most, "memory.current": current, "memory.stat": stat}
    files = version2(tmp_path, inner={f"app/run/{name}": text for name, text in group.items()})
    assert available_memory(files) == left


@pytest.mark.parametrize("path", ["/", "/../../outside", "/docker/abc"])
def test_a_namespace_shows_the_own_group_at_the_top(path, tmp_path):
    files = version2(
        tmp_path / "2", path=path, own={"cpu.max": "50000 100000", "memory.max": "1000000"}
    )
    assert (quota_cpus(files), memory_limit(files)) == (0.5, 1000000)
    own = {"memory/memory.limit_in_bytes": "1000000"}
    assert memory_limit(version1(tmp_path / "1", path=path, own=own)) == 1000000


def test_a_group_is_made_to_wait_before_its_limit(tmp_path):
    high = {"app/run/memory.max": "3000000", "app/run/memory.high": "2000000"}
    assert memory_limit(version2(tmp_path, inner=high)) == 2000000


def test_throttling_is_counted_over_all_levels(tmp_path):
    inner, outer = (
        {"app/run/cpu.stat": "usage_usec 9\nnr_throttled 3"},
        {"app/cpu.stat": "nr_throttled 1"},
    )
    assert throttled(version2(tmp_path / "2", inner=inner, outer=outer)) == 4
    assert (
        throttled(
            version1(tmp_path / "1", own={"cpu/app/run/cpu.stat": "nr_periods 10\nnr_throttled 3"})
        )
        == 3
    )


def test_nothing_counts(tmp_path):
    assert throttled(version2(tmp_path, inner={"app/run/cpu.stat": "usage_usec 9"})) is None


def test_an_empty_folder_shows_no_groups(tmp_path):
    (tmp_path / TOP).mkdir(parents=True)
    files = put(tmp_path, {"proc/self/cgroup": "0::/app"} | MEMINFO)
    assert not has_groups(files, "cpu")
    assert limit_facts(files)["quota"].value is None


def test_no_groups(tmp_path):
    files = put(tmp_path, MEMINFO)
    assert not has_groups(files, "cpu")
    assert quota_cpus(files) is memory_limit(files) is throttled(files) is None
    assert available_memory(files) == 4096 << 10


def test_missing_meminfo(tmp_path):
    none = put(tmp_path / "none", {})
    for files in (none, Live(none.root)):
        with pytest.raises(Refused, match="does not say"):
            available_memory(files)


def on_nodes(root, allowed, cached="Node 0 Inactive(file): 300 kB", **more):
    """4 MiB are available, 1 MiB of it on node 0. A node without memory is never allowed."""
    free = {
        0: "MemTotal: 2048 kB\nNode 0 MemFree: 1024 kB",
        1: "MemTotal: 6144 kB\nNode 1 MemFree: 3072 kB",
    }
    nodes = {
        f"{NODE}/node{node}/meminfo": f"Node {node} {text}\n{cached}" for node, text in free.items()
    }
    nodes[f"{NODE}/node2/meminfo"] = "Node 2 MemTotal: 0 kB"
    return put(
        root, nodes | {"proc/self/status": f"Mems_allowed_list:\t{allowed}"} | MEMINFO | more
    )


def test_memory_of_other_nodes_is_not_available(tmp_path):
    assert available_memory(on_nodes(tmp_path, "0")) == 1324 << 10
    assert available_memory(on_nodes(tmp_path, "0", cached="")) == 1024 << 10
    for allowed in ("0-1", "0-2", "0-7", "5", "garbage", ""):
        assert available_memory(on_nodes(tmp_path, allowed)) == 4096 << 10, allowed


@pytest.mark.parametrize(("mode", "left"), [(0, 4096), (1, 4096), (2, 1000)])
def test_under_strict_accounting_a_promise_counts(mode, left, tmp_path):
    promised = "\nCommitLimit: 3000 kB\nCommitted_AS: 2000 kB"
    more = {
        "proc/sys/vm/overcommit_memory": mode,
        "proc/meminfo": MEMINFO["proc/meminfo"] + promised,
    }
    assert available_memory(put(tmp_path, more)) == left << 10


def test_a_limit_of_addresses(tmp_path, monkeypatch):
    tree = put(tmp_path, MEMINFO | {"proc/self/status": "VmPeak:\t 900 kB\nVmSize:\t 500 kB"})
    monkeypatch.setattr("resource.getrlimit", lambda which: (2000 << 10, resource.RLIM_INFINITY))
    assert available_memory(Live(tree.root)) == 1500 << 10
    assert available_memory(tree) == 4096 << 10, "the limit is this process's, not the tree's"
    monkeypatch.setattr(
        "resource.getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    assert available_memory(Live(tree.root)) == 4096 << 10
