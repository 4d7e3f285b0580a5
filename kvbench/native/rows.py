"""What the rows of a cache are made of, as abi.h tells at kvb_cache."""

import itertools

import numpy as np

from kvbench.native.cache import Cache
from kvbench.native.library import Library

_LINE = 64
LANES = 16  # tokens of a block in which K lies transposed


def block_of(dtype: str, library: Library | None = None) -> tuple[int, int]:
    """Elements and bytes: of one element, or of as many as a packed row keeps together. Other rows
    are whole lines.
    """

    def row(elements: int) -> int:
        return Cache.planned(1, elements, 1, dtype=dtype, library=library).k.row_bytes

    if row(1) % _LINE == 0:
        return 1, row(_LINE) // _LINE  # elements that fill lines leave nothing over
    return next(count for count in itertools.count(1) if row(count + 1) > row(1)), row(1)


def packed(count: int, dtype: str) -> int:
    """Bytes of so many elements."""
    elements, size = block_of(dtype)
    return -(-count // elements) * size


def key_bytes(cache: Cache, token: int, head: int, sequence: int = 0) -> np.ndarray:
    """Where each byte of a token's row of K lies in the plane: side by side, or transposed."""
    c, row = cache.struct, cache.place(token, head, sequence)[0]
    byte, cell = np.arange(c.k.row_bytes), cache.library.cell(cache.layout, cache.dtype)
    if not cell:
        return row + byte
    lane = token % c.capacity % LANES
    return row - lane * c.k.row_bytes + (byte // cell * LANES + lane) * cell + byte % cell


def token_bytes(cache: Cache, token: int, head: int, sequence: int = 0) -> list[np.ndarray]:
    """Where the bytes of K and V of a token lie in a cache's memory, and of their scales where rows
    have any.
    """
    c = cache.struct
    row, scale = cache.place(token, head, sequence)
    places = [
        key_bytes(cache, token, head, sequence),
        c.k.bytes + row + np.arange(c.v.row_bytes),
    ]
    if c.k.scale_bytes:
        # scales lie side by side one way or the other
        width = min(c.k.scale_token_stride, c.k.scale_head_stride)
        scales = c.k.bytes + c.v.bytes + scale + np.arange(width)
        places += [scales, c.k.scale_bytes + scales]
    return places
