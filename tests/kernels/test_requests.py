"""While a block of tokens is read, all rows that come next are prefetched, each once."""

from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests import oracle
from tests.oracle import Shape
from tests.raw import Bound, compiled, decode_args

HEADS, TILES, ROOM = 2, 64, 1024
TOKENS = 1024  # whole blocks of every layout and dtype
SOURCES = (
    *(f"walk/{name}" for name in ("plan", "queries", "walk", "schedule", "requests")),
    *("cache/layouts", "cache/transposed", "tier/variants", "base/task", "base/check"),
)
# words of kernels/tier/schedule.h
PLAIN, LISTED, LISTED_L2, _, RUNS = range(5)
# V with the geometry of K but another dtype, and V with another geometry
ALIKE, UNLIKE = [{}, {"v_dtype": "bf16"}], [{"v_dtype": "q8_0"}, {"v_dtype": "i8", "v_dim": 200}]


class Tile(NamedTuple):
    """The tile of a head. For K and V: the order of rows, and the rows prefetched meanwhile."""

    seq: int
    head: int
    first: int
    count: int
    order: list[int]
    rows: list[list[int]]

    @staticmethod
    def of(tile) -> "Tile":
        rows = [plane[0 : tile.count] for plane in tile.rows]
        return Tile(
            tile.seq, tile.head, tile.first, tile.count, list(tile.order), [sorted(x) for x in rows]
        )


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    declared = f"""
        typedef struct {{ int64_t seq, head, first, count, order[2], rows[2][{ROOM}]; }} asked;
        int64_t asked_for(const void *, int64_t, asked *);
        """
    path = tmp_path_factory.mktemp("asked") / "asked.so"
    return compiled(path, Path(__file__).with_name("asked.c"), SOURCES, declared)


def walked(raw, program, bound, schedule):
    """Return the tiles of each block, in the order of a thread."""
    ffi, lib = program
    q, out = (np.zeros((1, HEADS, side.dim), np.float32) for side in bound.shape.sides)
    args = decode_args(raw, bound, q, out, "scalar", schedule=schedule)
    tiles = ffi.new("asked[]", TILES)
    count = lib.asked_for(ffi.cast("void *", args), TILES, tiles)
    assert 0 < count < TILES
    found = [Tile.of(tile) for tile in tiles[0:count]]
    inside = bound.shape.layout == "position"  # the heads of a token
    by_block = groupby(found, lambda tile: (tile.first, None if inside else tile.head))
    return [list(tiles) for _, tiles in by_block]


def rows_of(bound, plane: int, block) -> list[int]:
    """Return the addresses of the rows of a block."""
    shape, found = bound.shape, []
    base = int(bound.raw.ffi.cast("intptr_t", (bound.cache.k, bound.cache.v)[plane].rows))
    for tile in block:
        slots = np.arange(tile.first, tile.first + tile.count)
        rows, _ = oracle.places(shape, shape.sides[plane], bound.table, tile.seq, slots)
        found += (base + rows[tile.head]).tolist()
    return sorted(found)


def asked_of(plane: int, block) -> list[int]:
    return sorted(row for tile in block for row in tile.rows[plane])


@pytest.mark.parametrize(
    "more", [*ALIKE, *UNLIKE], ids=lambda more: "-".join(map(str, more.values()))
)
@pytest.mark.parametrize("layout", ["head", "position", "paged", "blockt"])
def test_all_rows_that_come_next(raw, program, layout, more):
    shape = Shape(layout, "f16", 1, HEADS, 64, TOKENS, block_tokens=64, blocks=16, **more)
    table = np.random.default_rng(1).permutation(16)[None] if layout == "paged" else None
    together = more in ALIKE and layout != "position"
    with Bound(raw, shape, [TOKENS], table) as bound:
        for schedule in ("off", "cross", "weave", "stream"):
            blocks = walked(raw, program, bound, schedule)
            assert len(blocks) > 2
            for block, later in pairwise(blocks):
                check(bound, schedule, together, block, later)


def check(bound, schedule, together, block, later):
    """Check the tiles. `together`: rows of one plane are prefetched while the other is read."""
    k, v = (asked_of(plane, block) for plane in (0, 1))
    in_runs = RUNS in block[0].order
    if schedule == "off":
        assert not any(tile.order[plane] for tile in block for plane in (0, 1))
    elif together and (schedule == "cross" or in_runs):
        assert k == rows_of(bound, 1, block) and v == rows_of(bound, 0, later)
    elif together and schedule == "weave":
        assert sorted(k + v) == sorted(rows_of(bound, 0, later) + rows_of(bound, 1, later))
    else:
        assert k == rows_of(bound, 0, later) and v == rows_of(bound, 1, later)


def test_each_plane_has_an_order_of_its_own(raw, program):
    """Packed rows of V are read from lists, whatever the order of K."""
    orders = {}
    for v_dtype in ("f16", "q8_0"):
        shape = Shape("head", "f16", 1, HEADS, 64, TOKENS, v_dtype=v_dtype)
        with Bound(raw, shape, [TOKENS]) as bound:
            orders[v_dtype] = [tile.order for tile in walked(raw, program, bound, "stream")[0]]
    assert orders == {"f16": [[RUNS, RUNS]], "q8_0": [[RUNS, LISTED_L2]]}
