"""A TOML file that corrects what a machine says about its caches and memory.

[[cache]]              # replaces all caches of its level; without cpus, only their size
level = 3              # size = 0: the machine has no cache of this level
size = "16MiB"
cpus = "0-7"

[dram]                 # channels of the whole machine; or gbps alone
channels = 12
mts = 5600
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from kvbench import named
from kvbench.errors import BadArgument
from kvbench.machine.cpus import listed_cpus
from kvbench.model import DataCache, Fact
from kvbench.units import GIB, KIB, MIB, TIB, cpu_text

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Above = Annotated[float, msgspec.Meta(gt=0)]
_UNITS = {"": 1, "B": 1, "KIB": KIB, "MIB": MIB, "GIB": GIB, "TIB": TIB}
_HINT = "the format is described at the head of kvbench/machine/override.py"


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class _Cache(_Table, frozen=True):
    level: _Count
    size: int | str
    cpus: str | None = None
    line: _Count | None = None


class _Dram(_Table, frozen=True):
    channels: _Count | None = None
    mts: _Above | None = None
    width_bits: _Count = 64
    gbps: _Above | None = None


class _File(_Table, frozen=True):
    cache: tuple[_Cache, ...] = ()
    dram: _Dram | None = None


@dataclass(frozen=True, slots=True)
class Override:
    """What the file says; empty if there is no file."""

    path: str = ""
    said: _File = _File()

    def corrected(self, found: dict[str, Fact]) -> dict[str, Fact]:
        """All facts. Facts counted from corrected caches name the file as their source."""
        counted = {f"l{level}d" if level == 1 else f"l{level}" for level in self._levels()}
        facts = dict(found)
        for name in facts.keys() & (counted | ({"domains"} if counted else set())):
            value = found[name].value
            facts[name] = self._fact(value, found[name].note if value is None else "")
        return facts | ({"dram_peak": self._peak(self.said.dram)} if self.said.dram else {})

    def _peak(self, dram: _Dram) -> Fact:
        if dram.gbps:
            return self._fact(dram.gbps)
        if not dram.channels or not dram.mts:
            raise BadArgument(f"{self.path}: [dram] is incomplete", "channels and mts, or gbps")
        note = f"{dram.channels} channels x {dram.mts:g} MT/s x {dram.width_bits} bits"
        return self._fact(dram.channels * dram.mts * dram.width_bits / 8 / 1000, note)

    def caches(self, found: Sequence[DataCache], online: tuple[int, ...]) -> tuple[DataCache, ...]:
        kept = [cache for cache in found if cache.level not in self._levels()]
        for entry in self.said.cache:
            old = [cache for cache in found if cache.level == entry.level]
            if entry.cpus is not None:
                old = [DataCache(entry.level, 0, self._cpus(entry.cpus, online))]
            if not old:
                what = (
                    f"[[cache]] level {entry.level} has no cpus, and the machine declares no such"
                    " cache"
                )
                raise BadArgument(f"{self.path}: {what}", _HINT)
            kept += [
                replace(cache, size=self._bytes(entry.size), line=entry.line or cache.line)
                for cache in old
            ]
        return tuple(
            sorted(
                (cache for cache in kept if cache.size), key=lambda cache: (cache.level, cache.cpus)
            )
        )

    def _levels(self) -> set[int]:
        return {entry.level for entry in self.said.cache}

    def _cpus(self, text: str, online: tuple[int, ...]) -> tuple[int, ...]:
        cpus = listed_cpus(text)
        if not cpus or not cpus <= set(online):
            raise BadArgument(
                f"{self.path}: [[cache]] cpus is {text!r}", f"a list of these: {cpu_text(online)}"
            )
        return tuple(sorted(cpus))

    def _bytes(self, value: int | str) -> int:
        found = re.fullmatch(r"(\d+)\s*([A-Z]*)", str(value).upper())
        if not found or found[2] not in _UNITS:
            raise BadArgument(
                f"{self.path}: {value!r} is not a size", 'such as "512KiB" or "16MiB"'
            )
        return int(found[1]) * _UNITS[found[2]]

    def _fact(self, value: Any, note: str = "") -> Fact:
        return Fact(value, f"override: {self.path}", "none" if value is None else "high", note)


def load(path: Path | str) -> Override:
    try:
        return Override(
            str(path), msgspec.convert(tomllib.loads(named.text(path, named.WRITTEN)), _File)
        )
    except OSError as error:
        raise BadArgument(
            f"cannot read {path}: {error.strerror}", "give a TOML file that can be read"
        ) from None
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise BadArgument(f"{path}: {error}", _HINT) from None
