"""What runs on the hardware, and two short names: one of the hardware, one of what an administrator can change."""

import hashlib
import json
import os
import platform
from typing import Any

from kvbench.errors import KvbenchError
from kvbench.machine.tree import UNSAID, Files, count
from kvbench.model import Cpu, DataCache, Fact, Node

_ENVIRONMENT = (
    "kernel",
    "microcode",
    "command_line",
    "mitigations",
    "quota",
    "memory_limit",
    "hypervisor",
    "container",
)
_RELEASE = "/proc/sys/kernel/osrelease"
_VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"


def system_facts(files: Files) -> dict[str, Fact]:
    return {
        "isa": _isa(),
        "microcode": _microcode(files),
        "kernel": _kernel(files),
        "command_line": _command_line(files),
        "mitigations": _mitigations(files),
        "page_bytes": _page_bytes(files),
    }


def _isa() -> Fact:
    """The tiers that run on the CPU under this process, even where a made-up tree stands for the rest."""
    from kvbench.native import default_library

    try:
        return Fact(list(default_library().isas()), "the kernel library", "high")
    except KvbenchError as error:
        return Fact(None, "the kernel library", "none", str(error))


def _microcode(files: Files) -> Fact:
    found = {fields["microcode"] for fields in files.processors().values() if "microcode" in fields}
    if not found:
        paths = files.glob("/sys/devices/system/cpu/cpu[0-9]*/microcode/version")
        found = {text for path in paths if (text := files.text(path))}
    if not found:
        return Fact(None, "/proc/cpuinfo", "none", "the kernel shows no microcode version")
    note = "the CPUs differ" if len(found) > 1 else ""
    return Fact(", ".join(sorted(found)), "/proc/cpuinfo", "high", note)


def _kernel(files: Files) -> Fact:
    if stated := files.text(_RELEASE):
        return Fact(stated, _RELEASE, "high")
    return Fact(platform.release(), "uname", "high") if files.live else Fact(None, _RELEASE, "none", UNSAID)


def _command_line(files: Files) -> Fact:
    text = files.text("/proc/cmdline")
    if text is None:
        return Fact(None, "/proc/cmdline", "none", "it cannot be read")
    return Fact(text, "/proc/cmdline", "high")


def _mitigations(files: Files) -> Fact:
    found = {path.rpartition("/")[2]: files.text(path) for path in files.glob(f"{_VULNERABILITIES}/*")}
    if not found:
        return Fact(None, _VULNERABILITIES, "none", "the kernel does not show it")
    return Fact(found, _VULNERABILITIES, "high")


def _page_bytes(files: Files) -> Fact:
    if files.live:
        return Fact(os.sysconf("SC_PAGE_SIZE"), "sysconf", "high")
    if kib := count(files.field("/proc/self/smaps", "KernelPageSize").removesuffix("kB")):
        return Fact(kib << 10, "/proc/self/smaps", "high")
    return Fact(None, "/proc/self/smaps", "none", UNSAID)


def fingerprint(identity: Any, cpus: tuple[Cpu, ...], caches: tuple[DataCache, ...], nodes: tuple[Node, ...]) -> str:
    """The hardware alone, as far as it is switched on: with SMT off it is another machine. `identity` names the
    architecture and the CPUs. A node's size is left out: the kernel keeps a share that changes from boot to boot."""
    return _digest(
        identity,
        [(cpu.cpu, cpu.core, cpu.socket, cpu.node, cpu.kind) for cpu in cpus],
        [(cache.level, cache.size, cache.line, cache.cpus) for cache in caches],
        [(node.node, node.cpus) for node in nodes],
    )


def environment(facts: dict[str, Fact], allowed: tuple[int, ...]) -> str:
    return _digest({name: facts[name].value for name in (*_ENVIRONMENT, "page_bytes")}, allowed)


def _digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
