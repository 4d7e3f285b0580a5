"""Compute anew, from the bytes, the sum that the library reports for a pure read of a cache's rows
(its twin).
"""

from itertools import product

import numpy as np

from kvbench.model.planes import PLANES
from kvbench.native import LANES, Cache, block_of, block_places
from kvbench.native.declared import Plane

_LINE = 64
_MODULUS = 1 << 16
_FLOAT = {4: np.float32, 2: np.float16}  # by bytes of a number


def words_sum(data: np.ndarray) -> int:
    """The sum of 16-bit words of full cache lines."""
    return _words(data.view(np.uint8)) % _MODULUS


def rows_sum(cache: Cache) -> int:
    """The sum modulo 2^16 of the 16-bit words of all rows that a decode attends to, and of their
    scales as float32.
    """
    total = 0
    for sequence, length in enumerate(cache.lengths.tolist()):
        first = max(0, length - (cache.window or length))
        kept = range(min(cache.kept, first))
        for head, plane in product(range(cache.struct.kv_heads), PLANES):
            for tokens in (kept, range(first, length)):
                total += _head_sum(cache, sequence, head, tokens, plane)
    return total % _MODULUS


def _head_sum(cache: Cache, sequence: int, head: int, tokens: range, plane: str) -> int:
    """The sum of one head. A block of transposed rows counts once for each stretch of its slots
    that is attended to.
    """
    c, own, view = cache.struct, getattr(cache.struct, plane), cache.arena.view()
    begin, scales = (0, 0) if plane == "k" else (c.k.bytes, c.k.scale_bytes)
    scales += c.k.bytes + c.v.bytes
    wide, blocks, last = _block_bytes(cache, plane), set[tuple[int, int]](), -1
    total = turn = 0
    for token in tokens:
        row, scale = cache.place(token, head, sequence, plane)
        turn, last = turn + (token % c.capacity < last), token % c.capacity
        if wide:
            blocks.add((turn, begin + row - last % LANES * own.row_bytes))
        else:
            total += _words(view[begin + row :][: own.row_bytes])
        if own.scale_bytes:
            total += _scale(own, view[scales + scale :])
    return total + sum(_words(view[at : at + wide]) for _, at in blocks)


def _block_bytes(cache: Cache, plane: str) -> int:
    """Bytes read of a transposed block: full lines up to the last cell or quad with an element; for
    packed rows the whole block. 0 if rows are not transposed.
    """
    (dtype, dim), places = cache.half(plane), block_places(cache, plane)
    if places is None:
        return 0
    elements, size = block_of(dtype, cache.library)
    if elements > 1:
        return places.size
    last = int(places[:, : dim * size].max())
    return (last // _LINE + 1) * _LINE


def _words(data: np.ndarray) -> int:
    return int(data.view(np.uint16).sum(dtype=np.uint64))


def _scale(plane: Plane, data: np.ndarray) -> int:
    wide = min(plane.scale_token_stride, plane.scale_head_stride)  # from one scale to the next
    return _words(data[:wide].view(_FLOAT[wide]).astype(np.float32).view(np.uint8))
