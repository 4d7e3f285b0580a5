"""The traffic of moves, against sums made by hand; and the bytes that they move, against NumPy."""

import operator

import numpy as np
import pytest

from tests.kernels.test_decode import shape_of
from tests.raw import Bound, Refused

KV_HEADS, DIM = 3, 40
HELD = (17, 5)  # tokens of the sequences


def caches(raw, layout, dtype, small, large, v_dtype=""):
    facts = {"batch": 2, "kv_heads": KV_HEADS, "head_dim": DIM, "v_dtype": v_dtype}
    shapes = (shape_of(layout, dtype, capacity=n, **facts) for n in (large, small))
    return [Bound(raw, shape, HELD) for shape in shapes]


# bytes of a row, of its elements and of its scale
ROWS = {"f32": (192, 160, 0), "f16": (128, 80, 0), "i8": (64, 40, 4), "q8_0": (68, 68, 0)}


@pytest.mark.parametrize(
    ("k", "v"), [("f32", "f32"), ("f16", "f16"), ("i8", "i8"), ("q8_0", "f32"), ("f16", "i8")]
)
def test_a_repack_counts_the_rows_that_move(raw, isa, k, v):
    """All stored rows of both planes are read and written, except those of K's first head, which
    stay in place.
    """
    large, small = caches(raw, "head", k, 20, 50, v)
    with large, small:
        raw.check(raw.lib.kvb_cache_bind(small.cache, large.arena.base))
        found = raw.traffic("repack", small.cache, large.cache, raw.word("isa", isa), 1)
    live = KV_HEADS * sum(HELD)
    rows, payload, scale = zip(ROWS[k], ROWS[v], strict=True)
    moved = live - HELD[0], live
    scales = 2 * live * sum(scale)
    assert found.kv == 2 * sum(map(operator.mul, payload, moved))
    assert found.scales == scales
    assert found.compulsory == found.kv + found.scales
    assert found.issued == 2 * sum(map(operator.mul, rows, moved)) + scales
    assert found.flops == 0


@pytest.mark.parametrize(
    ("layout", "dtype", "payload"), [("blockt", "f16", 80), ("block16", "q8_0", 68)]
)
def test_a_repack_moves_whole_blocks_of_transposed_rows(raw, layout, dtype, payload):
    """A block has 16 tokens: of 17 tokens 32 move, of 5 tokens 16."""
    large, small = caches(raw, layout, dtype, 20, 50)
    with large, small:
        raw.check(raw.lib.kvb_cache_bind(small.cache, large.arena.base))
        found = raw.traffic("repack", small.cache, large.cache, 0, 1)
        token = small.cache.k.token_stride
    whole, live = KV_HEADS * (32 + 16), KV_HEADS * (17 + 5)
    moved = whole - 32 + (whole if layout == "block16" else live)
    assert found.issued == 2 * token * moved
    assert found.kv == 2 * payload * (live - 17 + live)


def test_a_repack_is_of_one_thread(raw):
    large, small = caches(raw, "head", "f16", 20, 50)
    with large, small:
        raw.check(raw.lib.kvb_cache_bind(small.cache, large.arena.base))
        with pytest.raises(Refused, match="threads is 2; repack needs one thread"):
            raw.traffic("repack", small.cache, large.cache, 0, 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_matrices_are_read_and_written_once(raw, bench, isa, threads):
    rows = np.random.default_rng(1).standard_normal((2, 7, 5, 24), dtype=np.float32)
    turned = np.zeros((2, 5, 7, 24), np.float32)
    args = raw.floats(rows), raw.floats(turned), 2, 7, 5, 24, 1, raw.word("isa", isa)
    found = raw.traffic("transpose", *args, threads)
    assert found.compulsory == found.issued == found.line == rows.nbytes + turned.nbytes
    bench.team(threads).do("transpose", *args)
    assert np.array_equal(turned, rows.swapaxes(1, 2))


@pytest.mark.parametrize("threads", [1, 3])
def test_logits_count_the_rows_of_a_pass(raw, bench, isa, threads):
    rng = np.random.default_rng(2)
    rows, matrices = (
        rng.standard_normal((3, 37), dtype=np.float32),
        np.zeros((3, 4, 37), np.float32),
    )
    place, position = raw.ffi.new("int64_t *", 3), 3
    args = raw.floats(rows), raw.floats(matrices), 3, 4, 37, place, raw.word("isa", isa)
    found = raw.traffic("logits", *args, threads)
    assert found.compulsory == found.issued == found.line == 2 * rows.nbytes
    bench.team(threads).do("logits", *args)
    wanted = np.zeros_like(matrices)
    wanted[:, position] = rows
    assert np.array_equal(matrices, wanted) and place[0] == 0
    place[0] = 4
    with pytest.raises(Refused, match="position"):
        bench.team(threads).do("logits", *args)
