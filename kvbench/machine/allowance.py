"""What is left to this process: CPU quota and memory, by its control groups up to the root."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from kvbench.errors import Refused
from kvbench.machine.cpus import listed_cpus
from kvbench.machine.nodes import node_memory, shown_nodes
from kvbench.machine.tree import Files, count

_UNLIMITED = 1 << 62  # version 1 writes the largest multiple of a page that fits 63 bits; pages differ in size
_ROOT = "/sys/fs/cgroup"
_LIMITS = ("memory.max", "memory.high", "memory.limit_in_bytes")  # a group above memory.high is made to wait


@dataclass(frozen=True, slots=True)
class Throttling:
    """Since the groups began: periods in which CPUs were wanted, those of them cut short, and for how long in all."""

    periods: int
    throttled: int
    seconds: float


def has_groups(files: Files, controller: str) -> bool:
    return next(_groups(files, controller), None) is not None


def quota_cpus(files: Files) -> float | None:
    """CPUs' worth of time that the tightest group allows; None without a limit."""
    quotas = []
    for group in _groups(files, "cpu"):
        words = (files.text(f"{group}/cpu.max") or "").split()
        if len(words) != 2:
            words = [files.text(f"{group}/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
        quota, period = map(count, words)
        if quota and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def throttled(files: Files) -> Throttling | None:
    """Over all groups that this process is in; None where none counts. Two readings tell what happened between."""
    return counted_in(files, throttle_tables(files))


def throttle_tables(files: Files) -> tuple[str, ...]:
    """The files that count; to find them takes longer than to read them."""
    paths = (f"{group}/cpu.stat" for group in _groups(files, "cpu"))
    return tuple(path for path in paths if "nr_throttled" in files.table(path))


def counted_in(files: Files, paths: Iterable[str]) -> Throttling | None:
    counts = [counted for path in paths if "nr_throttled" in (counted := files.table(path))]
    if not counts:
        return None
    return Throttling(
        periods=sum(counted.get("nr_periods", 0) for counted in counts),
        throttled=sum(counted["nr_throttled"] for counted in counts),
        seconds=sum(
            counted.get("throttled_usec", 0) / 1e6 + counted.get("throttled_time", 0) / 1e9 for counted in counts
        ),
    )


def memory_limit(files: Files) -> int | None:
    """Bytes that the tightest group allows; None without a limit."""
    limits = [limit for group in _groups(files, "memory") if (limit := _limit(files, group)) is not None]
    return min(limits, default=None)


def available_memory(files: Files | None = None) -> int:
    """Bytes that this process may still take: the least of what the system has available and of what its nodes and its
    groups leave."""
    files = files or Files()
    return max(0, min((_system(files), *_of_nodes(files), *_of_groups(files))))


def _of_nodes(files: Files) -> Iterator[int]:
    """Where not every node with memory may be used: what is free on those that may, and page cache, which gives way."""
    nodes = {node: table for node in shown_nodes(files) if (table := node_memory(files, node)).get("MemTotal")}
    allowed = listed_cpus(files.field("/proc/self/status", "Mems_allowed_list")) & nodes.keys()
    if allowed and allowed < nodes.keys() and all("MemFree" in nodes[node] for node in allowed):
        yield sum(nodes[node]["MemFree"] + nodes[node].get("Inactive(file)", 0) for node in allowed)


def _of_groups(files: Files) -> Iterator[int]:
    for group in _groups(files, "memory"):
        limit = _limit(files, group)
        used = files.number(f"{group}/memory.current") or files.number(f"{group}/memory.usage_in_bytes") or 0
        table = files.table(f"{group}/memory.stat")
        reclaimable = table.get("total_inactive_file", table.get("inactive_file", 0))  # page cache gives way
        if limit is not None:
            yield limit - max(0, used - reclaimable)


def total_memory(files: Files) -> int | None:
    return _meminfo(files).get("MemTotal")


def _system(files: Files) -> int:
    if (found := _meminfo(files).get("MemAvailable")) is not None:
        return found
    hint = "mount -t proc proc /proc" if files.live else "record its /proc/meminfo too"
    raise Refused(f"{files.root / 'proc/meminfo'} does not say how much memory is available", hint)


def _meminfo(files: Files) -> dict[str, int]:
    return {name: kib << 10 for name, kib in files.table("/proc/meminfo").items()}


def _limit(files: Files, group: str) -> int | None:
    """Ancestors out of sight count in the version 1 table."""
    limits = [count(files.text(f"{group}/{name}") or "") for name in _LIMITS]
    limits.append(files.table(f"{group}/memory.stat").get("hierarchical_memory_limit"))
    return min((limit for limit in limits if limit is not None and limit < _UNLIMITED), default=None)


def _groups(files: Files, controller: str) -> Iterator[str]:
    """Folders of this process's groups that may limit `controller`, the innermost first, of both versions."""
    paths, mounts = _paths(files), _mounts(files, controller)
    for kind in dict.fromkeys(kind for _, _, kind in mounts):
        path = paths.get("" if kind == "cgroup2" else controller, "/")
        folders = {point: _below(path, root) for root, point, other in mounts if other == kind}
        own = {point: folder for point, folder in folders.items() if folder and files.exists(f"{point}/{folder}")}
        # without any, the path is another namespace's name for our group, which the mounts show at their top
        for point, folder in (own or dict.fromkeys(folders, PurePosixPath())).items():
            for part in (folder, *folder.parents):
                yield point if part == PurePosixPath() else f"{point}/{part}"


def _below(path: str, root: str) -> PurePosixPath | None:
    """None where the path leads elsewhere: that mount is another group's."""
    try:
        folder = PurePosixPath(path).relative_to(root)
    except ValueError:
        return None
    return None if ".." in folder.parts else folder


def _paths(files: Files) -> dict[str, str]:
    """The group of this process by controller; version 2 has one for all, under ""."""
    paths = {}
    for line in (files.text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        paths.update(dict.fromkeys(controllers.split(","), path or "/"))
    return paths


def _mounts(files: Files, controller: str) -> list[tuple[str, str, str]]:
    """(root, mount point, type) of hierarchies with this controller; the usual places where mounts are not shown."""
    found = []
    for line in (files.text("/proc/self/mountinfo") or "").splitlines():
        fields, _, rest = line.partition(" - ")
        words, kind = fields.split(), rest.split()
        if len(words) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" or kind[0] == "cgroup" and controller in kind[2].split(","):
            found.append((words[3], words[4], kind[0]))
    usual = (("/", _ROOT, "cgroup2"), ("/", f"{_ROOT}/{controller}", "cgroup"), ("/", f"{_ROOT}/cpu,cpuacct", "cgroup"))
    return [mount for mount in found or usual if not files.empty(mount[1])]
