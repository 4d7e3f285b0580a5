"""Random cases: a cache with its rows, one decode over it and one store into it. A seed and an
index give a case.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from tests import formats, oracle, queries, scores
from tests.oracle import Planes, Shape
from tests.queries import ONE, Queries
from tests.scores import PLAIN, Scores

EDGES = (16, 32, 64, 128, 256, 512, 1024)  # tiles, least units
BLOCKS = (1, 2, 3, 5, 7, 8, 16, 32, 33, 64, 100, 128, 256)
QUERIES = (2, 2, 3, 4, 4, 5, 8, 16, queries.MOST)  # of a step
GARBAGE = 1 << 30  # a table entry that must not be followed


@dataclass
class Words:
    """The lists to draw from, asked from a library."""

    layout: list[str]
    inner: list[str]
    dtype: list[str]
    scale: list[str]
    variant: list[str]
    schedule: list[str]
    # variant, layout, dtype and tier of decode, where it runs here
    kernels: set[tuple[str, str, str, str]]

    @staticmethod
    def of(raw) -> "Words":
        lists = (raw.words(name) for name in Words.__dataclass_fields__ if name != "kernels")
        found = [k for k in raw.kernels() if k["op"] == "decode" and k["runnable"]]
        return Words(*lists, {(k["variant"], k["layout"], k["dtype"], k["isa"]) for k in found})

    def runs(self, variant: str, shape: Shape, isa: str) -> bool:
        """Whether a tier has the variant for K and V of the shape: a half for each. The list of
        kernels has only equal K and V. V is stored in full rows if it is not in quads.
        """
        k, v = shape.k.dtype, shape.v.dtype
        of_v = shape.layout if shape.v.cell else "head"
        halves = {(variant, shape.layout, k, isa), (variant, of_v, v, isa)}
        return halves <= self.kernels and (k == v or variant != "perhead")

    def variants(self, shape: Shape) -> list[str]:
        """The variants that some tier has."""
        tiers = {kernel[3] for kernel in self.kernels}
        return [word for word in self.variant if any(self.runs(word, shape, isa) for isa in tiers)]

    def dtypes(self, layout: str) -> list[str]:
        """The dtypes of K."""
        have = {kernel[1:3] for kernel in self.kernels}
        return [word for word in self.dtype if (layout, word) in have]

    def v_dtypes(self, layout: str) -> list[str]:
        return [word for word in self.dtype if layout != "block16" or word in formats.CODES]


@dataclass
class Store:
    """Tokens to store in every sequence, from `lengths` on. One token may go through append."""

    lengths: np.ndarray
    table: np.ndarray | None
    tokens: int
    append: bool
    head_major: int
    nt: int
    k: np.ndarray = field(repr=False)  # [B, tokens, H, D]
    v: np.ndarray = field(repr=False)  # [B, tokens, H, Dv]


@dataclass
class Case:
    seed: int
    index: int
    shape: Shape
    lengths: np.ndarray
    table: np.ndarray | None = field(repr=False)
    q_heads: int
    window: int
    variant: str
    schedule: str
    threads: int
    deterministic: int
    guard: int
    fill: int  # byte that stands wherever no live element does
    kind: str
    scale: float
    evicted: bool  # rows that are not attended hold garbage
    planes: Planes = field(repr=False)
    q: np.ndarray = field(repr=False)  # [B * queries, Hq, D]
    store: Store | None
    queries: Queries = ONE
    scores: Scores = PLAIN

    @property
    def name(self) -> str:
        return f"{self.seed}:{self.index}"

    @property
    def spans(self) -> list[tuple[int, int]]:
        """For each sequence: the first token that any query attends to, and one past the last."""
        return self.queries.spans(self.lengths, self.window)

    @property
    def ranges(self) -> list[list[tuple[int, int]]]:
        """As spans, but split in two if tokens between the first ones and the others are left
        out.
        """
        held = enumerate(self.lengths.tolist())
        return [self.queries.ranges(seq, length, self.window) for seq, length in held]

    @property
    def q_rows(self) -> int:
        """Query rows of one KV head."""
        return self.queries.count * self.q_heads // self.shape.kv_heads

    @property
    def out(self) -> tuple[int, int, int]:
        """[B * queries, Hq, Dv]"""
        return self.shape.batch * self.queries.count, self.q_heads, self.shape.v.dim


def chance(rng, share: float) -> bool:
    return bool(rng.random() < share)


def pick(rng, values):
    return values[int(rng.integers(len(values)))]


def between(rng, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def widths(rng) -> int:
    """Widths of heads as models have them: 40 to 256 in steps of 8."""
    return 8 * between(rng, 5, 32)


def draw_sizes(rng) -> dict[str, int]:
    """Draw batch, kv_heads, group, head_dim, tokens and queries, within a budget of score elements
    times D.
    """
    style = rng.random()
    tokens = between(rng, 1, 140)
    if style < 0.3:
        tokens = max(1, pick(rng, EDGES) + between(rng, -1, 1))
    elif style < 0.42:
        tokens = between(rng, 141, 5000)
    sizes = {
        "batch": pick(rng, (1, 1, 1, 2, 2, 3, 5)),
        "kv_heads": pick(rng, (1, 1, 2, 2, 3, 4, 8)),
        "group": pick(rng, (1, 1, 2, 3, 4, 5, 6, 7, 8, between(rng, 9, 64))),
        "head_dim": pick(
            rng,
            (64, 80, 96, 128, 256, between(rng, 1, 24), between(rng, 1, 320), widths(rng)),
        ),
        "tokens": tokens,
        "queries": 1 if chance(rng, 0.6) else pick(rng, (*QUERIES, between(rng, 2, queries.MOST))),
    }
    if chance(rng, 0.1):
        sizes["tokens"] = min(sizes["tokens"], between(rng, 1, sizes["queries"]))
    budget = pick(rng, (3e5,) * 14 + (1e6,) * 5 + (8e6,))
    while np.prod(list(sizes.values()), dtype=float) > budget:
        name = pick(rng, list(sizes))
        sizes[name] = max(1, int(sizes[name] * rng.uniform(0.4, 0.95)))
    return sizes


def draw_lengths(rng, batch: int, tokens: int) -> np.ndarray:
    """Draw different lengths, one of them `tokens`, and now and then 0."""
    lengths = [tokens] + [
        between(rng, 0 if chance(rng, 0.3) else min(1, tokens), tokens) for _ in range(batch - 1)
    ]
    return rng.permutation(np.array(lengths, dtype=np.int64))


def draw_table(rng, shape: Shape) -> np.ndarray:
    """Draw distinct physical blocks for all entries, in order or shuffled."""
    entries = shape.batch * shape.table_width
    blocks = rng.permutation(shape.blocks)[:entries] if chance(rng, 0.7) else np.arange(entries)
    return blocks.astype(np.int32).reshape(shape.batch, shape.table_width)


def draw_v(
    rng, words: Words, layout: str, dtype: str, scale: str, head_dim: int
) -> dict[str, str | int]:
    """Draw V; now and then with another dtype than K's, other scales, or another width."""
    dims = (1, 16, 64, max(1, head_dim // 2), between(rng, 1, head_dim), min(320, 2 * head_dim))
    dims += (widths(rng),)
    return {
        "v_dtype": pick(rng, words.v_dtypes(layout)) if chance(rng, 0.2) else dtype,
        "v_scale": pick(rng, words.scale) if chance(rng, 0.2) else scale,
        "v_dim": pick(rng, dims) if chance(rng, 0.2) else head_dim,
    }


def draw_tensor(rng, *dtypes: str) -> tuple[float, float]:
    """Draw the factors of K's and V's codes, if their dtypes have a scale for the whole tensor."""
    given = chance(rng, 0.5)
    drawn = [float(np.float32(10 ** rng.uniform(-1.5, 1.5))) for _ in dtypes]
    k, v = (
        scale if given and dtype in formats.MOST else 0.0
        for scale, dtype in zip(drawn, dtypes, strict=True)
    )
    return k, v


def draw_channel(rng, kv_heads: int, head_dim: int) -> np.ndarray:
    """Draw scales of i8 channels, so small that some elements of unit rows are clamped."""
    sizes = 10 ** rng.uniform(-0.7, 0.7, (kv_heads, head_dim)) * 3 / 127
    return sizes.astype(np.float32)


def draw_shape(rng, words: Words, sizes: dict[str, int], held: int, ring: bool) -> Shape:
    """Draw a shape with room for `held` tokens, often for no more."""
    layout, block = pick(rng, words.layout), pick(rng, (*BLOCKS, between(rng, 1, 256)))
    capacity = max(1, held + pick(rng, (0, 0, 0, 1, 5, between(rng, 1, 70))))
    width, dtype, scale = (
        -(-capacity // block),
        pick(rng, words.dtypes(layout)),
        pick(rng, words.scale),
    )
    by_channel = dtype in formats.SCALED and chance(rng, 0.4)
    own = draw_v(rng, words, layout, dtype, scale, sizes["head_dim"])
    return Shape(
        layout=layout,
        inner=pick(rng, words.inner),
        dtype=dtype,
        scale=scale,
        tensor=draw_tensor(rng, dtype, own["v_dtype"]),
        channel=draw_channel(rng, sizes["kv_heads"], sizes["head_dim"]) if by_channel else None,
        **own,
        batch=sizes["batch"],
        kv_heads=sizes["kv_heads"],
        head_dim=sizes["head_dim"],
        capacity=capacity,
        ring=ring,
        block_tokens=block,
        blocks=sizes["batch"] * width + between(rng, 0, 3),
        pad=64 * pick(rng, (0, 1, 5, 8)),
    )


def draw_rows(
    rng, kind: str, shape: Shape, count: int, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw K and V [H, count, D] as float32; may change q [Hq, D] in place."""
    k, v = (
        rng.standard_normal((shape.kv_heads, count, side.dim), dtype=np.float32)
        for side in shape.sides
    )
    if kind == "steep":  # scores of up to about 1e4
        q *= np.float32(10 ** rng.uniform(1, 4))
    elif kind == "equal":  # all scores the same
        k[:] = k[:, :1]
    elif kind == "single":  # one token takes all
        k[:, between(rng, 0, count - 1)] *= 50
    elif kind == "skewed":
        v *= np.float32(10) ** rng.uniform(-4, 3, size=v.shape).astype(np.float32)
    elif kind == "zero":
        k[:] = 0
        v[:, ::2] = 0
    return k, v


def fill_rows(rng, case: Case) -> None:
    """Write the live rows into the planes: only elements and scales, so that padding keeps its
    fill.
    """
    shape = case.shape
    q = case.q.reshape(shape.batch, -1, shape.head_dim)
    for seq, (length, ranges) in enumerate(zip(case.lengths.tolist(), case.ranges, strict=True)):
        if not case.evicted:
            ranges = [(max(0, length - shape.capacity), length)]
        first, end = ranges[0][0], ranges[-1][1]
        if first == end:
            continue
        data = draw_rows(rng, case.kind, shape, end - first, q[seq])
        for start, stop in ranges:
            slots = oracle.slots_of(shape, start, stop - start)
            rows = (side[:, start - first : stop - first] for side in data)
            oracle.put(shape, case.planes, case.table, seq, slots, *rows, padding=False)


def dead_entries(rng, case: Case) -> None:
    """Make table entries that no attended token needs point nowhere."""
    alive = np.zeros(case.table.shape, dtype=bool)
    for seq, ranges in enumerate(case.ranges):
        for first, end in ranges:
            slots = oracle.slots_of(case.shape, first, end - first)
            alive[seq, slots // case.shape.block_tokens] = True
    case.table[~alive] = pick(rng, (-1, GARBAGE))


def draw_source(rng, shape: tuple[int, ...]) -> np.ndarray:
    """Draw float32 rows to store: of unit size, or with extreme exponents, infinities and
    subnormals (no NaN).
    """
    values = rng.standard_normal(shape, dtype=np.float32)
    style = rng.random()
    if style < 0.3:
        with np.errstate(over="ignore", under="ignore"):
            values *= np.exp2(rng.uniform(-45, 20, size=shape)).astype(np.float32)
        wild = rng.random(shape) < 0.02
        values[wild] = rng.choice(
            np.array([np.inf, -np.inf, 0.0, -0.0, 1e-42, 65520, 65519.996, 3e38], np.float32),
            size=int(wild.sum()),
        )
    elif style < 0.4:
        values[:] = 0
    return values


def draw_store(rng, case: Case) -> Store:
    shape = case.shape
    append = chance(rng, 0.4)
    widest = max(side.dim for side in shape.sides)
    limit = max(1, int(60000 / (shape.batch * shape.kv_heads * widest)))
    tokens = 1 if append else between(rng, 1, min(limit, shape.capacity * (2 if shape.ring else 1)))
    top = 3 * shape.capacity if shape.ring else shape.capacity - tokens
    lengths = np.array([between(rng, 0, top) for _ in range(shape.batch)], dtype=np.int64)
    table = None
    if shape.layout == "paged":
        table = draw_table(rng, shape)
        table[rng.random(table.shape) < pick(rng, (0, 0, 0.2))] = -1
    k, v = (
        draw_source(rng, (shape.batch, tokens, shape.kv_heads, side.dim)) for side in shape.sides
    )
    return Store(
        lengths,
        table,
        tokens,
        append,
        0 if append else between(rng, 0, 1),
        between(rng, 0, 1),
        k,
        v,
    )


def room_for(lengths: np.ndarray, asked: Queries, window: int, ring: bool) -> int:
    """Tokens that a cache needs room for: a ring from the first attended token on; all tokens if
    the first ones are kept.
    """
    if not ring or asked.kept:
        return int(lengths.max())
    spans = zip(lengths.tolist(), asked.spans(lengths, window), strict=True)
    return max((length - first for length, (first, end) in spans if end), default=0)


def draw_kept(rng, tokens: int) -> int:
    """Draw a few kept tokens, or so many that they may meet the window."""
    return between(rng, 1, 8) if chance(rng, 0.5) else between(rng, 1, tokens + 5)


def make(words: Words, seed: int, index: int) -> Case:
    rng = np.random.default_rng([seed, index])
    sizes, ring = draw_sizes(rng), chance(rng, 0.2)
    lengths = draw_lengths(rng, sizes["batch"], sizes["tokens"])
    one = chance(rng, 0.85)
    asked = ONE if sizes["queries"] == 1 and one else queries.draw(rng, lengths, sizes["queries"])
    window = 0 if chance(rng, 0.2 if ring else 0.5) else between(rng, 1, sizes["tokens"] + 5)
    if window and chance(rng, 0.3):
        asked = replace(asked, kept=draw_kept(rng, sizes["tokens"]))
    shape = draw_shape(rng, words, sizes, room_for(lengths, asked, window, ring), ring)
    fill = pick(rng, (0xFF, 0xFF, 0x7F))
    case = Case(
        seed,
        index,
        shape,
        lengths,
        draw_table(rng, shape) if shape.layout == "paged" else None,
        q_heads=sizes["kv_heads"] * sizes["group"],
        window=window,
        variant=pick(rng, words.variants(shape)),
        schedule=pick(rng, words.schedule),
        threads=pick(rng, (1, 1, 1, 1, 2, 2, 3, 4)),
        deterministic=int(chance(rng, 0.3)),
        guard=between(rng, 1, 2),
        fill=fill,
        scale=(
            0.0
            if chance(rng, 0.7)
            else float(np.float32(rng.uniform(0.5, 1.5) / shape.head_dim**0.5))
        ),
        kind=(
            "plain"
            if chance(rng, 0.75)
            else pick(rng, ("steep", "equal", "single", "skewed", "zero"))
        ),
        evicted=chance(rng, 0.5),
        planes=Planes.filled(shape, fill),
        store=None,
        q=rng.standard_normal(
            (shape.batch * asked.count, sizes["kv_heads"] * sizes["group"], shape.head_dim),
            dtype=np.float32,
        ),
        queries=asked,
        scores=scores.draw(rng, sizes["kv_heads"] * sizes["group"], sizes["tokens"]),
    )
    fill_rows(rng, case)
    if case.table is not None:
        dead_entries(rng, case)
    case.store = draw_store(rng, case) if chance(rng, 0.5) else None
    return case


def answer(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The right output of a decode, and how far a kernel may be from it, for each query."""
    return oracle.decode(
        case.shape,
        case.planes,
        case.table,
        case.lengths,
        case.q,
        case.window,
        case.scale,
        plain=case.kind == "plain",
        variant=case.variant,
        queries=case.queries,
        asked=case.scores,
    )


def stored(case: Case) -> Planes:
    """The planes after the case's store into planes filled with `fill`."""
    planes, store = Planes.filled(case.shape, case.fill), case.store
    for seq, first in enumerate(store.lengths):
        oracle.store(case.shape, planes, store.table, seq, int(first), store.k[seq], store.v[seq])
    return planes


def source(store: Store, values: np.ndarray) -> np.ndarray:
    """The source array in the order that the store asks for."""
    return np.ascontiguousarray(values.swapaxes(1, 2) if store.head_major else values)
