"""What the kernels must compute, restated in NumPy from the raw bytes of a cache.

Nothing here asks the library: addresses come from the shape alone, rows are decoded with numpy and
ml_dtypes, and attention runs in float64. Planes are one-dimensional uint8 arrays; T tokens, H KV
heads, G query heads per KV head.
"""

from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from tests import narrow
from tests.formats import (
    BLOCK,
    LANES,
    PACKED,
    SCALED,
    STORED,
    STRETCHES,
    TRANSPOSED,
    WHOLE,
    by_channel,
    cells_of,
    from_blocks,
    quantise,
    rounded,
    to_blocks,
)
from tests.queries import ONE, Queries
from tests.scores import PLAIN, Scores, attend

LINE = 64


def round_up(n: int, to: int) -> int:
    return -(-n // to) * to


@dataclass(frozen=True)
class Side:
    """The format of K's rows, or of V's."""

    dtype: str
    dim: int
    scale: str  # of i8
    tensor: float  # factor of the codes; 0 means 1
    # bytes of a cell if the side is transposed: 1 in quads; 0: full rows
    cell: int = 0
    # float32 [H, dim], of i8: what every element is multiplied by in place of a scale of its row
    channel: np.ndarray | None = field(default=None, compare=False)

    @property
    def scaled(self) -> bool:
        """Whether rows have scales."""
        return self.dtype in SCALED and self.channel is None

    @property
    def whole(self) -> bool:
        """Whether its rows are integer codes with scales."""
        return self.dtype in WHOLE

    @property
    def block(self) -> int:
        """Elements that share one scale."""
        return BLOCK if self.dtype in PACKED else self.dim

    @property
    def payload(self) -> int:
        """Bytes of a row that carry elements; for packed rows, of full blocks."""
        if self.dtype in PACKED:
            return -(-self.dim // BLOCK) * PACKED[self.dtype]
        return self.dim * np.dtype(STORED[self.dtype]).itemsize

    @property
    def row(self) -> int:
        return self.payload if self.dtype in PACKED else round_up(self.payload, LINE)

    @property
    def scale_bytes(self) -> int:
        return np.dtype(STORED[self.scale]).itemsize if self.scaled else 0


@dataclass(frozen=True)
class Shape:
    """One layer's cache, in words and counts (as kvb_cache before planning). dtype, scale and
    head_dim are K's; V's are the same if left out.
    """

    layout: str
    dtype: str
    batch: int
    kv_heads: int
    head_dim: int
    capacity: int
    inner: str = "head"
    scale: str = "f32"
    ring: bool = False
    block_tokens: int = 16
    blocks: int = 0
    pad: int = 0
    tensor: tuple[float, float] = (0.0, 0.0)  # of K and V
    v_dtype: str = ""
    v_scale: str = ""
    v_dim: int = 0
    channel: np.ndarray | None = field(default=None, compare=False, repr=False)  # of K

    @cached_property
    def k(self) -> Side:
        cell, _ = cells_of(self.layout, self.dtype)
        return Side(self.dtype, self.head_dim, self.scale, self.tensor[0], cell, self.channel)

    @cached_property
    def v(self) -> Side:
        dtype, scale = self.v_dtype or self.dtype, self.v_scale or self.scale
        _, cell = cells_of(self.layout, dtype)
        return Side(dtype, self.v_dim or self.head_dim, scale, self.tensor[1], cell)

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.k, self.v

    @property
    def room(self) -> int:
        """Slots of a sequence, unless it uses a pool."""
        return round_up(self.capacity, LANES) if self.layout in TRANSPOSED else self.capacity

    @property
    def table_width(self) -> int:
        return -(-self.capacity // self.block_tokens)

    @property
    def rows(self) -> int:
        """Rows that a plane has room for."""
        tokens = (
            self.blocks * self.block_tokens if self.layout == "paged" else self.batch * self.room
        )
        return tokens * self.kv_heads

    def plane(self, side: Side) -> int:
        """Bytes of the side's rows."""
        pads = self.batch * self.kv_heads * self.pad if self.layout in STRETCHES else 0
        return round_up(self.rows * side.row + pads, LINE)

    def scale_plane(self, side: Side) -> int:
        return round_up(self.rows * side.scale_bytes, LINE)

    @property
    def planes(self) -> tuple[int, int, int, int]:
        """Bytes of each plane, in their order in memory."""
        return *map(self.plane, self.sides), *map(self.scale_plane, self.sides)


def places(
    shape: Shape, side: Side, table: np.ndarray | None, seq: int, slots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Byte offsets of the side's rows and of their scales, for some slots: two [H, slots] arrays;
    -1 for a negative table entry. For a transposed side: as if its rows were full.
    """
    heads = np.arange(shape.kv_heads, dtype=np.int64)[:, None]
    slots = np.asarray(slots, dtype=np.int64)[None, :]
    gone = np.zeros(slots.shape, dtype=bool)
    pads = 0
    if shape.layout in STRETCHES:
        index = (seq * shape.kv_heads + heads) * shape.room + slots
        pads = (seq * shape.kv_heads + heads) * shape.pad
    elif shape.layout == "position":
        index = (seq * shape.capacity + slots) * shape.kv_heads + heads
    else:
        physical = table[seq].astype(np.int64)[slots // shape.block_tokens]
        gone = physical < 0
        within = slots % shape.block_tokens
        if shape.inner == "head":
            index = (physical * shape.kv_heads + heads) * shape.block_tokens + within
        else:
            index = (physical * shape.block_tokens + within) * shape.kv_heads + heads
    rows, scales = index * side.row + pads, index * side.scale_bytes
    return np.where(gone, -1, rows), np.where(gone, -1, scales)


def slots_of(shape: Shape, first: int, count: int) -> np.ndarray:
    tokens = np.arange(first, first + count, dtype=np.int64)
    return tokens % shape.capacity if shape.ring else tokens


# ---- rows ----------------------------------------------------------------------------------------


def spans(offsets: np.ndarray, width: int) -> np.ndarray:
    """Indices of `width` bytes from each offset on: [..., width]."""
    return offsets[..., None] + np.arange(width)


def row_spans(side: Side, rows: np.ndarray, slots: np.ndarray, width: int) -> np.ndarray:
    """Indices of the first `width` bytes of rows, [H, slots, width]. For a transposed side, those
    of blocks of 16 rows.
    """
    if not side.cell:
        return spans(rows, width)
    lane = np.asarray(slots) % LANES
    return (rows - lane * side.row)[..., None] + block_places(side)[lane, :width]


@cache
def block_places(side: Side) -> np.ndarray:
    """[16 rows, bytes of one]: positions of the rows' bytes in a block.

    First the scales of packed rows, [packs][16 rows]; then the codes: [cells][16 rows][bytes of a
    cell], or for quads [parts of 16 codes][4 quads][16 codes][4 rows].
    """
    size = PACKED.get(side.dtype, 0)
    packs = side.row // size if size else 0
    codes = side.row - packs * 2
    behind = packs * 2 * LANES + np.arange(codes * LANES)
    if side.cell == 1:
        own = behind.reshape(codes // 16, 4, 16, 4).transpose(1, 3, 0, 2)
    else:
        own = behind.reshape(codes // side.cell, LANES, side.cell).swapaxes(0, 1)
    if not packs:
        return own.reshape(LANES, codes)
    front = np.arange(packs * LANES * 2).reshape(packs, LANES, 2).swapaxes(0, 1)
    return np.concatenate((front, own.reshape(LANES, packs, -1)), axis=2).reshape(LANES, side.row)


def decode_rows(side: Side, raw: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    """Stored rows [..., payload] as float64 [..., dim]. `scale`: the bytes of each row's scale.
    Channels may have factors [H, n, ..].
    """
    if side.dtype in PACKED:
        size = PACKED[side.dtype]
        values = from_blocks(side.dtype, raw.reshape(*raw.shape[:-1], side.payload // size, size))
        return values[..., : side.dim]
    with np.errstate(invalid="ignore"):  # signalling NaN; a code times NaN
        values = raw.view(STORED[side.dtype]).astype(np.float64)
        if side.scaled:
            values *= scale.view(STORED[side.scale]).astype(np.float64)
        if side.channel is not None:
            values *= side.channel[:, None]
        return values * (float(np.float32(side.tensor)) or 1.0)


def encode_rows(side: Side, values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """float32 [..., dim] as full rows of bytes [..., row] with zero padding, and the bytes of their
    scales or None. Channels may have factors [H, n, dim].
    """
    scale = None
    if side.dtype in PACKED:
        return to_blocks(side.dtype, values).reshape(*values.shape[:-1], side.row), None
    if side.scaled:
        codes, scale = quantise(values, side.scale)
        scale = np.ascontiguousarray(scale)[..., None].view(np.uint8)
    elif side.channel is not None:
        codes = by_channel(values, side.channel[:, None])
    else:
        with np.errstate(all="ignore"):
            codes = rounded(
                side.dtype,
                np.asarray(values, dtype=np.float32) / (np.float32(side.tensor) or np.float32(1)),
            )
    rows = np.zeros((*codes.shape[:-1], side.row), dtype=np.uint8)
    rows[..., : side.payload] = np.ascontiguousarray(codes).view(np.uint8)
    return rows, scale


@dataclass
class Planes:
    """The four planes of a cache. Scales have zero bytes if the dtype has none."""

    k: np.ndarray
    v: np.ndarray
    k_scale: np.ndarray
    v_scale: np.ndarray

    @staticmethod
    def filled(shape: Shape, byte: int) -> "Planes":
        return Planes(*(np.full(size, byte, dtype=np.uint8) for size in shape.planes))

    def all(self) -> tuple[np.ndarray, ...]:
        return self.k, self.v, self.k_scale, self.v_scale

    def sides(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Rows and scales of K, and of V."""
        return (self.k, self.k_scale), (self.v, self.v_scale)

    def copy(self) -> "Planes":
        return Planes(*(plane.copy() for plane in self.all()))


def store(
    shape: Shape, planes: Planes, table, seq: int, first: int, k: np.ndarray, v: np.ndarray
) -> None:
    """Write tokens [n, H, D] of one sequence from token `first` on, with the padding of their rows,
    and nothing else.
    """
    over = max(0, len(k) - shape.capacity)  # in a ring: overwritten by later tokens
    slots = slots_of(shape, first + over, len(k) - over)
    put(shape, planes, table, seq, slots, *(x[over:].swapaxes(0, 1) for x in (k, v)))


def put(shape: Shape, planes: Planes, table, seq: int, slots, k, v, padding: bool = True) -> None:
    """Write rows [H, slots, D] into their slots, except for negative table entries."""
    for side, (plane, scale_plane), values in zip(shape.sides, planes.sides(), (k, v), strict=True):
        rows, scales = places(shape, side, table, seq, slots)
        kept = rows[0] >= 0
        coded, scale = encode_rows(side, values[:, kept])
        width = side.row if padding else side.payload
        plane[row_spans(side, rows[:, kept], slots[kept], width)] = coded[..., :width]
        if side.scaled:
            scale_plane[spans(scales[:, kept], side.scale_bytes)] = scale


def load(
    shape: Shape, planes: Planes, table, seq: int, first: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Decoded K and V of tokens first .. first + count: two float64 [H, count, D]."""
    slots, found = slots_of(shape, first, count), []
    for side, (plane, scale_plane) in zip(shape.sides, planes.sides(), strict=True):
        rows, scales = places(shape, side, table, seq, slots)
        raw = np.ascontiguousarray(plane[row_spans(side, rows, slots, side.payload)])
        scale = np.ascontiguousarray(scale_plane[spans(scales, side.scale_bytes)])
        found.append(decode_rows(side, raw, scale))
    return found[0], found[1]


# ---- attention -----------------------------------------------------------------------------------


def v_scales(shape: Shape, planes: Planes, table, seq: int, first: int, count: int) -> np.ndarray:
    """Scales of V's rows in a format of codes: [H, count, 1]; for packed rows one for each
    block.
    """
    side, slots = shape.v, slots_of(shape, first, count)
    rows, scales = places(shape, side, table, seq, slots)
    if side.dtype in PACKED:
        raw = planes.v[row_spans(side, rows, slots, side.payload)]
        size = PACKED[side.dtype]
        raw = raw.reshape(*rows.shape, side.payload // size, size)
        return np.ascontiguousarray(raw[..., :2]).view(np.float16)[..., 0].astype(float)
    raw = np.ascontiguousarray(planes.v_scale[spans(scales, side.scale_bytes)])
    return raw.view(STORED[side.scale]).astype(float)


def practical(v: np.ndarray) -> float:
    """The tolerance for rows of unit size: an absolute error of any output. v [H, T, D]."""
    if v.size == 0:
        return 0.0
    return (2e-6 if v.shape[1] <= 4096 else 1e-5) * float(np.abs(v).max())


def decode(
    shape: Shape,
    planes: Planes,
    table,
    lengths,
    q: np.ndarray,
    window: int = 0,
    scale: float = 0.0,
    plain: bool = True,
    variant: str = "flash",
    queries: Queries = ONE,
    asked: Scores = PLAIN,
) -> tuple[np.ndarray, np.ndarray]:
    """q [B * queries, Hq, D] -> out and bound, both float64 [B * queries, Hq, Dv], for each query.

    plain: data of unit size, for which `practical` holds. variant: round16 rounds K and V to
    float16 as it loads them; dot rounds as in tests/narrow.py.
    """
    out, bound = (np.zeros((*q.shape[:2], shape.v.dim)) for _ in range(2))
    scale = scale or float(np.float32(1) / np.sqrt(np.float32(shape.head_dim)))
    for seq, length in enumerate(np.asarray(lengths).tolist()):
        ranges = queries.ranges(seq, length, window)
        tokens = np.concatenate([np.arange(*own) for own in ranges])
        found = [(table, seq, first, end - first) for first, end in ranges]
        k, v = map(joined, zip(*(load(shape, planes, *own) for own in found), strict=True))
        scales = None
        if variant == "dot" and shape.v.whole:
            scales = joined([v_scales(shape, planes, *own) for own in found])
        if variant == "round16":
            k, v = (rows.astype(np.float16).astype(np.float64) for rows in (k, v))
        for query in range(queries.count):
            at = seq * queries.count + query
            own = queries.tokens(seq, query, length, window)
            at_rows = np.searchsorted(tokens, own)
            rows = (None if x is None else x[:, at_rows] for x in (k, v, scales))
            distance = own - queries.own(seq, query, length)
            answer, limit = one(shape, q[at], *rows, scale, plain, variant, asked, distance)
            out[at], bound[at] = answer.reshape(out.shape[1:]), limit.reshape(out.shape[1:])
    return out, bound


def joined(parts) -> np.ndarray:
    """Rows of ranges of tokens joined, [H, T, ...]."""
    return np.concatenate(list(parts), axis=1)


def one(
    shape: Shape,
    q,
    k,
    v,
    scales,
    scale: float,
    plain: bool,
    variant: str,
    asked: Scores,
    distance: np.ndarray,
):
    """One query [Hq, D] over the rows that it attends to. `scales`: of V, if dot uses them.
    distance: from the query's own token to each row's token.
    """
    rounds = variant == "dot"
    own = narrow.query(shape.k, q, scale) if rounds else q
    grouped = own.reshape(shape.kv_heads, -1, shape.head_dim)
    answer, limit = attend(grouped, k, v, scale, asked, distance)
    limit = np.full_like(limit, practical(v)) if plain else limit
    if rounds and k.shape[1]:
        limit *= 1 if shape.k.whole and shape.v.whole else 2  # sums may be rounded to odd
        weights = asked.weights(asked.of(scale * (grouped @ k.swapaxes(1, 2)), distance))
        if shape.v.whole:
            limit += narrow.steps_off(weights, v, scales, plain)
        else:
            limit += narrow.bf16_off(weights, v, plain) + narrow.HALF * limit
    return answer, limit
