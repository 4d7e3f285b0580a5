"""The kernels' exp, seen through decode: two tokens with V = 1 and 0, so that out = 1 / (1 +
exp(-x)).
"""

import numpy as np
import pytest

from tests.oracle import Planes, Shape
from tests.raw import Bound, decode_args
from tests.scores import UNIT

BATCH = 8192


def weights(bench, isa, variant, gaps):
    """Return out [BATCH] for the score `gap` at token 0 and 0 at token 1."""
    shape = Shape(layout="position", dtype="f32", batch=BATCH, kv_heads=1, head_dim=1, capacity=2)
    with Bound(bench.raw, shape, np.full(BATCH, 2)) as bound:
        planes = Planes.filled(shape, 0)
        planes.k.view(np.float32).reshape(BATCH, 2, 16)[:, 0, 0] = 1
        planes.v.view(np.float32).reshape(BATCH, 2, 16)[:, 0, 0] = 1
        bound.put(planes)
        q = np.ascontiguousarray(gaps, dtype=np.float32).reshape(BATCH, 1, 1)
        out = np.empty_like(q)
        bench.team(1).do("decode", decode_args(bench.raw, bound, q, out, isa, variant, scale=1.0))
        return out.ravel().astype(np.float64)


@pytest.mark.parametrize("variant", ["flash", "twopass", "perhead"])
@pytest.mark.parametrize("low", [-1e-6, -1.0, -20.0, -80.0])
def test_relative_error(bench, isa, variant, low):
    gaps = np.linspace(low, 0, BATCH).astype(np.float32)
    grown = np.exp(gaps.astype(np.float64))
    right = grown / (1 + grown)
    error = np.abs(weights(bench, isa, variant, gaps) - right) / right
    # rounding of x * log2(e), then 8 roundings
    bound = (3 * np.abs(gaps.astype(np.float64)) + 8) * UNIT
    assert (error <= bound).all(), (error / bound).max()


@pytest.mark.parametrize("variant", ["flash", "twopass", "perhead"])
def test_far_ends(bench, isa, variant):
    gaps = np.zeros(BATCH, np.float32)
    gaps[:8] = [0.0, -88.0, -104.0, -1e4, -2e38, 88.0, 1e4, 2e38]
    got = weights(bench, isa, variant, gaps)
    assert got[0] == 0.5 and (got[8:] == 0.5).all()
    assert (got[1:5] <= [1e-38, 1e-38, 0, 0]).all() and (got[1:5] >= 0).all()
    assert (got[5:8] == 1).all()
