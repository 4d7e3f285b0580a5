"""Logical CPUs: which are online, which this process may use, which of them are one core, one socket, one node."""

import os

from kvbench.machine.tree import Files
from kvbench.model import Cpu
from kvbench.units import cpu_list

_SYSFS = "/sys/devices/system/cpu"


def read_list(files: Files, path: str) -> frozenset[int]:
    """The CPU list in a file; empty where there is none."""
    return listed_cpus(files.text(path) or "")


def listed_cpus(text: str) -> frozenset[int]:
    """Empty for what is no list."""
    try:
        return cpu_list(text)
    except ValueError:
        return frozenset()


def online_cpus(files: Files) -> tuple[int, ...]:
    """From the kernel's list, else those that this process may use. A container's file system may number them otherwise
    than the affinity mask does: those of the mask do exist."""
    online = set(read_list(files, f"{_SYSFS}/online"))
    return tuple(sorted(online | os.sched_getaffinity(0) if files.live or not online else online))


def allowed_cpus(files: Files | None = None) -> tuple[int, ...]:
    """The affinity mask. A made-up tree may state its own in /proc/self/status: without, all its CPUs are allowed."""
    files = files or Files()
    if files.live:
        return tuple(sorted(os.sched_getaffinity(0)))
    online = frozenset(online_cpus(files))
    return tuple(sorted(listed_cpus(files.field("/proc/self/status", "Cpus_allowed_list")) & online or online))


def logical_cpus(files: Files, nodes: dict[int, int]) -> tuple[tuple[Cpu, ...], str, str]:
    """Online CPUs, where that is from, and what is doubtful about it. `nodes` gives the node of a CPU."""
    online = online_cpus(files)
    if all(_siblings(files, cpu) for cpu in online):
        source = f"{_SYSFS}/cpu*/topology"
        cores = {cpu: _siblings(files, cpu) for cpu in online}
        sockets = {cpu: files.number(f"{_SYSFS}/cpu{cpu}/topology/physical_package_id") for cpu in online}
    else:
        source = "assumed"
        cores, sockets = {cpu: frozenset({cpu}) for cpu in online}, dict.fromkeys(online)
    doubt = "" if source != "assumed" else "the kernel shows no topology: every CPU counts as a core of one socket"
    if not doubt and any(socket is None or socket < 0 for socket in sockets.values()):
        doubt = "the firmware numbers no sockets: taken as one"
    return tuple(_cpu(cpu, cores[cpu] & set(online), sockets[cpu], nodes.get(cpu, 0)) for cpu in online), source, doubt


def _cpu(cpu: int, core: frozenset[int], socket: int | None, node: int) -> Cpu:
    threads = sorted(core | {cpu})
    return Cpu(cpu=cpu, core=threads[0], socket=max(0, socket or 0), node=node, thread=threads.index(cpu))


def _siblings(files: Files, cpu: int) -> frozenset[int]:
    """CPUs of the same core; the second name is that of older kernels."""
    folder = f"{_SYSFS}/cpu{cpu}/topology"
    return read_list(files, f"{folder}/core_cpus_list") or read_list(files, f"{folder}/thread_siblings_list")
