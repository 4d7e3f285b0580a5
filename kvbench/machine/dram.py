"""The theoretical peak of DRAM, from what declares it; never guessed from the CPU's name."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator

from kvbench.machine.tree import Files
from kvbench.model import Fact

_MODULES = "dmidecode, memory devices"


def dram_peak(files: Files, virtual: bool) -> Fact:
    """GB/s of all sockets' DRAM together."""
    why_not = _why_not(files, virtual)
    return Fact(None, _MODULES, "none", why_not) if why_not else modules_peak(_dmidecode())


def channels_peak(channels: float, megatransfers: float, bytes_wide: float = 8) -> float:
    """GB/s."""
    return channels * megatransfers * bytes_wide / 1000


def _why_not(files: Files, virtual: bool) -> str:
    if virtual:
        return "a hypervisor invents its memory modules"
    if not files.live:
        return "a made-up tree has no memory modules"
    if os.geteuid() != 0:
        return "only root may read the memory modules' data"
    return "" if shutil.which("dmidecode") else "dmidecode is not installed"


def _dmidecode() -> str:
    try:
        return subprocess.run(
            ["dmidecode", "--type", "17"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def modules_peak(text: str) -> Fact:
    """From dmidecode's words on memory devices (type 17): configured speed, not rated, times populated channels."""
    modules = [module for module in _modules(text) if module.get("Size", "No Module Installed")[0].isdigit()]
    if not modules:
        return Fact(None, _MODULES, "none", "the firmware lists no memory modules")
    speeds = {
        _first(module.get("Configured Memory Speed") or module.get("Configured Clock Speed")) for module in modules
    }
    widths = {_first(module.get("Data Width")) for module in modules}
    if len(speeds) > 1 or len(widths) > 1 or not min(speeds) or not min(widths):
        return Fact(None, _MODULES, "none", "the memory modules' speeds or widths differ, or are not stated")
    names = [_channel(module) for module in modules]
    if not all(names) or len({*zip(names, (module.get("Locator") for module in modules), strict=True)}) < len(names):
        return Fact(None, _MODULES, "none", "the memory modules' locators do not tell their channels")
    counts = {names.count(name) for name in names}
    channels, speed, width = len(set(names)), speeds.pop(), widths.pop()
    note = f"{channels} channels x {speed} MT/s x {width} bits"
    if len(counts) > 1:
        return Fact(channels_peak(channels, speed, width / 8), _MODULES, "low", f"{note}, unevenly filled")
    return Fact(channels_peak(channels, speed, width / 8), _MODULES, "high", note)


def _modules(text: str) -> Iterator[dict[str, str]]:
    for block in text.split("\n\n"):
        if "Memory Device\n" in block:
            lines = (line.partition(":") for line in block.splitlines())
            yield {name.strip(): value.strip() for name, colon, value in lines if colon and value.strip()}


def _first(text: str | None) -> int:
    """The number at the start of "4800 MT/s"; 0 for "Unknown"."""
    found = re.match(r"\d+", text or "")
    return int(found[0]) if found else 0


def _channel(module: dict[str, str]) -> str:
    """A name for the module's channel, out of "P0 CHANNEL A", "P0_Node0_Channel0_Dimm1" or "CPU1_DIMM_A2"."""
    bank, locator = module.get("Bank Locator", ""), module.get("Locator", "")
    for text in (bank, locator):
        if found := re.match(r".*?channel[\s_:-]*[a-z0-9]+?(?=$|[\s_-]|dimm)", text, re.IGNORECASE):
            return found[0] + _socket(locator)
    found = re.fullmatch(r"(.*dimm[\s_-]*[a-z])[\s_-]?\d", locator, re.IGNORECASE)
    return found[1] if found else ""


def _socket(locator: str) -> str:
    """What stands before "DIMM", as "CPU1 " in "CPU1 DIMM A1": two sockets may name their channels alike."""
    found = re.match(r"(.*?)dimm", locator, re.IGNORECASE)
    return found[1] if found else ""
