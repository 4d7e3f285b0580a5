"""An address trace: every element that a decode or a store touches, listed one by one and then
counted.

Nothing here asks the library, and nothing is worked out by a formula over a whole shape: loops over
sequences, heads and tokens, a list of addresses for each row, and sets of them. Every plane and
array is a region that begins on a line.
"""

from collections import defaultdict

import numpy as np

from tests.formats import CELL, LANES, PACKED
from tests.oracle import Shape

LINE, FLOAT, ENTRY = 64, 4, 4
ELEMENT = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "e4m3": 1, "e5m2": 1}
SCALE = {"f32": 4, "f16": 2}
HEADS = 8  # query heads that the scalar tier serves with one load


class Trace:
    """Addresses by region. `issued`: bytes asked for, each time they are; `flops`: a multiply and
    an add are two. `twin`: bytes that the pure read asks for: whole rows with their padding, whole
    lines of transposed blocks, scales, the table.
    """

    def __init__(self) -> None:
        # region -> address: elements, their size
        self._rows: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
        self.issued = 0
        self.flops = 0
        self.twin = 0

    def touch(self, region: str, address: int, elements: int, size: int, times: int = 1) -> None:
        """`elements` side by side, asked for `times` times."""
        known = self._rows[region].setdefault(address, (elements, size))
        self._rows[region][address] = max(known, (elements, size))
        self.issued += times * elements * size

    def multiply_add(self, row: range) -> None:
        for _ in row:
            self.flops += 2

    def bytes_in(self, *regions: str) -> int:
        """Different bytes, however often they were asked for."""
        return sum(len(self._addresses(region)) for region in regions)

    def lines_in(self, *regions: str) -> int:
        return sum(
            len({address // LINE for address in self._addresses(region)}) for region in regions
        )

    def _addresses(self, region: str) -> set[int]:
        rows = self._rows.get(region, {}).items()
        found: set[int] = set()
        for address, (count, size) in rows:
            found.update(range(address, address + count * size))
        return found


class Layout:
    """Where rows and scales of a cache lie: K, and V alike, but for a K that is transposed."""

    def __init__(self, shape: Shape, table: np.ndarray | None) -> None:
        self.shape, self.table = shape, table
        self.packed = shape.dtype in PACKED
        self.element = 1 if self.packed else ELEMENT[shape.dtype]
        # what is asked for of a row: elements, or the bytes of a packed one
        self.wide = shape.head_dim
        self.bytes = 0  # from a row to the next
        if self.packed:
            self.bytes = self.wide = len(range(0, shape.head_dim, 32)) * PACKED[shape.dtype]
        while self.bytes < shape.head_dim * self.element and not self.packed:
            self.bytes += LINE
        self.scale = SCALE[shape.scale] if shape.dtype == "i8" else 0
        self.cell = CELL[shape.dtype] if shape.layout == "blockt" else 0
        self.room = len(range(0, shape.capacity, LANES)) * LANES if self.cell else shape.capacity

    def slot(self, token: int) -> int:
        return token % self.shape.capacity if self.shape.ring else token

    def entry(self, seq: int, token: int) -> int:
        """Place of a token's block in the table, counted in entries."""
        return seq * self.table.shape[1] + self.slot(token) // self.shape.block_tokens

    def place(self, seq: int, head: int, token: int) -> tuple[int, int] | None:
        """How many rows lie before this one, and how many planes of heads. None where the table
        leaves it out.
        """
        shape, slot = self.shape, self.slot(token)
        if shape.layout == "head" or self.cell:
            plane = seq * shape.kv_heads + head
            return plane * self.room + slot, plane
        if shape.layout == "position":
            return (seq * shape.capacity + slot) * shape.kv_heads + head, 0
        block, within = int(self.table.flat[self.entry(seq, token)]), slot % shape.block_tokens
        if block < 0:
            return None
        before = block * shape.block_tokens * shape.kv_heads
        inside = (
            head * shape.block_tokens + within
            if shape.inner == "head"
            else within * shape.kv_heads + head
        )
        return before + inside, 0

    def row(self, place: tuple[int, int]) -> int:
        rows, planes = place
        return rows * self.bytes + planes * self.shape.pad

    def touch(
        self, trace: Trace, place: tuple[int, int], times: int, scales: int, padded: bool = False
    ) -> None:
        """A row of K and one of V, and their scales. `padded`: to the end of the last line."""
        wide = self.bytes // self.element if padded else self.wide
        for plane in ("k", "v"):
            if plane == "k" and self.cell:
                self.touch_cells(trace, place, wide * self.element, times if padded else 0)
            else:
                trace.touch(plane, self.row(place), wide, self.element, times)
            if self.scale:
                trace.touch(f"{plane}_scale", place[0] * self.scale, 1, self.scale, scales)

    def touch_cells(self, trace: Trace, place: tuple[int, int], wide: int, times: int) -> None:
        """A row of K whose cells lie LANES cells apart."""
        lane = place[0] % LANES
        block = self.row(place) - lane * self.bytes
        for byte in range(0, wide, self.cell):
            trace.touch(
                "k", block + byte * LANES + lane * self.cell, min(self.cell, wide - byte), 1, times
            )

    def load_blocks(self, trace: Trace, tokens: list[int], loads: int) -> None:
        """One head: of every block that one of the tokens lies in, all LANES tokens' cells with
        elements. A block in which a ring ends and begins anew is taken from both sides.
        """
        cells = len(range(0, self.wide * self.element, self.cell))
        lines = len(range(0, LANES * cells * self.cell, LINE))
        turns = {(token // self.shape.capacity, self.slot(token) // LANES) for token in tokens}
        for _ in turns:
            trace.issued += loads * LANES * cells * self.cell
            trace.twin += LINE * lines

    def read_rows(self, trace: Trace, tokens: list[int], walks: int) -> None:
        """One head, by the twin: rows of V, and of K that is not transposed, and the scales of
        both.
        """
        planes = 1 if self.cell else 2
        for _ in tokens:
            trace.twin += walks * (planes * self.bytes + 2 * self.scale)


def decode(
    shape: Shape,
    table: np.ndarray | None,
    lengths,
    q_heads: int,
    window: int,
    shared: int,
    scale_reads: int,
) -> Trace:
    """`shared`: query heads that one load of a row serves. `scale_reads`: of a scale, for all of a
    KV head's group.
    """
    trace, layout, group = Trace(), Layout(shape, table), q_heads // shape.kv_heads
    elements = range(shape.head_dim)
    for seq, length in enumerate(lengths):
        tokens = [token for token in range(length) if not window or token >= length - window]
        for query in range(q_heads):
            for array in ("q", "out"):
                trace.touch(
                    array, (seq * q_heads + query) * shape.head_dim * FLOAT, shape.head_dim, FLOAT
                )
            for _ in tokens:
                trace.multiply_add(elements)  # q . k
                trace.multiply_add(elements)  # out += weight * v
        if table is not None:
            for entry in {layout.entry(seq, token) for token in tokens}:
                trace.touch("table", entry * ENTRY, 1, ENTRY)
                trace.twin += ENTRY
        for head in range(shape.kv_heads):
            loads = len(range(0, group, shared))
            layout.read_rows(trace, tokens, group if shared == 1 else 1)
            if layout.cell:  # never a row by itself, so heads beyond HEADS load it again
                layout.load_blocks(trace, tokens, len(range(0, group, min(shared, HEADS))))
            for token in tokens:
                layout.touch(trace, layout.place(seq, head, token), loads, scale_reads)
    return trace


def store(shape: Shape, table: np.ndarray | None, lengths, tokens: int, head_major: bool) -> Trace:
    """Tokens from each sequence's length on. A ring keeps the last ones; what the table leaves out
    is never read.
    """
    trace, layout = Trace(), Layout(shape, table)
    reads = 2 if layout.scale or layout.packed else 1  # once for the scale, once for the codes
    for seq, length in enumerate(lengths):
        for token in range(tokens):
            if shape.ring and token < tokens - shape.capacity:
                continue  # overwritten by one of this store
            for head in range(shape.kv_heads):
                place = layout.place(seq, head, length + token)
                if place is None:
                    continue
                layout.touch(trace, place, 1, 1, padded=True)
                order = (seq, head, token) if head_major else (seq, token, head)
                inner = (shape.kv_heads, tokens) if head_major else (tokens, shape.kv_heads)
                row = (order[0] * inner[0] + order[1]) * inner[1] + order[2]
                for source in ("k_source", "v_source"):
                    trace.touch(source, row * shape.head_dim * FLOAT, shape.head_dim, FLOAT, reads)
    return trace


def payload(trace: Trace, shape: Shape) -> int:
    """Bytes of stored rows that carry elements: most rows are padded to whole lines."""
    layout = Layout(shape, None)
    rows = trace.bytes_in("k", "v") // layout.bytes
    return rows * layout.wide * layout.element
