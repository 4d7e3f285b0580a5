"""Control groups of both versions, nested, in namespaces, and not there."""

import pytest

from kvbench.errors import Refused
from kvbench.machine import available_memory
from kvbench.machine.allowance import Throttling, has_groups, memory_limit, quota_cpus, throttled
from kvbench.machine.facts import limit_facts
from tests.machine.trees import NODE, Live, put

TOP = "sys/fs/cgroup"
V2 = "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw"
V1 = (
    "31 20 0:27 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 20 0:28 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
)
MEMINFO = {"proc/meminfo": "MemTotal: 8192 kB\nMemAvailable: 4096 kB"}
UNLIMITED = {"4 KiB": 0x7FFFFFFFFFFFF000, "64 KiB": 0x7FFFFFFFFFFF0000}  # by the size of a page


def version2(root, path="/app/run", **files):
    return put(root, {"proc/self/mountinfo": V2, "proc/self/cgroup": f"0::{path}", **MEMINFO, **_under(files)})


def version1(root, path="/app/run", mounted="/", **files):
    groups = f"4:memory:{path}\n3:cpu,cpuacct:{path}\n0::/"
    mounts = V1.format(root=mounted)
    return put(root, {"proc/self/mountinfo": mounts, "proc/self/cgroup": groups, **MEMINFO, **_under(files)})


def _under(files):
    return {f"{TOP}/{name}": text for group in files.values() for name, text in group.items()}


def test_version_2_takes_the_tightest_of_all_levels(tmp_path):
    files = version2(
        tmp_path,
        inner={"app/run/cpu.max": "max 100000", "app/run/memory.max": "3000000", "app/run/memory.current": "1000000"},
        outer={"app/cpu.max": "150000 100000", "app/memory.max": "2000000", "app/memory.current": "1500000"},
        other={"else/cpu.max": "10000 100000", "else/memory.max": "1000"},
    )
    assert quota_cpus(files) == 1.5
    assert memory_limit(files) == 2000000
    assert available_memory(files) == 500000


def test_version_1_takes_the_tightest_of_all_levels(tmp_path):
    files = version1(
        tmp_path,
        cpu={
            "cpu,cpuacct/app/run/cpu.cfs_quota_us": "-1",
            "cpu,cpuacct/app/run/cpu.cfs_period_us": "100000",
            "cpu,cpuacct/app/cpu.cfs_quota_us": "75000",
            "cpu,cpuacct/app/cpu.cfs_period_us": "50000",
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
def test_no_limit_is_none(page, tmp_path):
    files = version1(tmp_path / "1", memory={"memory/app/run/memory.limit_in_bytes": UNLIMITED[page]})
    assert memory_limit(files) is None and quota_cpus(files) is None
    files = version2(tmp_path / "2", inner={"app/run/cpu.max": "max 100000", "app/run/memory.max": "max"})
    assert memory_limit(files) is None and quota_cpus(files) is None
    assert available_memory(files) == 4096 << 10
    facts = limit_facts(files)
    assert facts["quota"].value == facts["memory_limit"].value == "unlimited"


GROUPS = [  # memory.current, .stat and .max, and what is left
    ("2500000", "anon 500000\ninactive_file 1500000", "3000000", 2000000),
    ("1000000", "inactive_file 1500000", "3000000", 3000000),  # read later: more gives way than was used before
    ("2000", "", "1000", 0),
]


@pytest.mark.parametrize(("current", "stat", "most", "left"), GROUPS)
def test_page_cache_gives_way(current, stat, most, left, tmp_path):
    group = {"memory.max": most, "memory.current": current, "memory.stat": stat}
    files = version2(tmp_path, inner={f"app/run/{name}": text for name, text in group.items()})
    assert available_memory(files) == left


@pytest.mark.parametrize("path", ["/", "/../../outside", "/docker/abc"])
def test_a_namespace_shows_the_own_group_at_the_top(path, tmp_path):
    files = version2(tmp_path / "2", path=path, own={"cpu.max": "50000 100000", "memory.max": "1000000"})
    assert (quota_cpus(files), memory_limit(files)) == (0.5, 1000000)
    own = {"memory/memory.limit_in_bytes": "1000000"}
    assert memory_limit(version1(tmp_path / "1", path=path, mounted="/docker/abc", own=own)) == 1000000


@pytest.mark.parametrize("path", ["/", "/user"])
def test_the_mount_of_another_group_is_not_ours(path, tmp_path):
    inside = "/var/lib/lxc/other/rootfs/sys/fs/cgroup"
    mounts = f"{V2}\n31 20 0:26 /lxc/other {inside} rw - cgroup2 cgroup2 rw"
    other = {f"{inside}/memory.max": "4096", f"{inside}/cpu.max": "50000 100000"}
    own = {f"{TOP}/user/memory.max": "8192", "proc/self/mountinfo": mounts, "proc/self/cgroup": f"0::{path}"}
    files = put(tmp_path, own | other)
    assert (memory_limit(files), quota_cpus(files)) == (8192 if path == "/user" else None, None)
    (tmp_path / TOP / "user/memory.max").rename(tmp_path / TOP / "memory.max")
    hidden = put(tmp_path, {"proc/self/cgroup": "0::/../../outside"})
    assert memory_limit(hidden) == 4096, "whose it is cannot be told: the least of them"


def test_ancestors_out_of_sight_and_the_throttle_of_memory_limit_too(tmp_path):
    stat = {"memory/app/run/memory.stat": "cache 0\nhierarchical_memory_limit 2000000"}
    assert memory_limit(version1(tmp_path / "1", memory=stat)) == 2000000
    high = {"app/run/memory.max": "3000000", "app/run/memory.high": "2000000"}
    assert memory_limit(version2(tmp_path / "2", inner=high)) == 2000000
    other = {"memory.max": "1000000", "../outside/memory.max": "10"}
    assert memory_limit(version2(tmp_path / "3", path="/../outside", own=other)) == 1000000, "it leads out of the mount"


def test_throttling_is_counted_over_all_levels(tmp_path):
    inner = {"app/run/cpu.stat": "usage_usec 9\nnr_periods 10\nnr_throttled 3\nthrottled_usec 500000"}
    outer = {"app/cpu.stat": "nr_periods 20\nnr_throttled 1\nthrottled_usec 250000"}
    assert throttled(version2(tmp_path / "2", inner=inner, outer=outer)) == Throttling(30, 4, 0.75)
    own = {"cpu,cpuacct/app/run/cpu.stat": "nr_periods 10\nnr_throttled 3\nthrottled_time 500000000"}
    assert throttled(version1(tmp_path / "1", own=own)) == Throttling(10, 3, 0.5)


def test_nothing_counts(tmp_path):
    assert throttled(version2(tmp_path, inner={"app/run/cpu.stat": "usage_usec 9"})) is None


def test_the_usual_places_where_mounts_are_not_shown(tmp_path):
    files = put(tmp_path / "2", {f"{TOP}/cpu.max": "200000 100000", f"{TOP}/memory.max": "4096"} | MEMINFO)
    assert (quota_cpus(files), memory_limit(files)) == (2, 4096)
    files = put(tmp_path / "1", {f"{TOP}/cpu/cpu.cfs_quota_us": "200000", f"{TOP}/cpu/cpu.cfs_period_us": "100000"})
    assert quota_cpus(files) == 2


@pytest.mark.parametrize("mounts", ["", V2])
def test_an_empty_folder_shows_no_groups(mounts, tmp_path):
    (tmp_path / TOP).mkdir(parents=True)
    files = put(tmp_path, {"proc/self/mountinfo": mounts, "proc/self/cgroup": "0::/app"} | MEMINFO)
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
    """4 MiB available, 1 of them free on node 0; a node without memory is never allowed."""
    free = {0: "MemTotal: 2048 kB\nNode 0 MemFree: 1024 kB", 1: "MemTotal: 6144 kB\nNode 1 MemFree: 3072 kB"}
    nodes = {f"{NODE}/node{node}/meminfo": f"Node {node} {text}\n{cached}" for node, text in free.items()}
    nodes[f"{NODE}/node2/meminfo"] = "Node 2 MemTotal: 0 kB"
    return put(root, nodes | {"proc/self/status": f"Mems_allowed_list:\t{allowed}"} | MEMINFO | more)


def test_memory_of_other_nodes_is_not_available(tmp_path):
    assert available_memory(on_nodes(tmp_path, "0")) == 1324 << 10
    assert available_memory(on_nodes(tmp_path, "0", cached="")) == 1024 << 10
    for allowed in ("0-1", "0-2", "0-7", "5", "garbage", ""):
        assert available_memory(on_nodes(tmp_path, allowed)) == 4096 << 10, allowed
