"""What the layers of a room hold.

Each layer holds bytes of its own, so that no hypervisor keeps two pages as one; and yet one answer
serves all: a layer is the first one with some signs changed, of the same elements in all rows of K,
of others in all rows of V. A query with the signs of K changed in the same way gets the first
layer's answer, with those of V changed.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kvbench.native import LANES, Cache, block_of

SEED = 1
_HALF = 16  # elements: so far apart two of q4_0 share a byte, and therefore a sign
_SCALE = 2  # bytes before the codes of a packed block


def signs(layer: int, head_dim: int) -> np.ndarray:
    """[K, V][head_dim] of 1 and -1; all 1 in the first layer."""
    if not layer:
        return np.ones((2, head_dim), dtype=np.float32)
    drawn = np.random.default_rng([SEED, layer]).choice(
        np.array([1, -1], np.float32), (2, -(-head_dim // (2 * _HALF)), 1, _HALF)
    )
    return np.repeat(drawn, 2, axis=2).reshape(2, -1)[:, :head_dim]


class Content:
    """Layers of a cache's kind as bytes. Floats have a bit for the sign; codes of whole numbers are
    inverted, and 1 is added; or 17 where a byte holds two of them, for these are stored with 8
    added.
    """

    def __init__(self, cache: Cache) -> None:
        self._c, (elements, size) = cache.struct, block_of(cache.dtype, cache.library)
        self._cell, self._size = cache.library.cell(cache.layout, cache.dtype), size
        packed, whole = elements > 1, elements > 1 or self._c.k.scale_bytes > 0
        self._halves = packed and size - _SCALE < elements
        block, place = np.divmod(np.arange(self._c.k.row_bytes), size)
        # that a byte is of, or the first of those
        element = block * elements + (place - _SCALE if packed else 0)
        coded = (element < self._c.head_dim) & (place >= (_SCALE if packed else 0))
        sign = np.where(whole, 0xFF, np.where(place == size - 1, 0x80, 0))
        self._element = np.where(coded, element, 0)
        self._inverts = (coded * sign).astype(np.uint8)
        self._adds = (coded * (17 if self._halves else 1)).astype(np.uint8) if whole else None

    def begin(self, first: np.ndarray) -> None:
        """Makes the first layer one that the others can follow: of 4 bits, the least code is no
        other one's negative.
        """
        for rows in self._planes(first) if self._halves else ():
            codes = rows.reshape(*rows.shape[:2], -1, self._size)[..., _SCALE:]
            codes += codes & 0x0F == 0
            codes += (codes < 0x10) * np.uint8(0x10)

    def make(self, layer: int, first: np.ndarray, to: np.ndarray) -> None:
        changed = signs(layer, self._c.head_dim)[:, self._element] < 0
        for side, (rows, found) in enumerate(
            zip(self._planes(first), self._planes(to), strict=True)
        ):
            np.bitwise_xor(rows, self._along(self._inverts * changed[side], side, rows), out=found)
            if self._adds is not None:
                np.add(found, self._along(self._adds * changed[side], side, rows), out=found)
        if self._c.k.scale_bytes:
            own = slice(self._c.k.bytes + self._c.v.bytes, self._c.bytes)
            to[own] = first[own]
            # f16 has no bit to spare
            if min(self._c.k.scale_token_stride, self._c.k.scale_head_stride) >= 4:
                scales = to[own].view(np.uint32)  # whose last bit is half of what a sum rounds
                scales ^= np.random.default_rng([SEED, layer]).integers(
                    0, 2, scales.size, dtype=np.uint32
                )

    def _planes(self, layer: np.ndarray) -> list[np.ndarray]:
        """K and V as [stretches][parts][bytes of some rows]; stretches are side by side, or what
        pads lies between. Rows are those of a block where K is transposed, else as many as leave
        nothing over.
        """
        found, begin = [], 0
        for side, plane in enumerate((self._c.k, self._c.v)):
            step = plane.seq_stride if plane.head_stride < plane.token_stride else plane.head_stride
            rows = LANES if side == 0 and self._cell else math.gcd(step // plane.row_bytes, LANES)
            together = rows * plane.row_bytes
            shape = (plane.bytes // step, step // together, together)
            found.append(as_strided(layer[begin:], shape, (step, together, 1)))
            begin += plane.bytes
        return found

    def _along(self, row: np.ndarray, side: int, rows: np.ndarray) -> np.ndarray:
        """Bytes for a row, for as many rows as are taken at once."""
        count = rows.shape[2] // row.size
        if side == 0 and self._cell:
            return np.repeat(row.reshape(-1, 1, self._cell), count, axis=1).ravel()
        return np.tile(row, count)
