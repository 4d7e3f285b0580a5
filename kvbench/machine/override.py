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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from kvbench import named
from kvbench.errors import BadArgument
from kvbench.machine.cpus import listed_cpus
from kvbench.machine.dram import channels_peak
from kvbench.model import Cpu, DataCache, Fact
from kvbench.units import GIB, KIB, MIB, TIB, cpu_text

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=1)]
_Above = Annotated[float, msgspec.Meta(gt=0)]
_UNITS = {"": 1, "B": 1, "KIB": KIB, "MIB": MIB, "GIB": GIB, "TIB": TIB}
_HINT = "what it may say stands at the head of kvbench/machine/override.py"


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Facts(_Table):
    brand: _Text | None = None
    vendor: _Text | None = None
    sockets: _Count | None = None
    hypervisor: _Text | None = None
    container: _Text | None = None
    microcode: _Text | None = None
    quota: _Above | None = None
    memory_limit: int | str | None = None


class _Core(_Table):
    cpus: str


class _Cache(_Table):
    level: _Count
    size: int | str
    cpus: str | None = None
    line: _Count | None = None


class _Dram(_Table):
    channels: _Count | None = None
    mts: _Above | None = None
    width_bits: _Count = 64
    gbps: _Above | None = None


class _File(_Table):
    facts: _Facts = _Facts()
    core: tuple[_Core, ...] = ()
    cache: tuple[_Cache, ...] = ()
    dram: _Dram | None = None


@dataclass(frozen=True, slots=True)
class Override:
    """What the file says; nothing, where there is none."""

    path: str = ""
    said: _File = _File()

    def fact(self, name: str, found: Fact) -> Fact:
        value = getattr(self.said.facts, name, None)
        return found if value is None else self._fact(self._bytes(value) if name == "memory_limit" else value)

    def corrected(self, found: dict[str, Fact]) -> dict[str, Fact]:
        """All facts; those that were counted from corrected cores or caches say where these are from."""
        counted = {f"l{level}d" if level == 1 else f"l{level}" for level in self._levels()}
        counted |= {"domains"} if self.said.cache else set()
        counted |= {"cores", "smt"} if self.said.core else set()
        facts = {name: self.fact(name, fact) for name, fact in found.items()}
        for name in facts.keys() & counted:
            value = found[name].value
            facts[name] = self._fact(value, found[name].note if value is None else "")
        return facts | ({"dram_peak": self._peak(self.said.dram)} if self.said.dram else {})

    def _peak(self, dram: _Dram) -> Fact:
        if dram.gbps:
            return self._fact(dram.gbps)
        if not dram.channels or not dram.mts:
            raise BadArgument(f"{self.path}: [dram] is incomplete", "channels and mts, or gbps")
        note = f"{dram.channels} channels x {dram.mts:g} MT/s x {dram.width_bits} bits"
        return self._fact(channels_peak(dram.channels, dram.mts, dram.width_bits / 8), note)

    def cpus(self, found: tuple[Cpu, ...]) -> tuple[Cpu, ...]:
        groups = self._groups("[[core]]", [entry.cpus for entry in self.said.core], [cpu.cpu for cpu in found])
        cores = {cpu: group for group in groups for cpu in group}
        dealt = [
            replace(cpu, core=core[0], thread=core.index(cpu.cpu)) if (core := cores.get(cpu.cpu)) else cpu
            for cpu in found
        ]
        return self._sockets(dealt)

    def caches(self, found: Sequence[DataCache], online: tuple[int, ...]) -> tuple[DataCache, ...]:
        kept = [cache for cache in found if cache.level not in self._levels()]
        for level in self._levels():
            where, entries = f"[[cache]] level {level}", [entry for entry in self.said.cache if entry.level == level]
            placed = [entry for entry in entries if entry.cpus is not None]
            groups = self._groups(where, [entry.cpus for entry in placed], online)
            old = [cache for cache in found if cache.level == level]
            if len(placed) < len(entries) and not old:
                raise BadArgument(f"{self.path}: {where} has no cpus, and the machine declares no such cache", _HINT)
            made = [(entry, DataCache(level, 0, group)) for entry, group in zip(placed, groups, strict=True)]
            made += [(entry, cache) for entry in entries if entry.cpus is None for cache in old]
            kept += [replace(c, size=self._bytes(entry.size), line=entry.line or c.line) for entry, c in made]
        return tuple(sorted((cache for cache in kept if cache.size), key=lambda cache: (cache.level, cache.cpus)))

    def _levels(self) -> set[int]:
        return {entry.level for entry in self.said.cache}

    def _sockets(self, found: list[Cpu]) -> tuple[Cpu, ...]:
        cores, sockets = sorted({cpu.core for cpu in found}), self.said.facts.sockets
        if sockets is None:
            return tuple(found)
        if len(cores) % sockets:
            raise BadArgument(f"{self.path}: [facts] sockets is {sockets}", f"a divisor of the {len(cores)} cores")
        return tuple(replace(cpu, socket=cores.index(cpu.core) * sockets // len(cores)) for cpu in found)

    def _groups(self, where: str, texts: Iterable[str], online: Iterable[int]) -> list[tuple[int, ...]]:
        """CPUs as lists have them: those that are there, each once."""
        online, found = set(online), list[tuple[int, ...]]()
        for text in texts:
            if not (group := listed_cpus(text)):
                raise BadArgument(f"{self.path}: {where} cpus is {text!r}", 'a list such as "0-3,8"')
            if strange := [cpu for cpu in sorted(group) if cpu not in online or any(cpu in own for own in found)]:
                what = f"{where} names CPU {strange[0]}, which is not online, or twice"
                raise BadArgument(f"{self.path}: {what}", f"online: {cpu_text(online)}; each CPU in one group")
            found.append(tuple(sorted(group)))
        return found

    def _bytes(self, value: int | str) -> int:
        found = re.fullmatch(r"(\d+)\s*([A-Z]*)", str(value).upper())
        if not found or found[2] not in _UNITS:
            raise BadArgument(f"{self.path}: {value!r} is no size", 'such as "512KiB" or "16MiB"')
        return int(found[1]) * _UNITS[found[2]]

    def _fact(self, value: Any, note: str = "") -> Fact:
        return Fact(value, f"override: {self.path}", "none" if value is None else "high", note)


def load(path: Path | str) -> Override:
    try:
        return Override(str(path), msgspec.convert(tomllib.loads(named.text(path, named.WRITTEN)), _File))
    except OSError as error:
        hint = "give a TOML file that corrects the machine"
        raise BadArgument(f"cannot read {path}: {error.strerror}", hint) from None
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise BadArgument(f"{path}: {error}", _HINT) from None
