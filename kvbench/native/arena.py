"""Memory of a page kind that was asked for and can be verified."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvbench.closing import Closing
from kvbench.errors import BadArgument, OutOfMemory, Unsupported
from kvbench.native.arguments import instance, place, whole
from kvbench.native.library import Library, default_library


def pages_given(size: int, library: Library | None = None) -> tuple[str, ...]:
    """The kinds of pages that the system gives now, for so many bytes."""
    library, found = library or default_library(), []
    for pages in library.words("pages"):
        try:
            Arena(size, pages, library=library).close()
        except (Unsupported, OutOfMemory):
            continue
        found.append(pages)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes of an arena, which must outlive it. `base`: the `uint8_t *` where they begin."""

    base: Any
    size: int


class Arena(Closing):
    """`size` bytes on `pages`. guard: 1 ends the memory at an unreadable page, 2 begins it after one.

    A view is memory of the arena: it must not be used after close().
    """

    def __init__(self, size: int, pages: str = "thp", guard: int = 0, library: Library | None = None) -> None:
        self.library = default_library() if library is None else instance("library", library, Library)
        ffi, lib = self.library.ffi, self.library.lib
        arena = ffi.new("kvb_arena *")
        kind = self.library.number("pages", pages)
        self.library.check(lib.kvb_arena_open(place("size", size, 1 << 61), kind, whole("guard", guard, 32), arena))
        self._arena = ffi.gc(arena, lambda opened: lib.kvb_arena_close(opened))

    def close(self) -> None:
        if self._arena is not None:
            self.library.ffi.release(self._arena)
            self._arena = None

    @property
    def struct(self) -> Any:
        """The `kvb_arena *`."""
        if self._arena is None:
            raise BadArgument("the arena is closed", "open another one")
        return self._arena

    @property
    def base(self) -> Any:
        """The `uint8_t *` where the memory begins."""
        return self.struct.base

    @property
    def size(self) -> int:
        return self.struct.bytes

    def part(self, offset: int, size: int) -> Part:
        offset, size = whole("offset", offset), whole("size", size)
        if not 0 <= offset <= offset + size <= self.size:
            raise BadArgument(f"offset {offset} and size {size} are wanted", f"the arena has {self.size} bytes")
        return Part(self.base + offset, size)

    def view(self, dtype: Any = np.uint8) -> np.ndarray:
        """The memory as an array, writable."""
        buffer = self.library.ffi.buffer(self.base, self.size)
        try:
            return np.frombuffer(buffer, dtype=dtype)
        except (TypeError, ValueError) as error:
            raise BadArgument(f"dtype: {error}", f"a type of numbers whose bytes divide {self.size}") from None

    def inspect(self) -> dict[str, int]:
        """What the system really gave, in bytes: page size, mapped, resident, backed by huge pages."""
        arena = self.struct
        self.library.check(self.library.lib.kvb_arena_inspect(arena))
        return {
            "page_bytes": arena.page_bytes,
            "mapped": arena.mapped,
            "resident_bytes": arena.resident_bytes,
            "huge_bytes": arena.huge_bytes,
        }
