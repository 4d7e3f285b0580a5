"""What the layers of a room hold.

Each layer has its own bytes, so that no hypervisor merges equal pages; yet one answer serves all
layers. A layer is the first layer with some signs changed: of the same elements in all rows of K,
and of other elements in all rows of V. If a query has the signs of K changed in the same way, its
answer is the first layer's with the signs of V changed.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kvbench.model.planes import PLANES
from kvbench.native import LANES, SCALE, Cache, block_of, block_places

SEED = 1
_HALF = 16  # elements: two of q4_0 this far apart share a byte, and therefore a sign


def signs(layer: int, dim: int) -> np.ndarray:
    """[K, V][dim] of 1 and -1, dim being that of the wider rows; all 1 in the first layer."""
    if not layer:
        return np.ones((2, dim), dtype=np.float32)
    drawn = np.random.default_rng([SEED, layer]).choice(
        np.array([1, -1], np.float32), (2, -(-dim // (2 * _HALF)), 1, _HALF)
    )
    return np.repeat(drawn, 2, axis=2).reshape(2, -1)[:, :dim]


class Content:
    """Makes the bytes of layers. Floats have a sign bit. Integer codes are inverted and 1 is added.
    If a byte holds two codes, 17 is added, because they are stored with 8 added.
    """

    def __init__(self, cache: Cache) -> None:
        self._c, self._planes = cache.struct, [_Plane(cache, plane) for plane in PLANES]
        self._widest = max(cache.dims)

    def begin(self, first: np.ndarray) -> None:
        """Change the first layer so that the others can follow: with 4 bits, the least code has no
        negative.
        """
        for plane in self._planes:
            plane.begin(first)

    def make(self, layer: int, first: np.ndarray, to: np.ndarray) -> None:
        for plane, own in zip(self._planes, signs(layer, self._widest), strict=True):
            plane.make(own, first, to)
        rows = self._c.k.bytes + self._c.v.bytes
        if self._c.bytes == rows:
            return
        to[rows : self._c.bytes] = first[rows : self._c.bytes]
        if all(plane.wide_scales for plane in self._planes if plane.scaled):
            scales = to[rows : self._c.bytes].view(np.uint32)
            # The last bit is half of what a sum rounds; f16 has no bit to spare.
            scales ^= np.random.default_rng([SEED, layer]).integers(
                0, 2, scales.size, dtype=np.uint32
            )


class _Plane:
    """Rows of K or of V in the bytes of a layer."""

    def __init__(self, cache: Cache, plane: str) -> None:
        self._own, (dtype, dim) = getattr(cache.struct, plane), cache.half(plane)
        self._begin = cache.struct.k.bytes if plane == "v" else 0
        self._places = block_places(cache, plane)
        elements, size = block_of(dtype, cache.library)
        packed, by_channel = elements > 1, plane == "k" and cache.channel is not None
        whole = packed or by_channel or self.scaled
        self._halves = packed and size - SCALE < elements
        block, place = np.divmod(np.arange(self._own.row_bytes), size)
        # the element that each byte belongs to, or the first of two
        element = block * elements + (place - SCALE if packed else 0)
        self._codes = place >= (SCALE if packed else 0)
        coded = (element < dim) & self._codes
        sign = np.where(whole, 0xFF, np.where(place == size - 1, 0x80, 0))
        self._element = np.where(coded, element, 0)
        self._inverts = (coded * sign).astype(np.uint8)
        self._adds = (coded * (17 if self._halves else 1)).astype(np.uint8) if whole else None

    @property
    def scaled(self) -> bool:
        """Whether its rows have scales in a plane of their own."""
        return self._own.scale_bytes > 0

    @property
    def wide_scales(self) -> bool:
        return min(self._own.scale_token_stride, self._own.scale_head_stride) >= 4

    def begin(self, first: np.ndarray) -> None:
        if self._halves:
            rows = self._rows(first)
            codes = self._along(self._codes.astype(np.uint8), rows)
            rows += (rows & 0x0F == 0) * codes
            rows += (rows < 0x10) * codes * np.uint8(0x10)

    def make(self, signs: np.ndarray, first: np.ndarray, to: np.ndarray) -> None:
        changed, rows, found = signs[self._element] < 0, self._rows(first), self._rows(to)
        np.bitwise_xor(rows, self._along(self._inverts * changed, rows), out=found)
        if self._adds is not None:
            np.add(found, self._along(self._adds * changed, rows), out=found)

    def _rows(self, layer: np.ndarray) -> np.ndarray:
        """View the rows as [stretches][parts][bytes of some rows]. Stretches are adjacent, or
        padding lies between them. A part is a block if rows are transposed, else as many rows as
        divide evenly.
        """
        own = self._own
        step = own.seq_stride if own.head_stride < own.token_stride else own.head_stride
        whole = self._places is None
        rows = math.gcd(step // own.row_bytes, LANES) if whole else LANES
        together = rows * own.row_bytes
        shape = (own.bytes // step, step // together, together)
        return as_strided(layer[self._begin :], shape, (step, together, 1))

    def _along(self, row: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Repeat a row's bytes for as many rows as are taken at once."""
        count = rows.shape[2] // row.size
        if self._places is None:
            return np.tile(row, count)
        block = np.empty(self._places.size, row.dtype)
        block[self._places] = row
        return block
