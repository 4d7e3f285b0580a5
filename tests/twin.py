"""What a twin loads, restated in NumPy: the sum of the 16-bit words of all rows that a decode
attends to, and of the rows between. A scale counts as the float32 that it stands for.
"""

import numpy as np

from tests.formats import LANES, PACKED, STORED
from tests.oracle import LINE, Planes, Shape, Side, places, round_up, slots_of, spans


def words_of(data: np.ndarray) -> int:
    return int(np.ascontiguousarray(data).view(np.uint16).astype(np.uint64).sum())


def stretches(shape: Shape, first: int, end: int) -> list[np.ndarray]:
    """The slots of a sequence's tokens, in stretches that do not cross a ring's end."""
    slots = slots_of(shape, first, end - first)
    return np.split(slots, np.flatnonzero(np.diff(slots) < 0) + 1)


def row_words(side: Side, plane: np.ndarray, rows: np.ndarray, slots: np.ndarray) -> int:
    """Words of full rows. For a transposed side: the lines of each block in which cells or quads
    have elements, or all of a block of packed rows.
    """
    if not side.cell:
        return words_of(plane[spans(rows, side.row)])
    read = side.row * LANES
    if side.dtype not in PACKED:
        read = round_up(round_up(side.payload, 16 if side.cell == 1 else side.cell) * LANES, LINE)
    blocks = {int(at) for at in (rows - slots % LANES * side.row).ravel()}
    return sum(words_of(plane[at : at + read]) for at in blocks)


def scale_words(side: Side, plane: np.ndarray, scales: np.ndarray) -> int:
    if not side.scaled:
        return 0
    raw = np.ascontiguousarray(plane[spans(scales, side.scale_bytes)])
    return words_of(raw.view(STORED[side.scale]).astype(np.float32))


def rows_words(shape: Shape, planes: Planes, table, ranges: list[list[tuple[int, int]]]) -> int:
    """Words of all rows that a decode attends to, and of their scales. `ranges`: for each sequence,
    the first token and one past the last.
    """
    total = 0
    for seq, own in enumerate(ranges):
        for slots in (slots for each in own for slots in stretches(shape, *each)):
            if not len(slots):
                continue
            for side, (plane, scale_plane) in zip(shape.sides, planes.sides(), strict=True):
                rows, scales = places(shape, side, table, seq, slots)
                total += row_words(side, plane, rows, slots)
                total += scale_words(side, scale_plane, scales)
    return total
