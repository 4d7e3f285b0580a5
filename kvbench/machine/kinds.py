"""Kinds of cores in one machine, the strongest first."""

from kvbench.machine.arm import part_name, parts
from kvbench.machine.cpus import read_list
from kvbench.machine.tree import Files


def core_kinds(files: Files, cpus: tuple[int, ...]) -> tuple[dict[str, tuple[int, ...]], str]:
    """CPUs by kind, and where that is from; no kinds where all cores are alike or nothing tells them apart."""
    for found, source in (
        (_by_counters(files, cpus), "/sys/devices/cpu_*/cpus"),
        (_by_part(files, cpus), "MIDR"),
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


def _strongest_first(files: Files, kinds: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """By capacity; where the kernel states none, "core" before the rest."""

    def weakness(kind: str) -> tuple[int, bool, int]:
        first = kinds[kind][0]
        return -(files.number(f"/sys/devices/system/cpu/cpu{first}/cpu_capacity") or 0), kind != "core", first

    return {kind: kinds[kind] for kind in sorted(kinds, key=weakness)}
