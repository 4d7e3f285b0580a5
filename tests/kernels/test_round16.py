"""round16: an f32 cache whose K and V are rounded to f16 when loaded, against NumPy's float16."""

import numpy as np
import pytest

from tests.oracle import Planes, Shape
from tests.raw import Bound, decode_args


def decoded(bench, isa, shape, k, v, q, variant="round16"):
    """Decode rows [B, T, D] of one KV head, all of which are attended to."""
    planes = Planes.filled(shape, 0)
    for plane, rows in ((planes.k, k), (planes.v, v)):
        plane.view(np.float32).reshape(shape.batch, shape.capacity, -1)[:, :, : shape.head_dim] = (
            rows
        )
    out = np.empty_like(q)
    with Bound(bench.raw, shape, np.full(shape.batch, shape.capacity)) as bound:
        bound.put(planes)
        bench.team(2).do("decode", decode_args(bench.raw, bound, q, out, isa, variant))
    return out


def corners():
    """Return every finite f16, the middle to its neighbour, one f32 step to both sides of it, and
    values that overflow or become 0.
    """
    codes = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (codes[:-1] + codes[1:]) / 2
    around = [np.nextafter(middles, np.float32(way)) for way in (np.inf, 0)]
    ends = np.array(
        [65519.996, 65520, 1e6, 3e38, np.inf, np.nan, 1e-42, 2.0**-25, 2.9802326e-8], np.float32
    )
    values = np.concatenate([codes, middles, *around, ends])
    return np.concatenate([values, -values])


@pytest.mark.parametrize("heads", [1, 9])
def test_every_code_and_midpoint(bench, isa, heads):
    """One token has weight 1, so the output is its V as it was loaded."""
    dim, values = 1024, corners()
    v = np.resize(values, (-(-len(values) // dim), 1, dim))
    shape = Shape("head", "f32", len(v), 1, dim, 1)
    out = decoded(bench, isa, shape, np.ones_like(v), v, np.ones((len(v), heads, dim), np.float32))
    with np.errstate(over="ignore"):
        right = np.repeat(v.astype(np.float16).astype(np.float32), heads, axis=1)
    assert np.isinf(right).any() and np.array_equal(out, right, equal_nan=True)


@pytest.mark.parametrize("heads", [2, 8, 24])
def test_beyond_the_range_of_f16(bench, isa, heads):
    """Such values become infinite, as in a store to f16. An infinite V wins if it has any weight, a
    key of -Inf has no weight, and one of +Inf gives NaN. f32 would keep them all.
    """
    rng = np.random.default_rng(3)
    k, v = rng.standard_normal((2, 1, 40, 16), dtype=np.float32)
    k[0, 20, 0], v[0, 30, 5], v[0, 31, 6] = -1e6, 7e4, -1e9
    q = rng.standard_normal((1, heads, 16), dtype=np.float32)
    q[0, :, 0] = np.where(np.arange(heads) % 2, 1, -1)
    out = decoded(bench, isa, Shape("head", "f32", 1, 1, 16, 40), k, v, q)
    with np.errstate(over="ignore", invalid="ignore"):
        keys, values = (rows[0].astype(np.float16).astype(np.float64) for rows in (k, v))
        scores = q[0] @ keys.T / 4
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = (weights / weights.sum(axis=1, keepdims=True)) @ values
    assert (
        np.isnan(right[::2]).all()
        and (right[1::2, 5] == np.inf).all()
        and (right[1::2, 6] == -np.inf).all()
    )
    assert np.allclose(out[0], right, rtol=0, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("heads", [3, 12])
def test_it_is_flash_on_rounded_rows(bench, isa, heads):
    """The bits are equal: only the loads differ."""
    rng = np.random.default_rng(8)
    k, v = rng.standard_normal((2, 2, 700, 80), dtype=np.float32)
    q = rng.standard_normal((2, heads, 80), dtype=np.float32)
    halves = (rows.astype(np.float16).astype(np.float32) for rows in (k, v))
    shape = Shape("head", "f32", 2, 1, 80, 700)
    right = decoded(bench, isa, shape, *halves, q, "flash")
    assert np.array_equal(decoded(bench, isa, shape, k, v, q), right)
    assert not np.array_equal(decoded(bench, isa, shape, k, v, q, "flash"), right)
