"""Blocks that caches share: each takes them as it grows, and gives them back as it forgets."""

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from kvbench.closing import Closing
from kvbench.errors import BadArgument, OutOfMemory
from kvbench.native.arena import Arena
from kvbench.native.arguments import instance, place, whole
from kvbench.native.cache import Cache
from kvbench.native.library import Library, default_library
from kvbench.native.team import Teams
from kvbench.units import counted, size


class Pool(Closing):
    """`blocks` blocks of `block_tokens` tokens, for as many paged caches as like to share them.

    free: blocks that no cache has. The other arguments are those of a Cache.
    """

    def __init__(
        self,
        kv_heads: int,
        head_dim: int,
        blocks: int,
        layout: str = "paged",
        dtype: str = "f32",
        block_tokens: int = 16,
        *,
        inner: str = "head",
        scale: str = "f32",
        tensor_scale: float | tuple[float, float] | None = None,
        pages: str = "thp",
        guard: int = 0,
        library: Library | None = None,
    ) -> None:
        library = default_library() if library is None else instance("library", library, Library)
        blocks = whole("blocks", blocks)
        if not Cache.is_paged(layout, library):
            raise BadArgument(f"layout is {layout}: its caches have no blocks", "a paged one")
        self._facts: dict[str, Any] = dict(kv_heads=kv_heads, head_dim=head_dim, blocks=blocks, layout=layout)
        self._facts |= dict(dtype=dtype, block_tokens=block_tokens, inner=inner, scale=scale, library=library)
        self._facts |= dict(tensor_scale=tensor_scale)
        self.arena = Arena(Cache.size_of(capacity=1, **self._facts), pages, guard, library)
        self.blocks = blocks
        self._free = list(range(blocks - 1, -1, -1))  # the last one is taken first
        self._drawn: weakref.WeakSet[Cache] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<Pool {self._facts['dtype']}, {self.free} of {counted(self.blocks, 'block')} free>"

    def close(self) -> None:
        """Give the memory back. Caches that have blocks of it are closed, too."""
        for cache in list(self._drawn):
            cache.close()
        self.arena.close()

    @property
    def free(self) -> int:
        return len(self._free)

    def cache(self, capacity: int, batch: int = 1, window: int | None = None) -> Cache:
        """A cache without any block, whose sequences may grow to `capacity` tokens each while there are blocks left. It is
        no ring: with a window, too, it keeps all of them."""
        cache = _Drawn(self, dict(capacity=capacity, batch=batch, window=window, ring=False) | self._facts)
        self._drawn.add(cache)
        return cache

    def _take(self, count: int) -> list[int]:
        if count > self.free:
            raise OutOfMemory(
                f"{counted(count, 'block')} of the pool would be needed; {self.free} of {self.blocks} are free",
                "roll back, reset or close one of its caches, or make a larger pool",
            )
        return [self._free.pop() for _ in range(count)]

    def _give(self, blocks: Iterable[int]) -> None:
        self._free.extend(blocks)


class _Drawn(Cache):
    """Its table is filled as it grows. What has no block is negative there, and it is not the caller's to write: so no
    block ever belongs to two sequences, nor comes back twice."""

    def __init__(self, pool: Pool, facts: dict[str, Any]) -> None:
        self._pool = pool
        self._lay_out(facts)
        self._own, self._arena = False, pool.arena
        self._bind(0)
        self._teams = Teams(self.library)
        self._left = weakref.finalize(self, _return_all, pool, self._blocks)  # also when it is forgotten, never twice
        self._left.atexit = False

    def _order(self, shuffle: int | None) -> np.ndarray:
        return np.full(self._struct.batch * self._struct.table_stride, -1, dtype=np.int32)

    def _lay_table(self, blocks: np.ndarray) -> np.ndarray:
        self._blocks = super()._lay_table(blocks)
        shown = self._blocks.view()
        shown.flags.writeable = False
        return shown

    def __repr__(self) -> str:
        return super().__repr__().replace(size(self._struct.bytes), repr(self._pool))

    def close(self) -> None:
        with self._teams.lock:
            self._left()
            super().close()

    def would_overflow(self, tokens: int = 1) -> bool:
        return super().would_overflow(tokens) or len(self._missing(tokens)) > self._pool.free

    def reserve(self, tokens: int) -> None:
        super().reserve(tokens)
        missing = self._missing(tokens)
        self._blocks.flat[missing] = self._pool._take(len(missing))

    def advance(self, tokens: int) -> None:
        Cache.reserve(self, tokens)
        self.refuse_unplaced(tokens)
        super().advance(tokens)

    def refuse_unplaced(self, tokens: int) -> None:
        if self._missing(place("tokens", tokens)):
            raise BadArgument(f"{tokens} more tokens have no blocks: nothing can be stored there", "reserve them first")

    def rollback(self, tokens: int | None = None, *, to: int | None = None, sequence: int | None = None) -> None:
        """Blocks in which nothing is left go back to the pool, reserved ones among them."""
        super().rollback(tokens, to=to, sequence=sequence)
        self._shrink()

    def reset(self) -> None:
        super().reset()
        self._shrink()

    def clear(self, isa: str | None = None, threads: int = 1) -> None:
        self._refuse_closed()
        raise BadArgument("clear would zero the blocks of other caches, too", "reset forgets this one's tokens")

    def _missing(self, tokens: int) -> list[int]:
        """Entries of the table that are empty, and needed for so many more tokens."""
        found, entries, c = [], self._blocks.ravel(), self._struct
        for sequence, length in enumerate(self.lengths.tolist()):
            needed = np.arange(length // c.block_tokens, min(c.table_stride, -(-(length + tokens) // c.block_tokens)))
            at = sequence * c.table_stride + needed
            found += at[entries[at] < 0].tolist()
        return found

    def _shrink(self) -> None:
        for own, end in zip(self._blocks, self.lengths.tolist(), strict=True):
            spare = own >= 0
            spare[: -(-end // self._struct.block_tokens)] = False
            self._pool._give(own[spare].tolist())
            own[spare] = -1


def _return_all(pool: Pool, table: np.ndarray) -> None:
    pool._give(table[table >= 0].tolist())
    table[:] = -1
