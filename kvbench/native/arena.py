"""Memory on a kind of pages that can be asked for and verified."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvbench.errors import BadArgument, OutOfMemory, Unsupported
from kvbench.native.arguments import instance, place, whole
from kvbench.native.declared import Address
from kvbench.native.library import Library, Owned, default_library


def pages_given(size: int, library: Library | None = None) -> tuple[str, ...]:
    """The kinds of pages that the system can give now for `size` bytes."""
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
    """Some bytes of an arena, which must outlive the part. `base`: the `uint8_t *` to the first
    byte.
    """

    base: Address
    size: int


class Arena(Owned):
    """`size` bytes on `pages`. guard: 1 puts an unreadable page behind the memory, 2 puts one in
    front.

    A view is memory of the arena: it must not be used after close().
    """

    def __init__(
        self, size: int, pages: str = "thp", guard: int = 0, library: Library | None = None
    ) -> None:
        library = default_library() if library is None else instance("library", library, Library)
        arena, kind = library.ffi.new("kvb_arena *"), library.number("pages", pages)
        library.check(
            library.lib.kvb_arena_open(
                place("size", size, 1 << 61), kind, whole("guard", guard, 32), arena
            )
        )
        super().__init__(library, arena, "kvb_arena_close")

    @property
    def base(self) -> Address:
        """The `uint8_t *` where the memory begins."""
        return self.pointer.base

    @property
    def size(self) -> int:
        return self.pointer.bytes

    def part(self, offset: int, size: int) -> Part:
        offset, size = whole("offset", offset), whole("size", size)
        if not 0 <= offset <= offset + size <= self.size:
            raise BadArgument(
                f"offset {offset} and size {size} do not fit", f"the arena has {self.size} bytes"
            )
        return Part(self.base + offset, size)

    def view(self, dtype: Any = np.uint8) -> np.ndarray:
        """The memory as an array, writable."""
        buffer = self.library.ffi.buffer(self.base, self.size)
        try:
            return np.frombuffer(buffer, dtype=dtype)
        except (TypeError, ValueError) as error:
            raise BadArgument(
                f"dtype: {error}", f"a number type whose size divides {self.size} bytes"
            ) from None

    def inspect(self) -> dict[str, int]:
        """What the system really gave, in bytes: page size, mapped, resident, backed by huge
        pages.
        """
        arena = self.pointer
        self.library.check(self.library.lib.kvb_arena_inspect(arena))
        return {
            name: getattr(arena, name)
            for name in ("page_bytes", "mapped", "resident_bytes", "huge_bytes")
        }
