"""Bytes, lines and FLOPs of random shapes, against a trace of every address that a pass touches.

compulsory  different bytes: K and V rows and scales that are attended to, page table entries, q and
            out. A store: rows that are kept without their padding, their scales, and the float32
            rows they are made from.
issued      bytes that loads and stores ask for: rows and scales once for each time that the variant
            walks them (beyond it a tile is rounded up, which is not counted), the rest as in
            compulsory. The scalar tier loads no padding of a row; the twin reads it. A store writes
            whole rows, and reads what it takes scales of twice.
line        different 64-byte lines of all that, times 64.
flops       a multiply and an add of every element of every row that a query attends to, for QK and
            again for PV, for each query head.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests import queries, trace
from tests.cases import (
    Words,
    between,
    chance,
    draw_kept,
    draw_lengths,
    draw_table,
    draw_v,
    pick,
    room_for,
)
from tests.oracle import Shape
from tests.queries import ONE, Queries
from tests.raw import Bound, decode_args, queries_args, store_args
from tests.trace import ELEMENT, Q_ROWS

SHAPES, SEED = 200, 5
BUDGET = 20_000  # about the elements of K: each is listed singly
CACHED = ("k", "v", "k_scale", "v_scale")


def draw_shape(rng, words: Words) -> tuple[Shape, int]:
    """Draw a shape, and the most tokens of a sequence."""
    ring, block, batch = (
        chance(rng, 0.2),
        pick(rng, (1, 3, 8, 16, 24, 33)),
        pick(rng, (1, 1, 2, 3, 4)),
    )
    kv_heads = pick(rng, (1, 2, 3, 4, 5))
    head_dim = pick(rng, (16, 32, 64, 80, 128, between(rng, 1, 150)))
    tokens = min(between(rng, 1, 90), max(9, BUDGET // (batch * kv_heads * head_dim)))
    capacity = (
        max(1, int(tokens * rng.uniform(0.3, 1.2)))
        if ring
        else tokens + pick(rng, (0, 0, 1, 5, 40))
    )
    layout, scale = pick(rng, words.layout), pick(rng, words.scale)
    dtype = pick(rng, words.dtypes(layout))
    shape = Shape(
        layout=layout, inner=pick(rng, words.inner), dtype=dtype, scale=scale, batch=batch,
        kv_heads=kv_heads, head_dim=head_dim, capacity=capacity, ring=ring, block_tokens=block,
        blocks=batch * -(-capacity // block) + between(rng, 0, 3), pad=64 * pick(rng, (0, 0, 1, 5)),
        **draw_v(rng, words, layout, dtype, scale, head_dim),
    )  # fmt: skip
    return shape, tokens


def with_room(shape: Shape, tokens: int) -> Shape:
    room = max(shape.capacity, tokens)
    blocks = shape.blocks + shape.batch * -(-room // shape.block_tokens)
    return replace(shape, capacity=room, blocks=blocks)


def walk(variant: str, dtype: str, q_rows: int) -> tuple[int, int]:
    """Walk one plane, with the query rows that share a load of a row, and the loads of a scale."""
    if variant == "perhead":
        return 1, q_rows
    # one load of a row, for many query rows
    converted = variant == "round16" or (variant == "flash" and ELEMENT.get(dtype, 1) == 1)
    return q_rows if converted and q_rows > Q_ROWS else Q_ROWS, 3 if variant == "twopass" else 1


def draw_asked(rng, lengths: np.ndarray, tokens: int, window: int) -> Queries:
    asked = queries.draw(rng, lengths, between(rng, 1, 6)) if chance(rng, 0.4) else ONE
    kept = draw_kept(rng, tokens) if window and chance(rng, 0.3) else 0
    return replace(asked, kept=kept)


def step_of(asked: Queries, lengths: np.ndarray, window: int, q_heads: int) -> trace.Step:
    held = enumerate(lengths.tolist())
    ranges = [asked.ranges(seq, length, window) for seq, length in held]
    return trace.Step(asked.count, q_heads, asked.attended(lengths, window), ranges)


def check(
    found, traced: trace.Trace, regions: tuple[str, ...], compulsory: int, gaps: int = 0
) -> None:
    """Compare. `gaps` in q and out: after each, a line may count with the one before it."""
    assert found.compulsory == compulsory
    assert found.issued == traced.issued
    assert 0 <= traced.lines_in(*regions) - found.line / trace.LINE <= gaps
    assert found.flops == traced.flops
    assert found.ai == (traced.flops / compulsory if compulsory else 0)


@pytest.mark.parametrize("index", range(SHAPES))
def test_decode_and_twin(raw, index):
    rng, words = np.random.default_rng([SEED, index]), Words.of(raw)
    shape, tokens = draw_shape(rng, words)
    group, variant = between(rng, 1, 16), pick(rng, words.variants(shape))
    lengths = draw_lengths(rng, shape.batch, tokens)
    window = between(rng, 1, shape.capacity) if shape.ring or chance(rng, 0.4) else 0
    asked = draw_asked(rng, lengths, tokens, window)
    shape = with_room(shape, room_for(lengths, asked, window, shape.ring))
    table = draw_table(rng, shape) if shape.layout == "paged" else None
    q, out = (
        np.zeros((shape.batch * asked.count, shape.kv_heads * group, side.dim), np.float32)
        for side in shape.sides
    )
    with Bound(raw, shape, lengths, table) as bound:
        more = queries_args(raw, asked)
        args = decode_args(raw, bound, q, out, "scalar", variant, window=window, **more)
        found, twin = raw.traffic("decode", args, 1), raw.traffic("twin", args, 1)
    walks = tuple(walk(variant, side.dtype, asked.count * group) for side in shape.sides)
    step = step_of(asked, lengths, window, q.shape[1])
    traced = trace.decode(shape, table, step, walks)
    regions = (*CACHED, "table", "q", "out")
    gaps = sum(asked.given(seq) < asked.count for seq in range(shape.batch))
    check(found, traced, regions, traced.bytes_in(*regions), 2 * gaps)
    assert found.kv == traced.bytes_in("k", "v") and found.scales == traced.bytes_in(
        "k_scale", "v_scale"
    )
    assert found.table == traced.bytes_in("table")
    assert twin.compulsory == traced.bytes_in(*CACHED, "table")
    assert twin.issued == traced.twin
    assert twin.line == trace.LINE * traced.lines_in(*CACHED, "table")
    assert twin.flops == 0


@pytest.mark.parametrize("index", range(SHAPES))
def test_stores(raw, index):
    rng = np.random.default_rng([SEED, 1, index])
    shape, most = draw_shape(rng, Words.of(raw))
    op = pick(rng, ("append", "bulk"))
    tokens = 1 if op == "append" else between(rng, 1, most if shape.ring else shape.capacity)
    top = 3 * shape.capacity if shape.ring else shape.capacity - tokens
    lengths = np.array([between(rng, 0, top) for _ in range(shape.batch)])
    head_major = op == "bulk" and chance(rng, 0.5)
    table = None
    if shape.layout == "paged":
        table = draw_table(rng, shape)
        table[rng.random(table.shape) < pick(rng, (0, 0, 0.3))] = -1
    k, v = (
        np.zeros((shape.batch, tokens, shape.kv_heads, side.dim), np.float32)
        for side in shape.sides
    )
    with Bound(raw, shape, lengths, table) as bound:
        args = store_args(raw, bound, k, v, tokens, "scalar", head_major=int(head_major))
        found = raw.traffic(op, args, 1)
    traced = trace.store(shape, table, lengths.tolist(), tokens, head_major)
    scales, sources = traced.bytes_in("k_scale", "v_scale"), traced.bytes_in("k_source", "v_source")
    kept = trace.payload(traced, shape)
    assert (found.kv, found.scales, found.table) == (kept, scales, 0)
    assert found.compulsory == kept + scales + sources
    assert found.issued == traced.issued
    assert found.line == trace.LINE * traced.lines_in(*CACHED, "k_source", "v_source")
    assert found.flops == 0


def test_the_trace_itself():
    """Two tokens of one head, computed by hand: K of 3 float16, V of 2 float32. Each row has a
    line, of which 6 and 8 bytes are used.
    """
    shape = Shape(
        "head", "f16", batch=1, kv_heads=1, head_dim=3, capacity=2, v_dtype="f32", v_dim=2
    )
    step = trace.Step(1, 2, [[[0, 1]]], [[(0, 2)]])
    traced = trace.decode(shape, None, step, walks=((2, 1), (1, 1)))
    # 2 query heads, 2 tokens, QK and PV, multiply and add
    assert traced.flops == 2 * 2 * (3 + 2) * 2
    assert (traced.bytes_in("k"), traced.bytes_in("v")) == (2 * 6, 2 * 8)
    assert traced.lines_in("k") == 2 and traced.lines_in("q", "out") == 2
    # a row of V for each query head
    assert traced.issued == 2 * 6 + 4 * 8 + 2 * (3 + 2) * 4
