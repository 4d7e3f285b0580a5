"""The package's reference against plain loops: ragged lengths, windows, empty sequences, blocks of
any size.
"""

import math
import tracemalloc

import numpy as np
import pytest

import kvbench.oracle
from kvbench.native import Cache, block_of, default_library
from kvbench.oracle import Levels, attention, attention_in_steps, rounding, whole
from tests.formats import MOST


def by_hand(q, k, v, lengths, window):
    """One query head, one token, one product at a time."""
    out = np.zeros(q.shape)
    group = q.shape[1] // k.shape[2]
    for b, head in np.ndindex(*q.shape[:2]):
        tokens = range(max(0, lengths[b] - window) if window else 0, lengths[b])
        scores = [
            math.fsum(
                float(x) * float(y) for x, y in zip(q[b, head], k[b, t, head // group], strict=True)
            )
            / math.sqrt(q.shape[2])
            for t in tokens
        ]
        weights = [math.exp(score - max(scores)) for score in scores]
        for d in range(q.shape[2]):
            values = (
                weight * float(v[b, t, head // group, d])
                for weight, t in zip(weights, tokens, strict=True)
            )
            out[b, head, d] = math.fsum(values) / math.fsum(weights) if weights else 0.0
    return out


@pytest.mark.parametrize("block", [1, 7, 50, 4096])
@pytest.mark.parametrize(
    ("lengths", "window"),
    [
        ((50, 1, 33), None),
        ((50, 0, 33), 10),
        ((0, 0, 0), None),
        ((50, 50, 50), 100),
        ((20, 40, 8), 8),
    ],
)
def test_attention(monkeypatch, block, lengths, window):
    monkeypatch.setattr(kvbench.oracle, "BLOCK", block)
    rng = np.random.default_rng(1)
    q = rng.standard_normal((3, 4, 8), dtype=np.float32)
    k, v = rng.standard_normal((2, 3, 50, 2, 8), dtype=np.float32)
    for b, length in enumerate(lengths):
        k[b, length:], v[b, length:] = 1e30, 1e30  # what lies behind an end must not matter
    assert np.allclose(
        attention(q, whole(k, v), lengths, window),
        by_hand(q, k, v, lengths, window),
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize("dtype", default_library().words("dtype"))
def test_rounding(dtype):
    """What a format makes of numbers is allowed, whatever their size; f32 keeps them."""
    rows = np.random.default_rng(1).standard_normal((2, 1, 500, 1, 80), dtype=np.float32)
    rows[..., 33] *= 30.0
    most = MOST.get(dtype, np.inf)
    rows = np.clip(rows, -most, most)
    with Cache(1, 80, 500, dtype=dtype) as cache:
        cache.bulk(*rows)
        off = np.abs(np.stack(cache.numpy()) - rows)
        allowed = rounding(rows, block_of(dtype), cache.struct.k.scale_bytes > 0)
    assert (off <= allowed).all() and (off == 0).all() == (dtype == "f32")


@pytest.mark.parametrize("levels", [None, Levels(127, 8, 0), Levels(0, 8, 8)])
def test_no_more_than_the_scores_are_held_of_all_tokens(levels):
    """And two more of one sequence, as a sweep's forecast counts them; what is held of a block is
    little here.
    """
    rng = np.random.default_rng(1)
    q, (k, v) = (
        rng.standard_normal((3, 8, 8)),
        rng.standard_normal((2, 3, 40000, 1, 8), dtype=np.float32),
    )
    scores = 8 * 40000 * 8
    tracemalloc.start()
    try:
        if levels:
            attention_in_steps(q, whole(k, v), (40000,) * 3, (levels, levels))
        else:
            attention(q, whole(k, v), (40000,) * 3)
        assert 3 * scores < tracemalloc.get_traced_memory()[1] < 5 * scores + (2 << 20)
    finally:
        tracemalloc.stop()
