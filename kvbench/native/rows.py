"""How the rows of a cache are stored, as described at kvb_cache in abi.h."""

import itertools
from functools import cache as once

import numpy as np

from kvbench.model.planes import PLANES
from kvbench.native.cache import Cache
from kvbench.native.library import Library

_LINE = 64
LANES = 16  # tokens in a block with transposed rows
SCALE = 2  # bytes of the scale in front of the codes of a packed row's part
_SIDE, _TOGETHER = 16, 4  # codes and tokens of a quad


@once
def block_of(dtype: str, library: Library | None = None) -> tuple[int, int]:
    """Elements and bytes of the smallest unit of a row: one element, or a packed row's part. Rows
    of single elements fill whole cache lines.
    """

    def row(elements: int) -> int:
        return Cache.planned(1, elements, 1, dtype=dtype, library=library).k.row_bytes

    if row(1) % _LINE == 0:
        return 1, row(_LINE) // _LINE  # elements that fill lines exactly
    return next(count for count in itertools.count(1) if row(count + 1) > row(1)), row(1)


def packed(count: int, dtype: str) -> int:
    """Bytes of `count` elements."""
    elements, size = block_of(dtype)
    return -(-count // elements) * size


def plane_bytes(
    cache: Cache, token: int, head: int, sequence: int = 0, plane: str = "k"
) -> np.ndarray:
    """The offset in the plane of each byte of a token's row, which may be transposed."""
    own, row = getattr(cache.struct, plane), cache.place(token, head, sequence, plane)[0]
    places = block_places(cache, plane)
    if places is None:
        return row + np.arange(own.row_bytes)
    lane = token % cache.struct.capacity % LANES
    return row - lane * own.row_bytes + places[lane]


def block_places(cache: Cache, plane: str) -> np.ndarray | None:
    """[LANES rows][bytes of one row]: byte offsets in a block; None if the plane's rows are not
    transposed.
    """
    dtype, row_bytes = cache.half(plane)[0], getattr(cache.struct, plane).row_bytes
    cell = cache.library.cell(cache.layout, dtype, plane)
    if not cell:
        return None
    elements, size = block_of(dtype, cache.library)
    lane, byte = np.arange(LANES)[:, None], np.arange(row_bytes)
    if elements == 1:
        return _code_places(byte, lane, cell)
    pack, within = np.divmod(byte, size)
    codes = _code_places(byte - SCALE * (pack + 1), lane, cell)
    scales = (pack * LANES + lane) * SCALE + within
    return np.where(within < SCALE, scales, row_bytes // size * SCALE * LANES + codes)


def _code_places(code: np.ndarray, lane: np.ndarray, cell: int) -> np.ndarray:
    if cell > 1:
        return (code // cell * LANES + lane) * cell + code % cell
    line = code // _SIDE * (LANES // _TOGETHER) + lane // _TOGETHER
    return line * _LINE + code % _SIDE * _TOGETHER + lane % _TOGETHER


def token_bytes(cache: Cache, token: int, head: int, sequence: int = 0) -> list[np.ndarray]:
    """The offsets in a cache's memory of a token's bytes of K and V, and of their scales if rows
    have any.
    """
    found, begin = list[np.ndarray](), 0
    planes = [getattr(cache.struct, plane) for plane in PLANES]
    for plane, own in zip(PLANES, planes, strict=True):
        found.append(begin + plane_bytes(cache, token, head, sequence, plane))
        begin += own.bytes
    for plane, own in zip(PLANES, planes, strict=True):
        if own.scale_bytes:
            # Scales lie side by side in both orders.
            width = min(own.scale_token_stride, own.scale_head_stride)
            found.append(begin + cache.place(token, head, sequence, plane)[1] + np.arange(width))
            begin += own.scale_bytes
    return found
