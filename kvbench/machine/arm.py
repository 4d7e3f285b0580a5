"""Arm cores by the numbers that they identify themselves with. The kernel gives no name."""

from kvbench.machine.tree import Files, count

_IMPLEMENTERS = {
    0x41: "Arm",
    0x42: "Broadcom",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x51: "Qualcomm",
    0x61: "Apple",
    0x6D: "Microsoft",
    0x70: "Phytium",
    0xC0: "Ampere",
}
PARTS = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4A): "Neoverse-E1",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD85): "Cortex-X925",
    (0x41, 0xD87): "Cortex-A725",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x42, 0x516): "ThunderX2",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "TaiShan-v110",
    (0x48, 0xD02): "TaiShan-v120",
    (0x4E, 0x004): "Carmel",
    (0x51, 0x001): "Oryon",
    (0x51, 0xC00): "Falkor",
    (0x61, 0x022): "M1 Icestorm",
    (0x61, 0x023): "M1 Firestorm",
    (0x61, 0x024): "M1 Pro Icestorm",
    (0x61, 0x025): "M1 Pro Firestorm",
    (0x61, 0x028): "M1 Max Icestorm",
    (0x61, 0x029): "M1 Max Firestorm",
    (0x61, 0x032): "M2 Blizzard",
    (0x61, 0x033): "M2 Avalanche",
    (0x6D, 0xD49): "Azure Cobalt 100",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1a",
}


def parts(files: Files, cpus: tuple[int, ...]) -> dict[int, tuple[int, int]]:
    """(implementer, part) of those CPUs that say it, from the register as sysfs shows it, else from /proc/cpuinfo."""
    listed, found = files.processors(), {}
    for cpu in cpus:
        register = files.number(f"/sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1")
        fields = listed.get(cpu, {})
        if register is not None:
            found[cpu] = (register >> 24 & 0xFF, register >> 4 & 0xFFF)
            continue
        implementer, part = (count(fields.get(f"CPU {name}", ""), 0) for name in ("implementer", "part"))
        if implementer is not None and part is not None:
            found[cpu] = (implementer, part)
    return found


def part_name(part: tuple[int, int]) -> str:
    return PARTS.get(part, f"{implementer_name(part[0])} part {part[1]:#05x}")


def implementer_name(implementer: int) -> str:
    return _IMPLEMENTERS.get(implementer, f"implementer {implementer:#04x}")
