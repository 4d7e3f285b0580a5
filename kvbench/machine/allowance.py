"""What this process may use: CPU quota and memory, limited by its control groups up to the root and
by the system. Also counts what takes CPUs away; two readings tell what happened between them.
"""

import os
import resource
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from kvbench.errors import Refused
from kvbench.machine.cpus import listed_cpus, node_memory
from kvbench.machine.tree import Files, count

# Version 1 writes "no limit" as the largest multiple of a page below 2^63. Page sizes differ.
_UNLIMITED = 1 << 62
_ROOT = "/sys/fs/cgroup"
_STRICT = 2  # vm.overcommit_memory = 2: the kernel promises no more memory than it has
# The kernel slows down a group above memory.high.
_LIMITS = ("memory.max", "memory.high", "memory.limit_in_bytes")
_STEAL = 8  # index of steal in a CPU's line of /proc/stat
_HEAT = "/sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count"


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


def throttled(files: Files) -> int | None:
    """Count the periods in which the quota stopped this process's groups since they began; None if
    no group counts them.
    """
    return _counted_in(files, _throttle_tables(files))


def _throttle_tables(files: Files) -> tuple[str, ...]:
    """List the cpu.stat files that have a count. Finding them takes longer than reading them."""
    paths = (f"{group}/cpu.stat" for group in _groups(files, "cpu"))
    return tuple(path for path in paths if "nr_throttled" in files.table(path))


def _counted_in(files: Files, paths: Iterable[str]) -> int | None:
    counts = [
        counted["nr_throttled"]
        for path in paths
        if "nr_throttled" in (counted := files.table(path))
    ]
    return sum(counts) if counts else None


def memory_limit(files: Files) -> int | None:
    """Bytes that the tightest group allows; None without a limit."""
    limits = [
        limit for group in _groups(files, "memory") if (limit := _limit(files, group)) is not None
    ]
    return min(limits, default=None)


def available_memory(files: Files | None = None) -> int:
    """Compute how many bytes this process may still take: the least of what the system, the allowed
    nodes, the kernel's promises, ulimit -v and the groups leave.
    """
    files = files or Files()
    return max(0, min((_system(files), *_of_nodes(files), *_of_process(files), *_of_groups(files))))


def _of_nodes(files: Files) -> Iterator[int]:
    """If only some nodes with memory are allowed: their free memory and their page cache, which the
    kernel gives up when needed.
    """
    nodes = {node: table for node, table in node_memory(files).items() if table.get("MemTotal")}
    allowed = listed_cpus(files.field("/proc/self/status", "Mems_allowed_list")) & nodes.keys()
    if allowed and allowed < nodes.keys() and all("MemFree" in nodes[node] for node in allowed):
        yield sum(nodes[node]["MemFree"] + nodes[node].get("Inactive(file)", 0) for node in allowed)


def _of_process(files: Files) -> Iterator[int]:
    """What strict accounting and ulimit -v leave. Both count memory once it is mapped, touched or
    not. A made-up tree has no ulimit -v.
    """
    table = _meminfo(files)
    if (
        files.number("/proc/sys/vm/overcommit_memory") == _STRICT
        and {"CommitLimit", "Committed_AS"} <= table.keys()
    ):
        yield table["CommitLimit"] - table["Committed_AS"]
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if files.live and limit != resource.RLIM_INFINITY:
        yield limit - (files.table("/proc/self/status").get("VmSize", 0) << 10)


def _of_groups(files: Files) -> Iterator[int]:
    for group in _groups(files, "memory"):
        limit = _limit(files, group)
        used = (
            files.number(f"{group}/memory.current")
            or files.number(f"{group}/memory.usage_in_bytes")
            or 0
        )
        table = files.table(f"{group}/memory.stat")
        # the kernel gives up page cache when needed
        reclaimable = table.get("total_inactive_file", table.get("inactive_file", 0))
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
    limits = [count(files.text(f"{group}/{name}") or "") for name in _LIMITS]
    return min(
        (limit for limit in limits if limit is not None and limit < _UNLIMITED), default=None
    )


def _groups(files: Files, controller: str) -> Iterator[str]:
    """Yield the folders of this process's groups that may limit `controller`, innermost first, for
    both versions of control groups.
    """
    paths = _paths(files)
    for top, path in (
        (_ROOT, paths.get("", "/")),
        (f"{_ROOT}/{controller}", paths.get(controller, "/")),
    ):
        if files.empty(top):
            continue
        folder = PurePosixPath(path.lstrip("/"))
        # A missing folder is our group's name in another namespace; there the group is shown at the
        # top.
        if ".." in folder.parts or not files.exists(f"{top}/{folder}"):
            folder = PurePosixPath()
        for part in (folder, *folder.parents):
            yield top if part == PurePosixPath() else f"{top}/{part}"


def _paths(files: Files) -> dict[str, str]:
    """The path of this process's group by controller. Version 2 has one group for all controllers,
    under "".
    """
    paths = {}
    for line in (files.text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        paths.update(dict.fromkeys(controllers.split(","), path or "/"))
    return paths


# ---- what takes CPUs away from a running measurement, counted by the system ----------------------


@dataclass(frozen=True, slots=True)
class Disturbed:
    """Counts of disturbances. steal: seconds that a hypervisor took from the CPUs. throttled: how
    often a quota or heat stopped them.
    """

    steal: float
    throttled: int

    def since(self, before: "Disturbed") -> "Disturbed":
        return Disturbed(
            max(0.0, self.steal - before.steal), max(0, self.throttled - before.throttled)
        )


class Disturbances:
    """Counters of what disturbs `cpus`. A counter that the system lacks stays 0."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._files = Files("/")  # measurements always run on this machine, not on a made-up tree
        self._names = {f"cpu{cpu}" for cpu in cpus}
        self._tables = _throttle_tables(self._files)
        heat = dict.fromkeys(_HEAT.format(cpu) for cpu in cpus)
        self._heat = [path for path in heat if self._files.number(path) is not None]
        self._tick = os.sysconf("SC_CLK_TCK")

    def read(self) -> Disturbed:
        hot = sum(self._files.number(path) or 0 for path in self._heat)
        lines = (line.split() for line in (self._files.text("/proc/stat") or "").splitlines())
        stolen = sum(
            int(words[_STEAL]) for words in lines if words[0] in self._names and len(words) > _STEAL
        )
        return Disturbed(stolen / self._tick, hot + (_counted_in(self._files, self._tables) or 0))
