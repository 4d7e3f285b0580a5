"""A TOML file that corrects what a machine says of itself.

[facts]                # sockets are dealt out evenly, in the order of CPUs
sockets = 1
hypervisor = "none"

[[core]]               # CPUs that are one core
cpus = "0-1"

[[cache]]              # replaces all caches of its level; without cpus, only their size; size 0: there is none
level = 3
size = "16MiB"
cpus = "0-7"

[dram]                 # channels of the whole machine; or gbps alone
channels = 12
mts = 5600
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kvbench import named
from kvbench.errors import BadArgument, one_of
from kvbench.machine.dram import channels_peak
from kvbench.model import Cpu, DataCache, Fact
from kvbench.units import cpu_list, cpu_text

_KEYS = {
    "facts": {
        "brand": "text",
        "vendor": "text",
        "sockets": "count",
        "hypervisor": "text",
        "container": "text",
        "microcode": "text",
        "quota": "number",
        "memory_limit": "size",
    },
    "core": {"cpus": "cpus"},
    "cache": {"level": "count", "size": "size", "cpus": "cpus", "line": "count"},
    "dram": {"channels": "count", "mts": "number", "width_bits": "count", "gbps": "number"},
}
_LISTS = ("core", "cache")
_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_HINTS = {
    "text": 'a text, such as "none"',
    "count": "a whole number from 1 on",
    "number": "a number above 0",
    "size": 'a size, such as "512KiB" or "16MiB"',
    "cpus": 'a list of CPUs, such as "0-3,8"',
}


@dataclass(frozen=True, slots=True)
class Override:
    """What the file says, its values read; empty tables where it says nothing."""

    path: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    core: tuple[dict[str, Any], ...] = ()
    cache: tuple[dict[str, Any], ...] = ()
    dram: dict[str, Any] = field(default_factory=dict)

    def fact(self, name: str, found: Fact) -> Fact:
        return self._said(self.facts[name]) if name in self.facts else found

    def corrected(self, found: dict[str, Fact]) -> dict[str, Fact]:
        """All facts; those that were counted from corrected cores or caches say where these are from."""
        counted = [f"l{level}d" if level == 1 else f"l{level}" for level in self.levels()]
        counted += ["domains"] * bool(self.cache) + ["cores", "smt"] * bool(self.core)
        facts = {name: self.fact(name, fact) for name, fact in found.items()}
        facts |= {
            name: replace(self._said(found[name].value), note=_why(found[name])) for name in counted if name in found
        }
        return {**facts, "dram_peak": self._peak(found["dram_peak"])}

    def _peak(self, found: Fact) -> Fact:
        if not self.dram:
            return found
        if "gbps" in self.dram:
            return self._said(self.dram["gbps"])
        channels, mts, bits = self.dram["channels"], self.dram["mts"], self.dram.get("width_bits", 64)
        note = f"{channels} channels x {mts:g} MT/s x {bits} bits"
        return replace(self._said(channels_peak(channels, mts, bits / 8)), note=note)

    def levels(self) -> frozenset[int]:
        return frozenset(entry["level"] for entry in self.cache)

    def cpus(self, found: tuple[Cpu, ...]) -> tuple[Cpu, ...]:
        self._distinct("[[core]]", [entry["cpus"] for entry in self.core], [cpu.cpu for cpu in found])
        cores = {cpu: sorted(entry["cpus"]) for entry in self.core for cpu in entry["cpus"]}
        dealt = [
            replace(cpu, core=core[0], thread=core.index(cpu.cpu)) if (core := cores.get(cpu.cpu)) else cpu
            for cpu in found
        ]
        return self._sockets(dealt)

    def caches(self, found: Iterable[DataCache], online: tuple[int, ...]) -> tuple[DataCache, ...]:
        kept = [cache for cache in found if cache.level not in self.levels()]
        for level in self.levels():
            entries = [entry for entry in self.cache if entry["level"] == level]
            placed = [entry for entry in entries if "cpus" in entry]
            self._distinct(f"[[cache]] level {level}", [entry["cpus"] for entry in placed], online)
            old = [cache for cache in found if cache.level == level]
            for entry in entries:
                kept += self._caches(entry, old)
        return tuple(sorted(kept, key=lambda cache: (cache.level, cache.cpus)))

    def _caches(self, entry: dict[str, Any], old: list[DataCache]) -> list[DataCache]:
        line = {"line": entry["line"]} if "line" in entry else {}
        if not entry["size"]:
            return []
        if "cpus" in entry:
            return [DataCache(entry["level"], entry["size"], tuple(sorted(entry["cpus"])), **line)]
        if not old:
            where = f"{self.path}: [[cache]] level {entry['level']}"
            raise BadArgument(f"{where} has no cpus, and the machine declares no such cache", _HINTS["cpus"])
        return [replace(cache, size=entry["size"], **line) for cache in old]

    def _sockets(self, found: list[Cpu]) -> tuple[Cpu, ...]:
        sockets = self.facts.get("sockets")
        if sockets is None:
            return tuple(found)
        cores = sorted({cpu.core for cpu in found})
        if len(cores) % sockets:
            raise BadArgument(f"{self.path}: [facts] sockets is {sockets}", f"a divisor of the {len(cores)} cores")
        return tuple(replace(cpu, socket=cores.index(cpu.core) * sockets // len(cores)) for cpu in found)

    def _distinct(self, where: str, groups: list[frozenset[int]], online: Iterable[int]) -> None:
        seen: set[int] = set()
        for group in groups:
            if strange := group - set(online):
                raise BadArgument(f"{self.path}: {where} names CPU {min(strange)}", f"online: {cpu_text(online)}")
            if twice := group & seen:
                raise BadArgument(f"{self.path}: {where} names CPU {min(twice)} twice", "each CPU in one group")
            seen |= group

    def _said(self, value: Any) -> Fact:
        return Fact(value, f"override: {self.path}", "none" if value is None else "high")


def _why(found: Fact) -> str:
    """A value needs no reason when it was given."""
    return found.note if found.value is None else ""


def load(path: Path | str) -> Override:
    try:
        tables = tomllib.loads(named.text(path, named.WRITTEN))
    except OSError as error:
        raise BadArgument(
            f"cannot read {path}: {error.strerror}", "give a TOML file that corrects the machine"
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"{path}: {error}", "write it as TOML, such as: [facts] and below it sockets = 1") from None
    read: dict[str, Any] = {}
    for table, content in tables.items():
        _known(path, "table", table, _KEYS)
        if table in _LISTS:
            if not isinstance(content, list):
                raise BadArgument(f"{path}: [{table}] is no list", f"write [[{table}]] over each of its entries")
            read[table] = tuple(_entry(path, table, entry) for entry in content)
        else:
            read[table] = _entry(path, table, content)
    _complete(path, read)
    return Override(path=str(path), **read)


def _entry(path: Path | str, table: str, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise BadArgument(f"{path}: {table} is {content!r}", f"write [{table}] and its keys below")
    read = {}
    for key, value in content.items():
        _known(path, f"[{table}]", key, _KEYS[table])
        kind = _KEYS[table][key]
        read[key] = _value(kind, value)
        if read[key] is None:
            raise BadArgument(f"{path}: [{table}] {key} is {value!r}", _HINTS[kind])
    return read


def _value(kind: str, value: Any) -> Any:
    """What a key's text or number means; None where it is not of its kind."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "text":
        return value if isinstance(value, str) and value else None
    if kind in ("count", "number"):
        return value if number and value > 0 and (kind == "number" or isinstance(value, int)) else None
    if kind == "size":
        found = re.fullmatch(r"(\d+)\s*([A-Z]*)", str(value).upper()) if not isinstance(value, bool) else None
        return int(found[1]) * _UNITS[found[2]] if found and found[2] in _UNITS else None
    try:
        return cpu_list(value) or None
    except (ValueError, AttributeError):
        return None


def _complete(path: Path | str, read: dict[str, Any]) -> None:
    for table, needed in (("cache", ("level", "size")), ("core", ("cpus",))):
        for entry in read.get(table, ()):
            for key in needed:
                if key not in entry:
                    raise BadArgument(f"{path}: [[{table}]] lacks {key}", _HINTS[_KEYS[table][key]])
    dram = read.get("dram", {})
    if dram and "gbps" not in dram and not {"channels", "mts"} <= dram.keys():
        raise BadArgument(f"{path}: [dram] is incomplete", "channels and mts, or gbps")


def _known(path: Path | str, where: str, word: str, allowed: Iterable[str]) -> None:
    if word in allowed:
        return
    raise BadArgument(f"{path}: {where} {word!r} is not known", one_of(word, allowed))
