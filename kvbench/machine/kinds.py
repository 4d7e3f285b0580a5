"""Kinds of cores in one machine, the strongest first."""

from kvbench.machine.arm import part_name, parts
from kvbench.machine.cpus import read_list
from kvbench.machine.tree import Files

_ALIKE = 0.8  # capacities within a fifth: cores of one kind that clock differently


def core_kinds(files: Files, cpus: tuple[int, ...]) -> tuple[dict[str, tuple[int, ...]], str]:
    """CPUs by kind, and where that is from; no kinds where all cores are alike or nothing tells them apart."""
    for found, source in (
        (_by_counters(files, cpus), "/sys/devices/cpu_*/cpus"),
        (_by_part(files, cpus), "MIDR"),
        (_by_capacity(files, cpus), "/sys/devices/system/cpu/cpu*/cpu_capacity"),
    ):
        if len(found) > 1:
            return _strongest_first(files, found), source
    return {}, "/sys/devices"


def _by_counters(files: Files, cpus: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """x86 has a set of counters for every kind: cpu_core, cpu_atom, cpu_lowpower."""
    found = {}
    for path in files.glob("/sys/devices/cpu_*/cpus"):
        kind = path.split("/")[-2].removeprefix("cpu_")
        members = tuple(sorted(read_list(files, path) & set(cpus)))
        if members:
            found[kind] = members
    return found


def _by_part(files: Files, cpus: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for cpu, part in parts(files, cpus).items():
        found[part_name(part)] = (*found.get(part_name(part), ()), cpu)
    return found


def _by_capacity(files: Files, cpus: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    capacities = {cpu: value for cpu in cpus if (value := _capacity(files, cpu))}
    if len(capacities) < len(cpus) or min(capacities.values()) >= _ALIKE * max(capacities.values()):
        return {}
    return {
        f"capacity {value}": tuple(cpu for cpu in cpus if capacities[cpu] == value)
        for value in sorted(set(capacities.values()))
    }


def _capacity(files: Files, cpu: int) -> int | None:
    return files.number(f"/sys/devices/system/cpu/cpu{cpu}/cpu_capacity")


def _strongest_first(files: Files, kinds: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """By capacity; where the kernel states none, "core" before the rest."""

    def weakness(kind: str) -> tuple[int, bool, int]:
        return -(_capacity(files, kinds[kind][0]) or 0), kind != "core", kinds[kind][0]

    return {kind: kinds[kind] for kind in sorted(kinds, key=weakness)}
