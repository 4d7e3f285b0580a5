"""Logical CPUs: which are online, which are allowed, and which share a core, a socket or a node.
Also the data caches declared in sysfs, and which CPUs share a last-level cache.
"""

import os
from dataclasses import replace

from kvbench.machine.tree import Files, count
from kvbench.model import Cpu, DataCache, Node
from kvbench.units import cpu_list

_SYSFS, _NODES = "/sys/devices/system/cpu", "/sys/devices/system/node"
_HOLD_DATA = ("Data", "Unified")
_SHARED = 3  # from this cache level on, cores may share a cache
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_list(files: Files, path: str) -> frozenset[int]:
    """The CPU list in a file; empty if the file is missing."""
    return listed_cpus(files.text(path) or "")


def listed_cpus(text: str) -> frozenset[int]:
    """Parse a CPU list; empty if the text is not one."""
    try:
        return cpu_list(text)
    except ValueError:
        return frozenset()


def online_cpus(files: Files) -> tuple[int, ...]:
    """The CPUs in the kernel's list and in the affinity mask. A container's /sys may number CPUs
    differently from the mask, whose CPUs surely exist.
    """
    online = set(read_list(files, f"{_SYSFS}/online"))
    return tuple(sorted(online | os.sched_getaffinity(0) if files.live or not online else online))


def allowed_cpus(files: Files | None = None) -> tuple[int, ...]:
    """The affinity mask. A made-up tree may state its own in /proc/self/status; otherwise all its
    CPUs are allowed.
    """
    files = files or Files()
    if files.live:
        return tuple(sorted(os.sched_getaffinity(0)))
    online = frozenset(online_cpus(files))
    return tuple(
        sorted(
            listed_cpus(files.field("/proc/self/status", "Cpus_allowed_list")) & online or online
        )
    )


def logical_cpus(files: Files, nodes: dict[int, int]) -> tuple[tuple[Cpu, ...], str, str]:
    """Return the online CPUs, the source of these facts, and what is doubtful about them. `nodes`
    maps a CPU to its node.
    """
    online = online_cpus(files)
    if all(_siblings(files, cpu) for cpu in online):
        source = f"{_SYSFS}/cpu*/topology"
        cores = {cpu: _siblings(files, cpu) for cpu in online}
        sockets = {
            cpu: files.number(f"{_SYSFS}/cpu{cpu}/topology/physical_package_id") for cpu in online
        }
    else:
        source = "assumed"
        cores, sockets = {cpu: frozenset({cpu}) for cpu in online}, dict.fromkeys(online)
    doubt = (
        ""
        if source != "assumed"
        else "the kernel shows no topology: every CPU counts as a core of one socket"
    )
    if not doubt and any(socket is None or socket < 0 for socket in sockets.values()):
        doubt = "the firmware does not number sockets: one socket is assumed"
    found = []
    for cpu in online:
        threads = sorted(cores[cpu] & set(online) | {cpu})
        found.append(
            Cpu(cpu, threads[0], max(0, sockets[cpu] or 0), nodes.get(cpu, 0), threads.index(cpu))
        )
    return tuple(found), source, doubt


def _siblings(files: Files, cpu: int) -> frozenset[int]:
    """CPUs of the same core. Older kernels use the second file name."""
    folder = f"{_SYSFS}/cpu{cpu}/topology"
    return read_list(files, f"{folder}/core_cpus_list") or read_list(
        files, f"{folder}/thread_siblings_list"
    )


def node_memory(files: Files) -> dict[int, dict[str, int]]:
    """Bytes by name for each node, read from lines such as "Node 0 MemTotal:  16384 kB"."""
    numbers = (
        count(folder.rpartition("/node")[2]) for folder in files.glob(f"{_NODES}/node[0-9]*")
    )
    tables = {n: files.table(f"{_NODES}/node{n}/meminfo", skip=2) for n in numbers if n is not None}
    return {n: {name: kib << 10 for name, kib in table.items()} for n, table in tables.items()}


def numa_nodes(files: Files, online: tuple[int, ...]) -> tuple[Node, ...]:
    """All nodes, also those without CPUs; empty if the kernel does not place every CPU on a
    node.
    """
    memory = node_memory(files)
    cpus = {n: read_list(files, f"{_NODES}/node{n}/cpulist") & set(online) for n in memory}
    if set().union(*cpus.values()) != set(online):
        return ()
    return tuple(Node(n, tuple(sorted(own)), memory[n].get("MemTotal")) for n, own in cpus.items())


def data_caches(cpus: tuple[int, ...], files: Files | None = None) -> list[DataCache]:
    """List data and unified caches of `cpus`, each once; empty if the system declares none."""
    files = files or Files()
    found = {
        cache
        for cpu in cpus
        for index in files.glob(f"{_SYSFS}/cpu{cpu}/cache/index*")
        if (cache := _read(files, index, cpu))
    }
    return sorted(found, key=lambda cache: (cache.level, cache.cpus))


def _read(files: Files, index: str, cpu: int) -> DataCache | None:
    """Read one cache; None unless the system says that it holds data, and its size. Some firmware
    names caches without describing them.

    If the system does not say who shares the cache, L1 and L2 are taken as the core's own. A higher
    level is dropped.
    """
    level, size = files.number(f"{index}/level"), _bytes(files.text(f"{index}/size") or "")
    if files.text(f"{index}/type") not in _HOLD_DATA or level is None or not size:
        return None
    shared = read_list(files, f"{index}/shared_cpu_list")
    if not shared and level >= _SHARED:
        return None
    line = files.number(f"{index}/coherency_line_size")
    found = DataCache(level, size, tuple(sorted(shared | {cpu})))
    return replace(found, line=line or found.line)


def _bytes(text: str) -> int:
    """Parse a size such as "32K"; 0 if the text is not a size."""
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    return (count(number) or 0) * unit


def last_levels(caches: tuple[DataCache, ...]) -> tuple[DataCache, ...]:
    """The highest cache of every CPU, each once. Cores of one machine may differ: some have no
    L3.
    """
    top: dict[int, DataCache] = {}
    for cache in sorted(caches, key=lambda cache: cache.level):
        top.update(dict.fromkeys(cache.cpus, cache))
    return tuple(sorted(set(top.values()), key=lambda cache: cache.cpus))
