"""The size of a cache, computed again from the formula: layer by layer, with nothing of the
package.
"""

from dataclasses import dataclass

from tests.formats import PACKED, STRETCHES, TRANSPOSED

LINE = 64
ELEMENT = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "e4m3": 1, "e5m2": 1}
SCALED = {"i8"}
PAD = 5 * LINE  # the library's


@dataclass
class Case:
    layers: int
    q_heads: int
    kv_heads: int
    head_dim: int
    context: int
    batch: int = 1
    dtype: str = "f16"
    scale: str = "f32"
    layout: str = "head"
    inner: str = "head"
    block_tokens: int = 16
    window: int = 0
    window_every: int = 0
    ephemeral: int = 0
    capacity: int | None = None
    pad: int | None = None
    v_dim: int = 0
    k_scale: str = "token"

    @property
    def rows(self):
        """Bytes of the elements and of the scale of a row of K, and of one of V."""
        k, _, v = self.dtype.partition("+")
        sides = (k, self.head_dim), (v or k, self.v_dim or self.head_dim)
        (k, scale), of_v = (self._row(*side) for side in sides)
        return (k, 0 if self.k_scale == "channel" else scale), of_v

    def _row(self, dtype, dim):
        if dtype in PACKED:
            return rounded(dim, 32) // 32 * PACKED[dtype], 0
        return dim * ELEMENT[dtype], ELEMENT[self.scale] if dtype in SCALED else 0

    @property
    def padded(self):
        """Bytes from a row to the next, of K and of V."""
        k, _, v = self.dtype.partition("+")
        return [
            row if dtype in PACKED else rounded(row, LINE)
            for dtype, (row, _) in zip((k, v or k), self.rows, strict=True)
        ]

    @property
    def row_bytes(self):
        """Bytes of a token, K and V together."""
        return sum(map(sum, self.rows))

    @property
    def block(self):
        """A sequence takes a multiple of this many tokens."""
        if self.layout == "paged":
            return self.block_tokens
        return 16 if self.layout in TRANSPOSED else 1

    def attended(self):
        """Tokens that a decode reads in each layer that stays. Of every `window_every` the last one
        attends to all.
        """
        for number in range(1, self.layers - self.ephemeral + 1):
            everything = not self.window or self.window_every and number % self.window_every == 0
            yield self.context if everything else min(self.window, self.context)

    def room(self):
        return [self.capacity or tokens for tokens in self.attended()]

    def bytes(self):
        return sum(
            self.batch * self.kv_heads * min(self.context, room) * self.row_bytes
            for room in self.room()
        )

    def streamed(self):
        return sum(
            self.batch * self.kv_heads * tokens * self.row_bytes for tokens in self.attended()
        )

    def allocated(self):
        return sum(map(self._allocated, self.room()))

    def _allocated(self, room):
        places = rounded(room, self.block)
        padding = PAD if self.pad is None else self.pad
        heads, found = self.batch * self.kv_heads, 0
        for padded, (_, scale) in zip(self.padded, self.rows, strict=True):
            of_head = places * padded + (padding if self.layout in STRETCHES else 0)
            found += rounded(heads * of_head, LINE) + rounded(heads * places * scale, LINE)
        return found

    def intensity(self):
        """A multiplication and an addition for each query head and element of K; and the same for
        V.
        """
        flops = 2 * self.q_heads * (self.head_dim + (self.v_dim or self.head_dim))
        return flops / (self.kv_heads * self.row_bytes)


def rounded(count, step):
    return -(-count // step) * step
