"""Unusual numbers and shapes: NaN, scores far apart, windows of a ring, odd dims and partial
blocks of transposed K.
"""

import ml_dtypes
import numpy as np
import pytest

from tests import oracle
from tests.formats import PACKED, STORED, TRANSPOSED
from tests.kernels.test_decode import shape_of, table_of
from tests.raw import Bound, Raw, Refused, Team, decode_args, store_args

KV_HEADS, GROUP, TOKENS, DIM = 2, 3, 40, 64
EVERY = sorted({tuple(k[w] for w in ("variant", "layout", "dtype", "isa")) for k in Raw().kernels()
                if k["op"] == "decode" and k["runnable"]})  # fmt: skip
EVERY_BLOCK = [(layout, dtype) for layout, own in TRANSPOSED.items() for dtype in own]
NAN = np.float32("nan")


def stored(raw, team, bound, k, v) -> None:
    """Store k and v [B, T, H, D] with the scalar tier."""
    bound.lengths[:] = 0
    team.do("bulk", store_args(raw, bound, k, v, k.shape[1], "scalar"))
    bound.lengths[:] = k.shape[1]


def unpacked(raw, team, cache, tokens, heads, dim) -> tuple[np.ndarray, np.ndarray]:
    k, v = np.zeros((2, 1, tokens, heads, dim), np.float32)
    where = raw.floats(k), raw.floats(v)
    team.do("unpack", cache, 0, tokens, *where, raw.word("isa", "scalar"))
    return k, v


def decoded(raw, team, bound, q, isa, variant, **more) -> np.ndarray:
    out = np.zeros_like(q)
    team.do("decode", decode_args(raw, bound, q, out, isa, variant, **more))
    return out


# ---- NaN -----------------------------------------------------------------------------------------


def spoil_k(bound: Bound, token: int, head: int) -> None:
    """Make one row of K decode to NaN: change an element, a block's scale, or the row's scale."""
    side, planes = bound.shape.k, bound.planes
    slots = np.array([token])
    rows, scales = oracle.places(bound.shape, side, bound.table, 0, slots)
    if side.scaled:
        at = int(scales[head, 0])
        planes.k_scale[at : at + side.scale_bytes] = np.array([NAN], STORED[side.scale]).view(
            np.uint8
        )
        return
    kind = np.float16 if side.dtype in PACKED else STORED[side.dtype]
    data = np.array([NAN]).astype(kind).view(np.uint8)
    planes.k[oracle.row_spans(side, rows, slots, len(data))[head, 0]] = data


@pytest.mark.parametrize(("variant", "layout", "dtype", "tier"), EVERY)
def test_a_nan_comes_out(raw, team, variant, layout, dtype, tier):
    """A NaN of q reaches its head's output only; a NaN of K reaches all heads that share it."""
    rng, dim = np.random.default_rng(3), DIM + 16  # the last ones fill no vector of bytes
    shape = shape_of(layout, dtype, kv_heads=KV_HEADS, head_dim=dim, capacity=TOKENS)
    with Bound(raw, shape, [TOKENS], table_of(shape)) as bound:
        stored(
            raw, team, bound, *rng.standard_normal((2, 1, TOKENS, KV_HEADS, dim), dtype=np.float32)
        )
        right = rng.standard_normal((1, KV_HEADS * GROUP, dim), dtype=np.float32)
        assert np.isfinite(decoded(raw, team, bound, right, tier, variant)).all()
        q = right.copy()
        q[0, 1, dim - 1] = NAN
        nan = np.isnan(decoded(raw, team, bound, q, tier, variant)).all(axis=2)[0]
        assert nan.tolist() == [False, True, False, False, False, False]
        spoil_k(bound, 21, 1)
        out = decoded(raw, team, bound, right, tier, variant)
        assert np.isnan(out).all(axis=2)[0].tolist() == [False] * GROUP + [True] * GROUP
        assert np.isfinite(out[0, :GROUP]).all()


def test_a_nan_scale_of_v_counts_as_nothing_in_dot(raw, team, isa):
    """With i8 the output is that of a token with scale 0. A kernel of floats gives NaN."""
    if ("dot", "head", "i8", isa) not in EVERY:
        pytest.skip("no dot here")
    rng = np.random.default_rng(4)
    shape = shape_of("head", "i8", kv_heads=1, head_dim=DIM, capacity=TOKENS)
    q, found = rng.standard_normal((1, GROUP, DIM), dtype=np.float32), []
    with Bound(raw, shape, [TOKENS]) as bound:
        stored(raw, team, bound, *rng.standard_normal((2, 1, TOKENS, 1, DIM), dtype=np.float32))
        for scale in (0.0, NAN):
            bound.planes.v_scale.view(np.float32)[17] = scale
            found.append(decoded(raw, team, bound, q, isa, "dot"))
        assert np.isnan(decoded(raw, team, bound, q, isa, "flash")).all()
    assert np.isfinite(found[0]).all() and np.array_equal(*found)


# ---- scores far apart ----------------------------------------------------------------------------


@pytest.mark.parametrize("later", [300.0, -300.0])
@pytest.mark.parametrize("variant", ["flash", "twopass", "perhead"])
def test_units_whose_largest_scores_lie_far_apart(raw, isa, variant, later):
    """A scan is cut in two units. The scores of one are 300 above those of the other, so only that
    unit counts.
    """
    tokens, dim = 2048, 16
    shape = shape_of(dtype="f32", kv_heads=1, head_dim=dim, capacity=tokens)
    k, v = np.zeros((2, 1, tokens, 1, dim), np.float32)
    k[0, tokens // 2 :, 0, 0] = later
    v[0, : tokens // 2], v[0, tokens // 2 :] = 1.0, 2.0
    q = np.zeros((1, 1, dim), np.float32)
    q[0, 0, 0] = 1.0
    with Team(raw, 2) as pair, Bound(raw, shape, [tokens]) as bound:
        stored(raw, pair, bound, k, v)
        for deterministic in (0, 1):
            out = decoded(raw, pair, bound, q, isa, variant, scale=1.0, deterministic=deterministic)
            assert np.array_equal(out, np.full_like(out, 2.0 if later > 0 else 1.0))


# ---- a ring --------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["head", "position", "paged", "blockt", "block16"])
def test_a_window_of_a_ring_is_at_most_what_it_holds(raw, team, layout):
    shape = shape_of(layout, "i8", capacity=20, ring=True)
    with Bound(raw, shape, [50], table_of(shape)) as bound:
        bound.put(type(bound.planes).filled(shape, 0))
        q = np.zeros((1, 2, shape.head_dim), np.float32)
        for window in (1, 19, 20):
            decoded(raw, team, bound, q, "scalar", "flash", window=window)
        for window in (21, 50, 0):
            with pytest.raises(Refused, match="the ring keeps capacity 20"):
                decoded(raw, team, bound, q, "scalar", "flash", window=window)


# ---- transposed blocks ---------------------------------------------------------------------------


@pytest.mark.parametrize(("where", "dtype"), EVERY_BLOCK)
@pytest.mark.parametrize("dim", [1, 2, 3, 5, 33, 66, 67, 129])
def test_odd_dims_of_transposed_rows(raw, team, where, dtype, dim):
    """The rows that are read back are those of the plain layout."""
    rows = np.random.default_rng(dim).standard_normal((2, 1, 37, 1, dim), dtype=np.float32)
    found = []
    for layout in (where, "head"):
        shape = shape_of(layout, dtype, kv_heads=1, head_dim=dim, capacity=50)
        with Bound(raw, shape, [0]) as bound:
            bound.put(type(bound.planes).filled(shape, 0xFF))
            stored(raw, team, bound, *rows)
            found.append(unpacked(raw, team, bound.cache, 37, 1, dim))
    assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


@pytest.mark.parametrize(("layout", "dtype"), EVERY_BLOCK)
@pytest.mark.parametrize("length", [1, 15, 16, 21, 33])
def test_a_cache_whose_last_block_is_part_full_grows(raw, team, isa, layout, dtype, length):
    kv_heads, dim = 3, 40
    rows = np.random.default_rng(length).standard_normal(
        (2, 1, length, kv_heads, dim), dtype=np.float32
    )
    small, large = (
        shape_of(layout, dtype, kv_heads=kv_heads, head_dim=dim, capacity=n) for n in (40, 90)
    )
    with Bound(raw, large, [0]) as room, Bound(raw, small, [0]) as bound:
        raw.check(raw.lib.kvb_cache_bind(bound.cache, room.arena.base))
        bound.lengths[:] = 0
        stored(raw, team, bound, *rows)
        before = unpacked(raw, team, bound.cache, length, kv_heads, dim)
        team.do("repack", bound.cache, room.cache, raw.word("isa", isa))
        assert room.lengths.tolist() == [length]
        after = unpacked(raw, team, room.cache, length, kv_heads, dim)
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


# ---- stores and fills ----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["head", "position", "blockt"])
@pytest.mark.parametrize(("dtype", "v_dtype"), [("f16", ""), ("i8", ""), ("f16", "i8")])
def test_clear_counts_all_planes(raw, layout, dtype, v_dtype):
    shape = shape_of(layout, dtype, v_dtype=v_dtype, v_dim=150 if v_dtype else 0)
    with Bound(raw, shape, [0]) as bound:
        found = raw.traffic("clear", bound.cache, 0, 1)
        assert found.compulsory == found.issued == found.line == sum(shape.planes)


def test_fills_are_of_unit_variance_and_k_is_not_v(raw, team):
    tokens, dim = 3000, 128
    shape = shape_of(dtype="f32", kv_heads=2, head_dim=dim, capacity=tokens)
    with Bound(raw, shape, [tokens]) as bound:
        q = np.zeros((1, 2, dim), np.float32)
        with raw.task("fill", decode_args(raw, bound, q, q.copy(), "scalar"), 1, 7) as task:
            team.run(task)
        rows = unpacked(raw, team, bound.cache, tokens, 2, dim)
    k, v = (side.ravel().astype(np.float64) for side in rows)
    for side in (k, v):
        assert abs(side.mean()) < 0.01 and abs(side.std() - 1) < 0.01
    assert abs(np.corrcoef(k, v)[0, 1]) < 0.01
    assert abs(np.corrcoef(k[dim:], k[:-dim])[0, 1]) < 0.01


@pytest.mark.parametrize(("dtype", "tensor"), [("e4m3", 41.0), ("e4m3", 55.0), ("e5m2", 41.0)])
def test_stores_divide_by_the_scale_of_a_tensor(raw, team, isa, dtype, tensor):
    """Stores divide in float32 and then round. Multiplying by 1 / scale would change some codes."""
    kind = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[dtype]
    tokens, dim = 8, 128
    values = np.arange(0x78, dtype=np.uint8).view(kind).astype(np.float32)
    middles = np.resize((values[1:-4] + values[:-5]) / 2, tokens * dim)  # where two codes meet
    rows = (middles * np.float32(tensor)).reshape(1, tokens, 1, dim)
    wrong = rows * (np.float32(1) / np.float32(tensor))
    assert not np.array_equal(wrong.astype(kind), (rows / np.float32(tensor)).astype(kind))
    shape = shape_of(
        dtype=dtype, kv_heads=1, head_dim=dim, capacity=tokens, tensor=(tensor, tensor)
    )
    with Bound(raw, shape, [0]) as bound:
        team.do("bulk", store_args(raw, bound, rows, rows, tokens, isa))
        codes = bound.planes.k[: tokens * dim].reshape(tokens, dim).copy()
    assert np.array_equal(codes, (rows[0, :, 0] / np.float32(tensor)).astype(kind).view(np.uint8))
