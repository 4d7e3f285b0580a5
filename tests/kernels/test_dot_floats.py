"""dot in bf16, against the bound that it states and against rounding in NumPy."""

import numpy as np
import pytest

from tests import narrow, oracle
from tests.formats import STORED, STRETCHES, WHOLE
from tests.oracle import Planes, Shape
from tests.raw import Bound, Raw, decode_args
from tests.scores import softmax

EVERY = sorted({tuple(k[w] for w in ("dtype", "layout", "isa")) for k in Raw().kernels()
                if k["op"] == "decode" and k["variant"] == "dot" and k["dtype"] not in WHOLE
                and k["layout"] in STRETCHES and k["runnable"]})  # fmt: skip
every = pytest.mark.parametrize(("dtype", "layout", "tier"), EVERY)


def of(*words):
    """Return the kernels of EVERY that have these words."""
    own = [each for each in EVERY if set(words) & set(each)]
    return pytest.mark.parametrize(("dtype", "layout", "tier"), own)


BYTES = tuple(dtype for dtype, kind in STORED.items() if np.dtype(kind).itemsize == 1)


def planes_of(shape, k, v):
    """Store rows [B, T, D] of one KV head, with NaN beside them."""
    planes = Planes.filled(shape, 0xFF)
    slots = np.arange(shape.capacity)
    for side, plane, own in zip(shape.sides, (planes.k, planes.v), (k, v), strict=True):
        for seq, rows in enumerate(own.astype(STORED[side.dtype])):
            places, _ = oracle.places(shape, side, None, seq, slots)
            raw = np.ascontiguousarray(rows).view(np.uint8)
            plane[oracle.row_spans(side, places, slots, side.payload)] = raw
    return planes


def decoded(bench, tier, shape, planes, q, **more):
    lengths, out = [shape.capacity] * shape.batch, np.empty_like(q)
    with Bound(bench.raw, shape, lengths, guard=1) as bound:
        bound.put(planes)
        args = decode_args(bench.raw, bound, q, out, tier, "dot", deterministic=1, **more)
        bench.team(1).do("decode", args)
    return out


def shape_of(layout, dtype, k, **more):
    batch, tokens, dim = k.shape
    return Shape(layout, dtype, batch, 1, dim, tokens, **more)


@every
@pytest.mark.parametrize("kind", ["plain", "steep", "query"])
@pytest.mark.parametrize(("dim", "rows"), [(128, 6), (77, 6), (77, 3)])
def test_the_stated_bound(bench, dtype, layout, tier, kind, dim, rows):
    """The answer is within the stated bound of exact attention, also if one element of q is far
    above all others. After a row of 77 elements there are NaN.
    """
    rng = np.random.default_rng(5)
    k, v = rng.standard_normal((2, 1, 300, dim)).astype(STORED[dtype])
    q = rng.standard_normal((1, rows, dim), dtype=np.float32)
    if kind == "query":
        q[0, 1::2, 17] = 300
    if kind == "steep":
        q *= 40
    shape = shape_of(layout, dtype, k)
    out = decoded(bench, tier, shape, planes_of(shape, k, v), q)
    k, v, scale = k.astype(float), v.astype(float), 1 / np.sqrt(dim)
    right, floats = oracle.attend(q, k, v, scale)
    weights = softmax(scale * (q @ k.swapaxes(1, 2))) @ np.abs(v)
    off = np.abs(q) @ np.abs(k).swapaxes(1, 2)
    grown = np.expm1(2 * narrow.HALF * scale * off.max(axis=2, keepdims=True))
    bound = grown * weights + (1 + grown) * narrow.HALF * weights + 2 * floats
    assert (np.abs(out - right) <= bound).all()
    assert kind != "plain" or np.abs(out - right).max() <= 1e-2


@of(*BYTES)
def test_every_code_of_v(bench, dtype, layout, tier):
    """With one token, an output is the element of V, also Inf and NaN."""
    codes = np.arange(256, dtype=np.uint8).view(STORED[dtype])[None, None]
    shape = shape_of(layout, dtype, codes, tensor=(0.0, 3.0))
    planes = planes_of(shape, np.zeros_like(codes), codes)
    out = decoded(bench, tier, shape, planes, np.ones((1, 2, 256), np.float32))
    right = np.broadcast_to(codes.astype(np.float32) * np.float32(3), out.shape)
    assert np.array_equal(out, right, equal_nan=True)


@of(*BYTES)
def test_every_code_of_k(bench, dtype, layout, tier):
    """Each code has its own sequence, among zeros, in all places of a load: its token weighs about
    e^2, or e^-2, times as much as a token of zeros. Inf and NaN act as in float arithmetic.
    """
    codes = np.arange(256, dtype=np.uint8).view(STORED[dtype])
    k, v = np.zeros((2, 256, 2, 64)).astype(STORED[dtype])
    each = np.arange(256)
    k[each, 1, each % 64], v[:, 1] = codes, 1
    q = np.random.default_rng(6).standard_normal((256, 1, 64), dtype=np.float32)
    size = np.abs(codes.astype(np.float32))
    usual = (size > 0) & (size < np.inf)
    q[each, 0, each % 64] = 2 * 8 / 2.5 / np.where(usual, size, 1)
    shape = shape_of(layout, dtype, k, tensor=(2.5, 0.0))
    planes = planes_of(shape, k, v)
    out = decoded(bench, tier, shape, planes, q)
    with np.errstate(all="ignore"):
        right, bound = oracle.decode(shape, planes, None, [2] * 256, q, plain=False, variant="dot")
    assert np.array_equal(np.isnan(out), np.isnan(right))
    assert (np.abs(out - right) <= bound)[usual].all() and (bound[usual] < 0.01).all()
    assert (out[np.isneginf(codes.astype(float))] == 0).all()


@of("bf16")
def test_the_smallest_numbers_may_count_as_zero(bench, dtype, layout, tier):
    """K, q or V is below 2^-126; the others are at the end of their range."""
    for small, large in ((2.0**-127, 2.0**127), (2.0**127, 2.0**-127)):
        k, v = np.zeros((2, 1, 2, 37))
        k[0, 1, 36], v[0, 1] = small, 1
        shape = shape_of(layout, dtype, k)
        q = np.zeros((1, 3, 37), np.float32)
        q[..., 36] = large / np.log2(np.e)
        out = decoded(bench, tier, shape, planes_of(shape, k, v), q, scale=1.0)
        assert np.minimum(np.abs(out - 2 / 3), np.abs(out - 1 / 2)).max() <= 5e-3
        out = decoded(bench, tier, shape, planes_of(shape, 0 * k, v * 2.0**-127), q)
        assert (out >= 0).all() and (out <= 2.0**-127).all()


@every
def test_a_query_row_does_not_depend_on_others(bench, dtype, layout, tier):
    """In groups of any size, beside huge rows or NaN, a query row gives the same bits, if all sums
    are exact.
    """
    rng, dim, tokens = np.random.default_rng(7), 77, 60
    k, v = rng.integers(-3, 4, size=(2, 1, tokens, dim))
    shape = shape_of(layout, dtype, k)
    planes = planes_of(shape, k, v)
    whole = rng.integers(-127, 128, size=(1, 16, dim))
    q = (whole * 2.0**-11 / np.log2(np.e) * np.sqrt(dim)).astype(np.float32)
    right, _ = oracle.decode(shape, planes, None, [tokens], q, variant="dot")
    alone = np.concatenate(
        [decoded(bench, tier, shape, planes, q[:, h : h + 1]) for h in range(16)], axis=1
    )
    assert np.abs(alone - right).max() <= 1e-2
    for group in (2, 3, 4, 5, 8, 9, 16):
        assert np.array_equal(
            decoded(bench, tier, shape, planes, q[:, :group]), alone[:, :group]
        ), group
    other = q.copy()
    other[0, 1::2] *= 1e30
    other[0, 3, 5] = np.nan
    for group in (2, 4, 8, 16):
        out = decoded(bench, tier, shape, planes, other[:, :group])
        assert np.array_equal(out[:, ::2], alone[:, :group:2]), group
        assert np.isnan(out[:, 3]).all() if group > 3 else np.isfinite(out).all()


@every
@pytest.mark.parametrize("beside", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_attended_to_do_not_matter(bench, dtype, layout, tier, beside):
    """They are before a window that begins anywhere in a block of 16, or after the last token."""
    rng, dim, tokens = np.random.default_rng(8), 40, 96
    k, v = rng.standard_normal((2, 1, tokens, dim)).astype(STORED[dtype])
    shape, q = shape_of(layout, dtype, k), rng.standard_normal((1, 11, dim), dtype=np.float32)
    for first, last in ((1, 96), (15, 80), (23, 79), (31, 96), (47, 48), (46, 48), (63, 81)):
        gone = np.ones(tokens, bool)
        gone[first:last] = False
        own_k, own_v = k.copy(), v.copy()
        own_k[0, gone] = own_v[0, gone] = beside
        planes = planes_of(shape, own_k, own_v)
        right, bound = oracle.decode(shape, planes, None, [last], q, last - first, variant="dot")
        out = np.empty_like(q)
        for schedule in bench.words.schedule:
            with Bound(bench.raw, shape, [last], guard=1) as room:
                room.put(planes)
                how = {"window": last - first, "schedule": schedule}
                args = decode_args(bench.raw, room, q, out, tier, "dot", **how)
                bench.team(1).do("decode", args)
            assert (np.abs(out - right) <= bound).all(), (first, last, schedule)
