"""What a walk asks for ahead: each row of the block that comes next once, and no row that is not the walk's."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.oracle import Shape
from tests.raw import Bound, compiled, decode_args

HEADS, CAPACITY, LINE = 4, 704, 64
SOURCES = (
    "walk/walk",
    "walk/schedule",
    "walk/requests",
    "cache/layouts",
    "cache/transposed",
    "tier/variants",
)
SHAPES = {
    "head.f16": Shape("head", "f16", 1, HEADS, 128, CAPACITY),
    "head.f32.wide": Shape("head", "f32", 1, HEADS, 1000, CAPACITY),
    "head.f16.many": Shape("head", "f16", 1, HEADS, 128, CAPACITY),  # eight heads to a group
    "head.f32.many": Shape("head", "f32", 1, HEADS, 112, CAPACITY),
    "head.f32.four": Shape("head", "f32", 1, HEADS, 128, CAPACITY),
    "head.i8": Shape("head", "i8", 1, HEADS, 20, CAPACITY),
    "head.q4_0": Shape("head", "q4_0", 1, HEADS, 128, CAPACITY),
    "head.q8_0": Shape("head", "q8_0", 1, HEADS, 128, CAPACITY),
    "head.ring": Shape("head", "f16", 1, HEADS, 128, 592, ring=True),
    "position.f16": Shape("position", "f16", 1, HEADS, 128, CAPACITY),
    "position.f32": Shape("position", "f32", 1, HEADS, 100, CAPACITY),
    "position.f32.four": Shape("position", "f32", 1, HEADS, 128, CAPACITY),
    "position.f16.many": Shape("position", "f16", 1, HEADS, 128, CAPACITY),
    "position.ring": Shape("position", "bf16", 1, HEADS, 64, 336, ring=True),
    "paged.f16": Shape("paged", "f16", 1, HEADS, 128, CAPACITY, blocks=44),
    "paged.token": Shape("paged", "f32", 1, HEADS, 128, CAPACITY, inner="token", block_tokens=24, blocks=30),
    "blockt.f16": Shape("blockt", "f16", 1, HEADS, 128, CAPACITY),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    declared = (
        "int64_t walked(const void *, const int64_t *, int64_t, int64_t *, uintptr_t *, uintptr_t *,"
        "int64_t, int64_t, uintptr_t *, int64_t *);"
    )
    path = tmp_path_factory.mktemp("requests") / "requests.so"
    return compiled(path, Path(__file__).with_name("requests.c"), SOURCES, declared)


def addresses(bound: Bound, head: int, token: int) -> tuple[int, int]:
    """Of a token's rows of K and V."""
    c, slot = bound.cache, token % bound.cache.capacity if bound.cache.ring else token
    place = slot * c.k.token_stride
    if bound.table is not None:
        block, slot = int(bound.table[0, slot // c.block_tokens]), slot % c.block_tokens
        place = block * c.k.seq_stride + slot * c.k.token_stride
    place += head * c.k.head_stride
    return tuple(int(bound.raw.ffi.cast("uintptr_t", plane)) + place for plane in (c.k.rows, c.v.rows))


def walk(program, bound: Bound, units: list[list[int]], scheme: str, group: int):
    """Tiles as lists (rows of K, rows of V, asked for while K is consumed, while V is; what cursors fetch or touch)."""
    ffi, lib = program
    q = np.zeros((1, group * HEADS, bound.shape.head_dim), np.float32)
    args = decode_args(bound.raw, bound, q, q.copy(), "scalar", schedule=scheme)
    sizes, rows, asked = ffi.new("int64_t[9999]"), ffi.new("uintptr_t[99999]"), ffi.new("uintptr_t[99999]")
    fetched, counts = ffi.new("uintptr_t[999999]"), ffi.new("int64_t[9999]")
    row, dim = bound.cache.k.row_bytes, bound.shape.head_dim
    lines, step = (row // LINE, LINE) if row % LINE == 0 else (dim // LINE, row * LINE // dim)
    flat = ffi.new("int64_t[]", [number for unit in units for number in unit])
    tiles, at, of = [], 0, 0
    found = lib.walked(ffi.cast("void *", args), flat, len(units), sizes, rows, asked, lines, step, fetched, counts)
    for size, count in zip(sizes[0:found], counts[0:found], strict=True):
        tiles.append([list(list_[at + i * size : at + (i + 1) * size]) for list_ in (rows, asked) for i in (0, 1)])
        tiles[-1].append(list(fetched[of : of + count]))
        at, of = at + 2 * size, of + count
    return tiles


def blocks_of(tiles: list[list], heads: int, row_bytes: int) -> list[list[list]]:
    """Tiles of a block: one of each head, or one whose rows are those of all heads in turn."""
    blocks = []
    while tiles:
        rows = tiles[0][0]
        number = 1 if rows[1] - rows[0] == row_bytes else heads
        blocks.append(tiles[:number])
        tiles = tiles[number:]
    return blocks


def row_by_row(blocks: list[list[list]], row_bytes: int, group: int, dtype: str) -> int:
    """Of tiles in one piece: the rows 6 KiB further on, of f32 and four query heads 12. Where rows are not read whole, what is
    read a run later is touched. Returns how many such tiles there are; others are shorter than a run, or than 16 rows."""
    whole, found = group <= {"f32": 4, "f16": 2}.get(dtype, 0), 0
    run = (16 if row_bytes > 256 else 32) * (2 if group > 4 else 1)
    run = 16 if whole or max(len(block[0][0]) for block in blocks) % run else run
    pieces = [block for block in blocks if len(block) == 1 and len(block[0][0]) % run == 0]
    assert all(len(tile[0]) <= run for block in blocks if block not in pieces for tile in block)
    for (tile, *_), (later, *_) in zip(blocks, blocks[1:], strict=False):
        if [tile] not in pieces:
            continue
        assert tile[0] == [tile[0][0] + t * row_bytes for t in range(len(tile[0]))]
        far = 12288 if dtype == "f32" and 2 < group <= 4 else 6144
        assert (tile[2], tile[3]) == tuple([row + far for row in rows] for rows in tile[:2])
        then = later if [later] in pieces else tile
        wanted = [] if whole else tile[0][run:] + tile[1] + then[0][:run]
        assert tile[4] == [at for row in wanted for at in range(row, row + row_bytes, LINE)]
        found += 1
    return found


@pytest.mark.parametrize("scheme", ["cross", "weave", "stream"])
@pytest.mark.parametrize("name", SHAPES)
def test_the_rows_of_the_next_block(raw, program, name, scheme):
    shape, group = SHAPES[name], {"many": 8, "four": 4}.get(name.rpartition(".")[2], 1)
    table = np.random.default_rng(1).permutation(shape.blocks)[None] if shape.blocks else None
    with Bound(raw, shape, [CAPACITY], table) as bound:
        heads = HEADS if bound.cache.k.head_stride < bound.cache.k.token_stride else 1
        first = CAPACITY - shape.capacity if shape.ring else 48
        spans = [(head, first, CAPACITY) for head in range(0, HEADS, heads)] + [
            (0, first, first),
            (0, first + 16, CAPACITY),
        ]
        units = [[0, head, heads, head, 1, begin, end - begin, -1] for head, begin, end in spans]
        tiles = walk(program, bound, units, scheme, group)
        blocks = blocks_of(tiles, heads, bound.cache.k.row_bytes)

        order = [(head, token) for head, begin, end in spans for token in range(begin, end)]
        every = [addresses(bound, head + h, token) for head, token in order for h in range(heads)]
        assert Counter(row for block in blocks for tile in block for row in tile[0]) == Counter(k for k, _ in every)
        assert Counter(row for block in blocks for tile in block for row in tile[1]) == Counter(v for _, v in every)

        in_turn = heads > 1 and group <= {"f32": 4, "f16": 1}.get(shape.dtype, 0)
        if scheme == "stream" and (in_turn or heads == 1) and shape.layout != "paged":
            if shape.dtype not in ("q8_0", "q4_0"):
                assert row_by_row(blocks, bound.cache.k.row_bytes, group, shape.dtype) >= (0 if shape.ring else 2)
                return
        tokens, whole = [len(block[0][0]) for block in blocks], 0
        for i, (block, later) in enumerate(zip(blocks, blocks[1:], strict=False)):
            asked = Counter(row for tile in block for row in tile[2] + tile[3])
            assert asked.keys() <= {row for rows in every for row in rows}
            if tokens[i] == tokens[i + 1] == max(tokens):
                whole += 1
                of_this = scheme == "cross" and heads == 1  # K is consumed while V of the same tile is fetched
                wanted = [row for tile in later for row in tile[0]]
                wanted += [row for tile in (block if of_this else later) for row in tile[1]]
                assert asked == Counter(wanted)
                lines = [line for tile in block for line in tile[4]]
                row_bytes = bound.cache.k.row_bytes
                touched = {at for row in wanted for at in range(row // LINE, (row + row_bytes - 1) // LINE + 1)}
                if row_bytes % LINE == 0:
                    assert sorted(lines) == [at * LINE for at in sorted(touched)]
                elif scheme == "stream":
                    assert touched <= {line // LINE for line in lines}
                if scheme == "stream" and not (shape.blocks or shape.ring):
                    planes = [row for tile in block for row in tile[2]], [row for tile in block for row in tile[3]]
                    assert all(plane == sorted(plane) for plane in planes)
        assert whole >= 2
