"""Blocks that paged caches take from one pool, share, and give back."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import numpy as np

from kvbench.errors import BadArgument
from kvbench.native.arguments import place
from kvbench.units import counted

if TYPE_CHECKING:
    from kvbench.native.cache import Cache

NONE = -1  # table entry without a block


class Blocks:
    """A pool of `count` blocks that paged caches share.

    A cache made with the pool starts without blocks. It takes a block when a token needs one, and
    gives it back when it holds no token any more. All caches of a pool must lie over the same
    memory. Only one thread at a time may use them.

    A method raises BadArgument (a ValueError) if an argument is wrong.
    """

    def __init__(self, count: int) -> None:
        self.count = place("blocks", count, 1 << 31)
        self._free = list(range(self.count))[::-1]
        self._holders = np.zeros(self.count, dtype=np.int64)  # how many sequences hold each block

    @property
    def free(self) -> int:
        """The number of blocks that no sequence holds."""
        return len(self._free)

    def take(self, count: int = 1) -> list[int]:
        """Take `count` free blocks for one sequence and return their numbers, the block given back
        last first. Raises BadArgument if too few are free.
        """
        if place("count", count) > self.free:
            raise BadArgument(
                f"blocks: {counted(count, 'block')} wanted, {self.free} of {self.count} are free",
                "roll a sequence back, close a cache, or make a larger pool",
            )
        taken = [self._free.pop() for _ in range(count)]
        self._holders[taken] = 1
        return taken

    def give_back(self, blocks: Iterable[int]) -> None:
        """Drop one sequence's hold on each of these blocks. A block without holders is free. Raises
        BadArgument for a block that is free already.
        """
        for block in blocks:
            if not self._holders[place("block", block, self.count)]:
                raise BadArgument(f"block {block} is free", "take it from the pool first")
            self._holders[block] -= 1
            if not self._holders[block]:
                self._free.append(int(block))

    def share(
        self, source: "Cache", cache: "Cache", tokens: int, *, of: int = 0, sequence: int = 0
    ) -> None:
        """Let an empty sequence of `cache` begin with the first `tokens` of sequence `of` of
        `source`, in the same blocks. `tokens` is a multiple of block_tokens. Raises BadArgument if
        the caches do not use this pool with the same memory, shape and dtype, or if `sequence`
        holds tokens.
        """
        c, held = cache.struct, source.lengths[place("of", of, len(source.lengths))]
        if _rows(cache) != _rows(source) or not self is cache.pool is source.pool:
            raise BadArgument(
                "the caches do not have the same blocks",
                "make both with this pool, in one arena, with one shape and dtype",
            )
        if cache.lengths[place("sequence", sequence, c.batch)]:
            raise BadArgument(
                f"sequence {sequence} already has tokens", "roll it back to 0, or reset the cache"
            )
        most = min(held, c.capacity) if held <= source.struct.capacity else 0
        if place("tokens", tokens, most + 1) % c.block_tokens:
            raise BadArgument(
                f"tokens is {tokens}: both sequences would write the last block",
                f"share a multiple of {c.block_tokens}",
            )
        blocks = _table(source)[of, : tokens // c.block_tokens]
        self._holders[blocks] += 1
        _table(cache)[sequence, : len(blocks)] = blocks
        cache.lengths[sequence] = tokens

    # ---- for a cache -----------------------------------------------------------------------------

    def missing(self, cache: "Cache", tokens: int, sequence: int | None = None) -> np.ndarray:
        """A mask of the table entries that need a block before `tokens` more are written."""
        return _ahead(cache, tokens, sequence) & (_table(cache) == NONE)

    def fill(self, cache: "Cache", tokens: int, sequence: int | None = None) -> None:
        """Take blocks for `tokens` more of every sequence, or of one. Raises BadArgument and takes
        no block if too few are free, or if a block to be written is shared.
        """
        table, missing = _table(cache), self.missing(cache, tokens, sequence)
        held = table[_ahead(cache, tokens, sequence) & ~missing]
        for block in held[self._holders[held] > 1]:
            raise BadArgument(
                f"block {block} would be written, and another sequence shares it",
                "roll back to the end of the shared tokens, or to 0",
            )
        table[missing] = self.take(int(missing.sum()))

    def empty(self, cache: "Cache") -> None:
        """Give back the blocks behind the end of each sequence."""
        c = cache.struct
        for row, length in zip(_table(cache), cache.lengths, strict=True):
            behind = row[-(-min(int(length), c.capacity) // c.block_tokens) :]
            self.give_back(behind[behind != NONE])
            behind[:] = NONE


def _table(cache: "Cache") -> np.ndarray:
    return cast("np.ndarray", cache.table)  # a cache with a pool has a table


def _ahead(cache: "Cache", tokens: int, sequence: int | None) -> np.ndarray:
    """A mask of the table entries for the slots that `tokens` more are written to."""
    c, ahead = cache.struct, np.zeros(_table(cache).shape, dtype=bool)
    for row in range(c.batch) if sequence is None else [sequence]:
        slots = cache.lengths[row] + np.arange(min(tokens, c.capacity))
        ahead[row, slots % c.capacity // c.block_tokens] = True
    return ahead


def _rows(cache: "Cache") -> tuple[list[bytes], int, int]:
    """Where a cache's rows lie and how they are stored, to compare with another cache."""
    c, ffi = cache.struct, cache.library.ffi
    return [bytes(ffi.buffer(ffi.addressof(p))) for p in (c.k, c.v)], c.head_dim, c.block_tokens
