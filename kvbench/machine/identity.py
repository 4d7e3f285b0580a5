"""What the hardware calls itself, what runs on it, and two fingerprints: of the hardware, and of
what an administrator can change.
"""

import hashlib
import json
import os
import platform
from functools import cache
from typing import Any

from kvbench.errors import KvbenchError
from kvbench.machine.kinds import PARTS, implementer_name, part_name, parts
from kvbench.machine.tree import UNSAID, Files, count, stated
from kvbench.model import Cpu, DataCache, Fact, Node

# field names on x86, MIPS, POWER and RISC-V kernels
_NAMES = ("model name", "cpu model", "cpu", "uarch")
_ARCH = "/proc/sys/kernel/arch"
_X86 = ("vendor_id", "cpu family", "model", "stepping")
_ARM = ("CPU implementer", "CPU variant", "CPU part", "CPU revision")
_ENVIRONMENT = (
    "kernel",
    "microcode",
    "command_line",
    "mitigations",
    "quota",
    "memory_limit",
    "hypervisor",
)
_RELEASE = "/proc/sys/kernel/osrelease"
_VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"


def brand(files: Files) -> Fact:
    """The CPU's name. py-cpuinfo comes last: it takes a second, and knows few Arm cores."""
    listed = files.processors()
    for fields in listed.values():
        for name in _NAMES:
            if known := _known(fields, name):
                return Fact(known, "/proc/cpuinfo", "high")
    found = set(parts(files, tuple(listed)).values())
    if files.live and not (found and found <= PARTS.keys()) and (name := _from_library()):
        return Fact(name, "py-cpuinfo", "low")
    if names := sorted(map(part_name, found)):
        return Fact(
            " + ".join(names),
            "/proc/cpuinfo, CPU part",
            "low",
            "this names the core; the chip's name is not known",
        )
    return Fact(None, "/proc/cpuinfo", "none", "the kernel lists no model name and no part number")


def vendor(files: Files) -> Fact:
    listed = files.processors()
    for fields in listed.values():
        if name := _known(fields, "vendor_id"):
            return Fact(name, "/proc/cpuinfo", "high")
    for implementer, _ in parts(files, tuple(listed)).values():
        return Fact(implementer_name(implementer), "/proc/cpuinfo, CPU implementer", "high")
    return Fact(
        None, "/proc/cpuinfo", "none", "the kernel lists neither a vendor nor an implementer"
    )


def _known(fields: dict[str, str], name: str) -> str:
    """A field's value, or empty: some kernels write "unknown"."""
    text = " ".join(fields.get(name, "").split())
    return "" if text.lower() == "unknown" else text


def architecture(files: Files) -> Fact:
    """The architecture's name. Kernels before 6.1 have no file for it."""
    return stated(files.text(_ARCH) or (platform.machine() if files.live else None), _ARCH, UNSAID)


def identity(files: Files) -> list[list[str]]:
    """Numbers and names that tell the kinds of CPU here from all others."""
    rows = {
        tuple(fields.get(name, "") for name in (*_X86, *_ARM, *_NAMES))
        for fields in files.processors().values()
    }
    return [list(row) for row in sorted(rows)]


@cache
def _from_library() -> str:
    try:
        import cpuinfo

        return " ".join(cpuinfo.get_cpu_info().get("brand_raw", "").split())
    except (ImportError, OSError, ValueError):
        return ""


def system_facts(files: Files) -> dict[str, Fact]:
    return {
        "isa": _isa(),
        "microcode": _microcode(files),
        "kernel": stated(files.text(_RELEASE), _RELEASE, UNSAID),
        "command_line": stated(files.text("/proc/cmdline"), "/proc/cmdline", "it cannot be read"),
        "mitigations": _mitigations(files),
        "page_bytes": _page_bytes(files),
    }


def _isa() -> Fact:
    """The tiers that run on this process's CPU, even if a made-up tree stands for the rest."""
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
    return stated(
        ", ".join(sorted(found)) or None, "/proc/cpuinfo", "the kernel shows no microcode version"
    )


def _mitigations(files: Files) -> Fact:
    found = {
        path.rpartition("/")[2]: files.text(path) for path in files.glob(f"{_VULNERABILITIES}/*")
    }
    return stated(found or None, _VULNERABILITIES, "the kernel does not show it")


def _page_bytes(files: Files) -> Fact:
    if files.live:
        return Fact(os.sysconf("SC_PAGE_SIZE"), "sysconf", "high")
    kib = count(files.field("/proc/self/smaps", "KernelPageSize").removesuffix("kB"))
    return stated(kib and kib << 10, "/proc/self/smaps", UNSAID)


def fingerprint(
    identity: Any, cpus: tuple[Cpu, ...], caches: tuple[DataCache, ...], nodes: tuple[Node, ...]
) -> str:
    """Digest of the hardware that is switched on: turning SMT off makes it another machine.
    `identity` names the architecture and the CPUs. Node sizes are left out: the kernel keeps a
    share that changes from boot to boot.
    """
    return _digest(
        identity,
        [(cpu.cpu, cpu.core, cpu.socket, cpu.node, cpu.kind) for cpu in cpus],
        [(cache.level, cache.size, cache.line, cache.cpus) for cache in caches],
        [(node.node, node.cpus) for node in nodes],
    )


def environment(facts: dict[str, Fact], allowed: tuple[int, ...]) -> str:
    return _digest(
        {name: facts[name].value for name in (*_ENVIRONMENT, "container", "page_bytes")}, allowed
    )


def _digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
