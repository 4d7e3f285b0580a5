"""The caches that CPUs declare in sysfs, and the groups of CPUs that share a last level."""

from kvbench.machine.cpus import read_list
from kvbench.machine.tree import Files, count
from kvbench.model import DataCache

_HOLD_DATA = ("Data", "Unified")
_SHARED = 3  # from this level on
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def data_caches(cpus: tuple[int, ...], files: Files | None = None) -> list[DataCache]:
    """Data and unified caches of `cpus`, each once; empty where the system declares none."""
    files, found = files or Files(), set()
    for cpu in cpus:
        for index in files.glob(f"/sys/devices/system/cpu/cpu{cpu}/cache/index*"):
            cache = _read(files, index, cpu)
            if cache is not None:
                found.add(cache)
    return sorted(found, key=lambda cache: (cache.level, cache.cpus))


def _read(files: Files, index: str, cpu: int) -> DataCache | None:
    """None unless it is said to hold data, and how much: some firmware names caches and does not describe them.

    Where sharing is not stated, the first levels are a core's own; of what lies behind them nothing is known.
    """
    level, size = files.number(f"{index}/level"), _bytes(files.text(f"{index}/size") or "")
    if files.text(f"{index}/type") not in _HOLD_DATA or level is None or not size:
        return None
    shared = read_list(files, f"{index}/shared_cpu_list")
    if not shared and level >= _SHARED:
        return None
    line = files.number(f"{index}/coherency_line_size") or DataCache.__dataclass_fields__["line"].default
    return DataCache(level, size, tuple(sorted(shared | {cpu})), line)


def _bytes(text: str) -> int:
    """ "32K"; 0 for what is no size."""
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    return (count(number) or 0) * unit


def last_levels(caches: tuple[DataCache, ...]) -> tuple[DataCache, ...]:
    """The highest cache of every CPU, each once. Cores of one machine may differ: some stand beside the L3."""
    top: dict[int, DataCache] = {}
    for cache in sorted(caches, key=lambda cache: cache.level):
        top.update(dict.fromkeys(cache.cpus, cache))
    return tuple(sorted(set(top.values()), key=lambda cache: cache.cpus))
