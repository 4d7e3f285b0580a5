"""What a pure read of a cache's rows must come to: the sum that the library tells of its twin, made
anew from the bytes.
"""

import numpy as np

from kvbench.native import LANES, Cache, block_of

_LINE = 64
_MODULUS = 1 << 16
_FLOAT = {4: np.float32, 2: np.float16}  # by its bytes


def words_sum(data: np.ndarray) -> int:
    """Of whole lines."""
    return _words(data.view(np.uint8)) % _MODULUS


def rows_sum(cache: Cache) -> int:
    """16-bit words of all rows that a decode attends to, and of their scales as float32, modulo
    2^16.
    """
    total = 0
    for sequence, length in enumerate(cache.lengths.tolist()):
        first = max(0, length - (cache.window or length))
        for head in range(cache.struct.kv_heads):
            total += _head_sum(cache, sequence, head, range(first, length))
    return total % _MODULUS


def _head_sum(cache: Cache, sequence: int, head: int, tokens: range) -> int:
    """A block of transposed K counts once for each stretch of its slots that is attended to."""
    c, view, blocks, last = cache.struct, cache.arena.view(), set[tuple[int, int]](), -1
    total = turn = 0
    scaled = c.k.scale_bytes > 0
    cell = cache.library.cell(cache.layout, cache.dtype)
    v, scales = c.k.bytes, (c.k.bytes + c.v.bytes, c.k.bytes + c.v.bytes + c.k.scale_bytes)
    for token in tokens:
        row, scale = cache.place(token, head, sequence)
        turn, last = turn + (token % c.capacity < last), token % c.capacity
        total += _words(view[v + row : v + row + c.v.row_bytes])
        if cell:
            blocks.add((turn, row - last % LANES * c.k.row_bytes))
        else:
            total += _words(view[row : row + c.k.row_bytes])
        total += sum(_scale(cache, view[plane + scale :]) for plane in scales if scaled)
    wide = _block_bytes(cache, cell) if cell else 0
    return total + sum(_words(view[at : at + wide]) for _, at in blocks)


def _block_bytes(cache: Cache, cell: int) -> int:
    """Whole lines, to the last cell with an element."""
    _, element = block_of(cache.dtype, cache.library)
    cells = -(-cache.struct.head_dim * element // cell)
    return -(-cells * cell * LANES // _LINE) * _LINE


def _words(data: np.ndarray) -> int:
    return int(data.view(np.uint16).sum(dtype=np.uint64))


def _scale(cache: Cache, data: np.ndarray) -> int:
    k = cache.struct.k
    wide = min(k.scale_token_stride, k.scale_head_stride)  # from one to its neighbour
    return _words(data[:wide].view(_FLOAT[wide]).astype(np.float32).view(np.uint8))
