"""What a cache takes, written down again from the formula: layer by layer, with nothing of the
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

    @property
    def row(self):
        """Bytes of the elements and of the scale of one row."""
        if self.dtype in PACKED:
            return rounded(self.head_dim, 32) // 32 * PACKED[self.dtype], 0
        return self.head_dim * ELEMENT[self.dtype], (
            ELEMENT[self.scale] if self.dtype in SCALED else 0
        )

    @property
    def padded(self):
        """Bytes from a row to the next."""
        return self.row[0] if self.dtype in PACKED else rounded(self.row[0], LINE)

    @property
    def block(self):
        """Tokens of which a sequence takes whole multiples."""
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
            2 * self.batch * self.kv_heads * min(self.context, room) * sum(self.row)
            for room in self.room()
        )

    def streamed(self):
        return sum(
            2 * self.batch * self.kv_heads * tokens * sum(self.row) for tokens in self.attended()
        )

    def allocated(self):
        return sum(map(self._allocated, self.room()))

    def _allocated(self, room):
        _, scale = self.row
        places = rounded(room, self.block)
        padding = PAD if self.pad is None else self.pad
        of_head = places * self.padded + (padding if self.layout in STRETCHES else 0)
        heads = self.batch * self.kv_heads
        return 2 * (rounded(heads * of_head, LINE) + rounded(heads * places * scale, LINE))

    def intensity(self):
        """A multiplication and an addition for each query head and element of K; and the same for
        V.
        """
        flops = self.q_heads * self.head_dim * (2 + 2)
        return flops / (2 * self.kv_heads * sum(self.row))


def rounded(count, step):
    return -(-count // step) * step
