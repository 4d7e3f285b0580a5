"""What the CPU calls itself."""

import platform
from functools import cache

from kvbench.machine.kinds import PARTS, implementer_name, part_name, parts
from kvbench.machine.tree import UNSAID, Files, stated
from kvbench.model import Fact

_NAMES = ("model name", "cpu model", "cpu", "uarch")  # as x86, MIPS, POWER and RISC-V kernels spell it
_ARCH = "/proc/sys/kernel/arch"
_NUMBERS = (
    "vendor_id",
    "cpu family",
    "model",
    "stepping",
    "CPU implementer",
    "CPU variant",
    "CPU part",
    "CPU revision",
)


def brand(files: Files) -> Fact:
    """py-cpuinfo last: it takes a second, and knows few Arm cores."""
    listed = files.processors()
    for fields in listed.values():
        for name in _NAMES:
            if known := _known(fields, name):
                return Fact(known, "/proc/cpuinfo", "high")
    found = set(parts(files, tuple(listed)).values())
    if files.live and not (found and found <= PARTS.keys()) and (name := _from_library()):
        return Fact(name, "py-cpuinfo", "low")
    if names := sorted(map(part_name, found)):
        return Fact(" + ".join(names), "/proc/cpuinfo, CPU part", "low", "the core's name; the chip's is not known")
    return Fact(None, "/proc/cpuinfo", "none", "the kernel lists no model name and no part number")


def vendor(files: Files) -> Fact:
    listed = files.processors()
    for fields in listed.values():
        if name := _known(fields, "vendor_id"):
            return Fact(name, "/proc/cpuinfo", "high")
    for implementer, _ in parts(files, tuple(listed)).values():
        return Fact(implementer_name(implementer), "/proc/cpuinfo, CPU implementer", "high")
    return Fact(None, "/proc/cpuinfo", "none", "the kernel lists neither a vendor nor an implementer")


def _known(fields: dict[str, str], name: str) -> str:
    """Some kernels write "unknown" for what they do not know."""
    text = " ".join(fields.get(name, "").split())
    return "" if text.lower() == "unknown" else text


def architecture(files: Files) -> Fact:
    """Kernels before 6.1 have no file for it."""
    return stated(files.text(_ARCH) or (platform.machine() if files.live else None), _ARCH, UNSAID)


def identity(files: Files) -> list[list[str]]:
    """The numbers and names by which the kinds of CPU here are told from all others."""
    rows = {tuple(fields.get(name, "") for name in (*_NUMBERS, *_NAMES)) for fields in files.processors().values()}
    return [list(row) for row in sorted(rows)]


@cache
def _from_library() -> str:
    try:
        import cpuinfo

        return " ".join(cpuinfo.get_cpu_info().get("brand_raw", "").split())
    except (ImportError, OSError, ValueError):
        return ""
