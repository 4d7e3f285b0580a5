"""CPUs that this process may use, and the data caches that they declare in sysfs."""

import os
from dataclasses import dataclass
from pathlib import Path

_SYSFS = Path("/sys/devices/system/cpu")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class DataCache:
    """`size` bytes, shared by `cpus`."""

    level: int
    size: int
    cpus: frozenset[int]


def allowed_cpus() -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0)))


def data_caches(cpus: tuple[int, ...], sysfs: Path = _SYSFS) -> list[DataCache]:
    """Data and unified caches of `cpus`, each once; empty where the system declares none."""
    found = set()
    for cpu in cpus:
        for index in sorted((sysfs / f"cpu{cpu}" / "cache").glob("index*")):
            cache = _read(index)
            if cache is not None:
                found.add(cache)
    return sorted(found, key=lambda cache: (cache.level, min(cache.cpus)))


def _read(index: Path) -> DataCache | None:
    try:
        kind, size = (index / "type").read_text().strip(), (index / "size").read_text().strip()
        level, shared = int((index / "level").read_text()), (index / "shared_cpu_list").read_text().strip()
        if kind == "Instruction" or not size:
            return None
        bytes_ = int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size)
        return DataCache(level, bytes_, cpu_list(shared))
    except (OSError, ValueError, KeyError):
        return None


def cpu_list(text: str) -> frozenset[int]:
    """ "0-2,5" as {0, 1, 2, 5}."""
    cpus: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)
