"""A linked library taken apart: functions, objects and constants, without addresses, and who uses whom."""

import bisect
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvbench.gate.relocations import KINDS, Kind

# Flags, as kvb_build() names them. Without the first, calls inside a file are bare.
_SECTION_PER_FUNCTION, _ALIGNED = b"-ffunction-sections", b"-falign-functions=64"
_LOADED, _CODE, _OF_THREAD = 0x2, 0x4, 0x400  # flags of a section
_LINE = 64  # bytes that are fetched together
_NOTHING = (0, 256)  # R_X86_64_NONE and R_AARCH64_NONE
_IMMEDIATE = bytes((0x69, 0x81, 0xC7, 0xF7))  # x86 opcodes behind whose address four more bytes may stand


@dataclass(frozen=True, slots=True)
class Use:
    """An address in a part."""

    at: int  # byte of the part
    kind: int  # of the relocation
    target: "Part | str"  # or the name of what lies elsewhere
    further: int  # bytes behind the target's start


@dataclass(eq=False, slots=True)
class Part:
    """A function, an object, or a constant, which has no name of its own."""

    name: str
    start: int
    end: int
    code: bool
    content: bytearray  # addresses in it are zero
    aligned: bool  # whether all functions of the library begin a line
    uses: list[Use] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The same in every library that has the part, wherever it lies; but where a function begins within a line
        makes its loops faster or slower, unless all begin one. Static functions may share a name."""
        content = self.content if self.name else self.content.rstrip(b"\0")  # behind a constant may be a gap
        line = f"+{self.start % _LINE}" if self.code and not self.aligned else ""
        return f"{self.name}{line}#{hashlib.sha256(content).hexdigest()[:16]}"


def image_of(library: Path) -> "Image | None":
    """None where the file does not tell: no symbols, no relocations, functions that share a section; or no pyelftools."""
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        return None
    with library.open("rb") as file:
        try:
            elf = ELFFile(file)
            known = KINDS.get(elf["e_machine"])
            symbols, text = elf.get_section_by_name(".symtab"), elf.get_section_by_name(".rela.text")
            if not (known and symbols and text and elf.little_endian and elf["e_type"] == "ET_DYN"):
                return None
            image = Image(elf, known)
        except (ELFError, UnicodeDecodeError):
            return None
    return image if any(_SECTION_PER_FUNCTION in section.content for section in image.constants) else None


@dataclass(frozen=True, slots=True)
class _Section:
    start: int
    content: bytes  # zeros where the file has none
    code: bool

    @property
    def end(self) -> int:
        return self.start + len(self.content)


class Image:
    """`named`: functions and objects by name, the last of those that share one."""

    def __init__(self, elf: Any, known: dict[int, Kind]) -> None:
        self._known, self._sections = known, dict(_sections(elf))
        self._aligned = any(_ALIGNED in section.content for section in self.constants)
        symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
        relocations = [
            (section["sh_info"], relocation, symbols[relocation["r_info_sym"]])
            for section in elf.iter_sections()
            if section["sh_type"] == "SHT_RELA" and not section["sh_flags"] & _LOADED
            if section["sh_info"] in self._sections
            for relocation in section.iter_relocations()
            if relocation["r_info_type"] not in _NOTHING
        ]
        self._set(self._of_symbols(symbols))
        self._set([*self._parts.values(), *self._constants(relocations)])
        for entry in relocations:
            self._use(*entry)
        self.named = {part.name: part for part in self._parts.values() if part.name}

    @property
    def constants(self) -> list[_Section]:
        return [section for section in self._sections.values() if not section.code]

    # ---- parts ---------------------------------------------------------------------------------------------------

    def _set(self, parts: Iterable[Part]) -> None:
        self._parts = {part.start: part for part in parts}
        self._starts = sorted(self._parts)

    def _covering(self, place: int) -> Part | None:
        index = bisect.bisect_right(self._starts, place)
        part = self._parts[self._starts[index - 1]] if index else None
        return part if part and place < part.end else None

    def _of_symbols(self, symbols: Iterable[Any]) -> Iterator[Part]:
        for symbol in symbols:
            section = self._sections.get(symbol["st_shndx"])
            if section and symbol["st_size"] and _type(symbol) in ("STT_FUNC", "STT_OBJECT"):
                yield self._part(section, symbol.name, symbol["st_value"], symbol["st_value"] + symbol["st_size"])

    def _constants(self, relocations: Iterable[tuple[int, Any, Any]]) -> Iterator[Part]:
        """What is used and has no size: from where it begins to where something else does."""
        used: dict[int, _Section] = {}
        for user, relocation, symbol in relocations:
            section = self._sections.get(symbol["st_shndx"])
            place = self._places(user, relocation, symbol)[0]
            if section and not section.code and section.start <= place < section.end and not self._covering(place):
                used[place] = section
        edges = {edge for part in self._parts.values() for edge in (part.start, part.end)} | used.keys()
        order = sorted(edges | {section.end for section in self._sections.values()})
        for place, section in used.items():
            yield self._part(section, "", place, order[bisect.bisect_right(order, place)])

    def _part(self, section: _Section, name: str, start: int, end: int) -> Part:
        content = section.content[start - section.start : end - section.start]
        return Part(name, start, end, section.code, bytearray(content), self._aligned)

    # ---- uses ----------------------------------------------------------------------------------------------------

    def _places(self, user: int, relocation: Any, symbol: Any) -> list[int]:
        """Where a relocation leads, the likeliest place first."""
        section, at = self._sections[user], relocation["r_offset"]
        kind, place = self._known.get(relocation["r_info_type"]), symbol["st_value"] + relocation["r_addend"]
        if not kind or not kind.bias:
            return [place]
        if not section.code:  # an entry of a table of jumps, which are relative to the table
            table = self._covering(at)
            return [place - (at - table.start if table else 0)]
        if _type(symbol) != "STT_SECTION":
            return [symbol["st_value"]]
        # x86 counts from the instruction's end, and no more than its opcode says how many bytes follow the address
        more = (0, 1, 2, 4) if section.content[at - section.start - 2] in _IMMEDIATE else (0, 1, 2)
        return [place + kind.bias + bytes_behind for bytes_behind in more]

    def _use(self, user: int, relocation: Any, symbol: Any) -> None:
        part, kind = self._covering(relocation["r_offset"]), self._known.get(relocation["r_info_type"])
        if not part:
            return
        at, name = relocation["r_offset"] - part.start, relocation["r_info_type"]
        if kind:
            _clear(part.content, at, kind)
        if symbol["st_shndx"] not in self._sections:
            part.uses.append(Use(at, name, symbol.name.partition("@")[0] or "thread", relocation["r_addend"]))
            return
        first, *perhaps = self._places(user, relocation, symbol)
        further = relocation["r_addend"] if _type(symbol) != "STT_SECTION" else 0
        found = {target: first - target.start + further for target in [self._covering(first)] if target}
        found |= {self._parts[place]: 0 for place in perhaps if place in self._parts}
        part.uses += [Use(at, name, target, offset) for target, offset in found.items()]
        if not found:
            part.uses.append(Use(at, name, f"at {first:#x}", 0))


def _sections(elf: Any) -> Iterator[tuple[int, _Section]]:
    """What is in memory at run time, once for all threads."""
    for index, section in enumerate(elf.iter_sections()):
        flags = section["sh_flags"]
        if flags & _LOADED and not flags & _OF_THREAD:
            content = bytes(section["sh_size"]) if section["sh_type"] == "SHT_NOBITS" else section.data()
            yield index, _Section(section["sh_addr"], content, bool(flags & _CODE))


def _type(symbol: Any) -> str:
    return symbol["st_info"]["type"]


def _clear(content: bytearray, at: int, kind: Kind) -> None:
    number = int.from_bytes(content[at : at + kind.width], "little") & ~kind.mask
    content[at : at + kind.width] = number.to_bytes(kind.width, "little")
