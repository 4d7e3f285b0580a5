"""Kinds of cores in one machine, the strongest first. On Arm a kind has an implementer and part
number; the kernel gives no name.
"""

from kvbench.grouping import grouped
from kvbench.machine.cpus import read_list
from kvbench.machine.tree import Files, count

_MAKERS = {  # implementer: its name, and its parts
    0x41: (
        "Arm: D03 Cortex-A53, D05 Cortex-A55, D07 Cortex-A57, D08 Cortex-A72, D0B Cortex-A76, D0C"
        " Neoverse-N1, D40 Neoverse-V1, D41 Cortex-A78, D44 Cortex-X1, D49 Neoverse-N2, D4A"
        " Neoverse-E1, D4F Neoverse-V2, D80 Cortex-A520, D81 Cortex-A720, D84 Neoverse-V3, D85"
        " Cortex-X925, D87 Cortex-A725, D8E Neoverse-N3"
    ),
    0x42: "Broadcom: 516 ThunderX2",
    0x43: "Cavium: 0AF ThunderX2",
    0x46: "Fujitsu: 001 A64FX",
    0x48: "HiSilicon: D01 TaiShan-v110, D02 TaiShan-v120",
    0x4E: "NVIDIA: 004 Carmel",
    0x51: "Qualcomm: 001 Oryon, C00 Falkor",
    0x61: (
        "Apple: 022 M1 Icestorm, 023 M1 Firestorm, 024 M1 Pro Icestorm, 025 M1 Pro Firestorm, 028"
        " M1 Max Icestorm, 029 M1 Max Firestorm, 032 M2 Blizzard, 033 M2 Avalanche"
    ),
    0x6D: "Microsoft: D49 Azure Cobalt 100",
    0x70: "Phytium: ",
    0xC0: "Ampere: AC3 Ampere-1, AC4 Ampere-1a",
}
_PARTED = {number: text.partition(": ")[::2] for number, text in _MAKERS.items()}
PARTS = {
    (number, int(part[:3], 16)): part[4:]
    for number, (_, parts) in _PARTED.items()
    for part in filter(None, parts.split(", "))
}


def parts(files: Files, cpus: tuple[int, ...]) -> dict[int, tuple[int, int]]:
    """(implementer, part) of each CPU that states them: from the register in sysfs, else from
    /proc/cpuinfo.
    """
    listed, found = files.processors(), {}
    for cpu in cpus:
        register = files.number(f"/sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1")
        fields = listed.get(cpu, {})
        if register is not None:
            found[cpu] = (register >> 24 & 0xFF, register >> 4 & 0xFFF)
            continue
        implementer, part = (
            count(fields.get(f"CPU {name}", ""), 0) for name in ("implementer", "part")
        )
        if implementer is not None and part is not None:
            found[cpu] = (implementer, part)
    return found


def part_name(part: tuple[int, int]) -> str:
    return PARTS.get(part, f"{implementer_name(part[0])} part {part[1]:#05x}")


def implementer_name(implementer: int) -> str:
    return _PARTED[implementer][0] if implementer in _PARTED else f"implementer {implementer:#04x}"


def core_kinds(files: Files, cpus: tuple[int, ...]) -> tuple[dict[str, tuple[int, ...]], str]:
    """CPUs by kind, and the source. Empty if all cores are alike, or if nothing tells them
    apart.
    """
    for found, source in (
        (_by_counters(files, cpus), "/sys/devices/cpu_*/cpus"),
        (_by_part(files, cpus), "MIDR"),
    ):
        if len(found) > 1:
            return _strongest_first(files, found), source
    return {}, "/sys/devices"


def _by_counters(files: Files, cpus: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """x86 has a set of counters for each kind: cpu_core, cpu_atom, cpu_lowpower."""
    return {
        path.split("/")[-2].removeprefix("cpu_"): tuple(sorted(members))
        for path in files.glob("/sys/devices/cpu_*/cpus")
        if (members := read_list(files, path) & set(cpus))
    }


def _by_part(files: Files, cpus: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    found = grouped((part_name(part), cpu) for cpu, part in parts(files, cpus).items())
    return {name: tuple(own) for name, own in found.items()}


def _strongest_first(files: Files, kinds: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Sort kinds by capacity. If the kernel states none, "core" comes first."""

    def weakness(kind: str) -> tuple[int, bool, int]:
        first = kinds[kind][0]
        return (
            -(files.number(f"/sys/devices/system/cpu/cpu{first}/cpu_capacity") or 0),
            kind != "core",
            first,
        )

    return {kind: kinds[kind] for kind in sorted(kinds, key=weakness)}
