"""An address trace: every element that a decode or a store touches, listed one by one and then
counted.

Nothing here asks the library, and nothing is computed by a formula over a shape: there are only
loops over sequences, heads and tokens, a list of addresses for each row, and sets of them. Every
plane and array is a region that begins at a cache line.
"""

import itertools
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tests.formats import CELL, LANES, PACKED, STRETCHES
from tests.oracle import Shape

LINE, FLOAT, ENTRY = 64, 4, 4
ELEMENT = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "e4m3": 1, "e5m2": 1}
SCALE = {"f32": 4, "f16": 2}
Q_ROWS = 8  # rows of q that the scalar tier serves with one load


class Trace:
    """Addresses by region. `issued`: bytes requested, counted at each request. `flops`: a
    multiply-add is two. `twin`: bytes that the pure read requests: full rows with padding, full
    lines of transposed blocks, scales, the table.
    """

    def __init__(self) -> None:
        # region -> address: elements, their size
        self._rows: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
        self._lines: dict[str, set[int]] = defaultdict(set)  # loaded beside the requested bytes
        self.issued = 0
        self.flops = 0
        self.twin = 0

    def touch(self, region: str, address: int, elements: int, size: int, times: int = 1) -> None:
        """Request `elements` neighbouring elements, `times` times."""
        known = self._rows[region].setdefault(address, (elements, size))
        self._rows[region][address] = max(known, (elements, size))
        self.issued += times * elements * size

    def load_lines(self, region: str, address: int, size: int) -> None:
        self._lines[region].update(range(address // LINE, (address + size - 1) // LINE + 1))

    def multiply_add(self, row: range) -> None:
        for _ in row:
            self.flops += 2

    def bytes_in(self, *regions: str) -> int:
        """Distinct bytes, however often they were requested."""
        return sum(len(self._addresses(region)) for region in regions)

    def lines_in(self, *regions: str) -> int:
        return sum(
            len({address // LINE for address in self._addresses(region)} | self._lines[region])
            for region in regions
        )

    def _addresses(self, region: str) -> set[int]:
        rows = self._rows.get(region, {}).items()
        found: set[int] = set()
        for address, (count, size) in rows:
            found.update(range(address, address + count * size))
        return found


class Plane:
    """The positions of the rows and scales of K or of V, in full rows or in transposed blocks."""

    def __init__(self, shape: Shape, table: np.ndarray | None, name: str) -> None:
        self.shape, self.table, self.name = shape, table, name
        side = shape.k if name == "k" else shape.v
        self.dim = side.dim
        self.packed = side.dtype in PACKED
        self.element = 1 if self.packed else ELEMENT[side.dtype]
        # requested parts of a row: elements, or the bytes of a packed row
        self.wide = side.dim
        self.bytes = 0  # from a row to the next
        if self.packed:
            self.bytes = self.wide = len(range(0, side.dim, 32)) * PACKED[side.dtype]
        while self.bytes < side.dim * self.element and not self.packed:
            self.bytes += LINE
        self.scale = SCALE[side.scale] if side.dtype == "i8" else 0
        blocks = shape.layout in ("blockt", "block16")
        self.quads = shape.layout == "block16" and name == "v"
        self.cell = CELL.get(side.dtype, 4) if blocks and name == "k" else int(self.quads)
        self.room = len(range(0, shape.capacity, LANES)) * LANES if blocks else shape.capacity

    def slot(self, token: int) -> int:
        return token % self.shape.capacity if self.shape.ring else token

    def entry(self, seq: int, token: int) -> int:
        """Position of a token's block in the table, in entries."""
        return seq * self.table.shape[1] + self.slot(token) // self.shape.block_tokens

    def place(self, seq: int, head: int, token: int) -> tuple[int, int] | None:
        """Number of rows before this one, and of stretches of heads. None if the table leaves it
        out.
        """
        shape, slot = self.shape, self.slot(token)
        if shape.layout in STRETCHES:
            stretch = seq * shape.kv_heads + head
            return stretch * self.room + slot, stretch
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
        rows, stretches = place
        return rows * self.bytes + stretches * self.shape.pad

    def touch(
        self, trace: Trace, place: tuple[int, int], times: int, scales: int, padded: bool = False
    ) -> None:
        """Request a row and its scale. `padded`: to the end of the last line."""
        wide = self.bytes // self.element if padded else self.wide
        if self.cell and self.packed:
            self.touch_packs(trace, place, times if padded else 0)
        elif self.cell:
            self.touch_cells(trace, place, range(wide * self.element), times if padded else 0)
        else:
            trace.touch(self.name, self.row(place), wide, self.element, times)
        if self.scale:
            trace.touch(f"{self.name}_scale", place[0] * self.scale, 1, self.scale, scales)

    def block(self, place: tuple[int, int]) -> tuple[int, int]:
        """The start of the row's block, and the row's position in it."""
        lane = place[0] % LANES
        return self.row(place) - lane * self.bytes, lane

    def touch_cells(
        self, trace: Trace, place: tuple[int, int], codes: range, times: int, behind: int = 0
    ) -> None:
        """Request the codes of a row, from an offset in its block on. Cells lie LANES cells apart;
        in quads each code lies beside those of three other rows.
        """
        start, lane = self.block(place)
        for code in codes[:: self.cell]:
            if self.quads:
                part, within = divmod(code, 16)
                line = part * 4 + lane // 4
                at = line * LINE + within * 4 + lane % 4
            else:
                at = code * LANES + lane * self.cell
            size = min(self.cell, codes.stop - code)
            trace.touch(self.name, start + behind + at, size, 1, times)

    def touch_packs(self, trace: Trace, place: tuple[int, int], times: int) -> None:
        """Request a packed row: its scales at the start of the block, and then its codes."""
        start, lane = self.block(place)
        packs = len(range(0, self.dim, 32))
        for pack in range(packs):
            trace.touch(self.name, start + (pack * LANES + lane) * 2, 2, 1, times)
        codes = range(self.bytes - packs * 2)
        self.touch_cells(trace, place, codes, times, packs * LANES * 2)

    def load_blocks(self, trace: Trace, of: tuple[int, int], tokens: list[int], loads: int) -> None:
        """Load one head: from every block with one of the tokens, the cells of all LANES tokens, or
        the lines of quads; all of packed rows. A block in which a ring ends and restarts is loaded
        from both sides.
        """
        step = 16 if self.quads else self.cell
        size = LANES * len(range(0, self.wide * self.element, step)) * step
        read = len(range(0, size, LINE)) * LINE
        if self.packed:
            size = read = LANES * self.bytes
        turns = {
            (token // self.shape.capacity, self.slot(token) // LANES): token for token in tokens
        }
        for token in turns.values():
            trace.issued += loads * size
            trace.twin += read
            trace.load_lines(self.name, self.block(self.place(*of, token))[0], read)

    def read_rows(self, trace: Trace, tokens: list[int], walks: int) -> None:
        """Read one head as the twin does: full rows, and scales."""
        for _ in tokens:
            trace.twin += walks * ((0 if self.cell else self.bytes) + self.scale)


def planes_of(shape: Shape, table: np.ndarray | None) -> tuple[Plane, Plane]:
    return Plane(shape, table, "k"), Plane(shape, table, "v")


@dataclass(frozen=True)
class Step:
    """Queries of a step. `attended`: for each sequence, the tokens of each query. `ranges`: the
    tokens that are walked for them, each range as its first token and one past its last.
    """

    queries: int  # of a sequence, at most
    q_heads: int
    attended: list[list[list[int]]]
    ranges: list[list[tuple[int, int]]]


def decode(
    shape: Shape,
    table: np.ndarray | None,
    step: Step,
    walks: tuple[tuple[int, int], tuple[int, int]],
) -> Trace:
    """Trace a decode. `walks`, of K and of V: query rows that one load of a row serves, and loads
    of a scale, for all query rows of a KV head.
    """
    trace, q_heads = Trace(), step.q_heads
    k, v = planes = planes_of(shape, table)
    for seq, own in enumerate(step.attended):
        ranges = [list(range(*ends)) for ends in step.ranges[seq]]
        for query, head in itertools.product(range(len(own)), range(q_heads)):
            row = (seq * step.queries + query) * q_heads + head
            trace.touch("q", row * k.dim * FLOAT, k.dim, FLOAT)
            trace.touch("out", row * v.dim * FLOAT, v.dim, FLOAT)
            for _ in own[query]:
                trace.multiply_add(range(k.dim))  # q . k
                trace.multiply_add(range(v.dim))  # out += weight * v
        if table is not None:
            for entry in {k.entry(seq, token) for tokens in ranges for token in tokens}:
                trace.touch("table", entry * ENTRY, 1, ENTRY)
                trace.twin += ENTRY
        for head in range(shape.kv_heads):
            for plane, walk in zip(planes, walks, strict=True):
                # if each query row walks alone, so do those of missing queries
                queries = step.queries if walk[0] == 1 else len(own)
                q_rows = queries * q_heads // shape.kv_heads
                for tokens in ranges:
                    read(trace, plane, (seq, head), tokens, q_rows, *walk)
    return trace


def read(
    trace: Trace,
    plane: Plane,
    of: tuple[int, int],
    tokens: list[int],
    q_rows: int,
    shared: int,
    scale_reads: int,
) -> None:
    """Read the rows of one sequence and head, in one range of tokens."""
    plane.read_rows(trace, tokens, q_rows if shared == 1 else 1)
    if plane.cell:  # never a row by itself, so rows of q beyond Q_ROWS load it again
        plane.load_blocks(trace, of, tokens, len(range(0, q_rows, min(shared, Q_ROWS))))
    for token in tokens:
        place = plane.place(*of, token)
        plane.touch(trace, place, len(range(0, q_rows, shared)), scale_reads)


def store(shape: Shape, table: np.ndarray | None, lengths, tokens: int, head_major: bool) -> Trace:
    """Store tokens from each sequence's length on. A ring keeps the last ones. Entries that the
    table leaves out are never read.
    """
    trace = Trace()
    for plane in planes_of(shape, table):
        reads = 2 if plane.scale or plane.packed else 1  # once for the scale, once for the codes
        for seq, length in enumerate(lengths):
            for token in range(tokens):
                if shape.ring and token < tokens - shape.capacity:
                    continue  # overwritten by one of this store
                for head in range(shape.kv_heads):
                    place = plane.place(seq, head, length + token)
                    if place is None:
                        continue
                    plane.touch(trace, place, 1, 1, padded=True)
                    order = (seq, head, token) if head_major else (seq, token, head)
                    inner = (shape.kv_heads, tokens) if head_major else (tokens, shape.kv_heads)
                    row = (order[0] * inner[0] + order[1]) * inner[1] + order[2]
                    source, size = f"{plane.name}_source", plane.dim * FLOAT
                    trace.touch(source, row * size, plane.dim, FLOAT, reads)
    return trace


def payload(trace: Trace, shape: Shape) -> int:
    """Bytes of stored rows that carry elements: most rows are padded to full lines."""
    return sum(
        trace.bytes_in(plane.name) // plane.bytes * plane.wide * plane.element
        for plane in planes_of(shape, None)
    )
