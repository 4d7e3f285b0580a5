"""The package's reference against plain loops: ragged lengths, windows, empty sequences, blocks of
any size.
"""

import math
import tracemalloc

import numpy as np
import pytest

import kvbench.oracle
from kvbench.model.masks import BLOCK, CHAIN, TREE
from kvbench.native import Cache, block_of, default_library
from kvbench.oracle import Levels, attention, attention_in_steps, rounding, whole
from tests.formats import MOST


def tokens_of(length, queries, query, window=None, mask=CHAIN, word=0):
    """Those that one of a sequence's queries attends to."""
    if query >= queries:
        return []
    first = length - queries  # of the newest, as many as queries
    last = first + query if mask == CHAIN else length
    seen = [
        token
        for token in range(length)
        if token <= last and (token < first or mask != TREE or word >> (token - first) & 1)
    ]
    return seen[-window:] if window else seen


def by_hand(q, k, v, tokens):
    """One query head, one token, one product at a time. tokens[b][query]: those attended to."""
    out = np.zeros(q.shape)
    group = q.shape[2] // k.shape[2]
    for b, query, head in np.ndindex(*q.shape[:3]):
        own = tokens[b][query]
        scores = [
            math.fsum(
                float(x) * float(y)
                for x, y in zip(q[b, query, head], k[b, t, head // group], strict=True)
            )
            / math.sqrt(q.shape[3])
            for t in own
        ]
        weights = [math.exp(score - max(scores)) for score in scores]
        for d in range(q.shape[3]):
            values = (
                weight * float(v[b, t, head // group, d])
                for weight, t in zip(weights, own, strict=True)
            )
            out[b, query, head, d] = math.fsum(values) / math.fsum(weights) if weights else 0.0
    return out


def drawn(lengths, queries=1):
    rng = np.random.default_rng(1)
    q = rng.standard_normal((3, queries, 4, 8), dtype=np.float32)
    k, v = rng.standard_normal((2, 3, 50, 2, 8), dtype=np.float32)
    for b, length in enumerate(lengths):
        k[b, length:], v[b, length:] = 1e30, 1e30  # what lies behind an end must not matter
    return q, k, v


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
    q, k, v = drawn(lengths)
    right = by_hand(q, k, v, [[tokens_of(length, 1, 0, window)] for length in lengths])
    found = attention(q[:, 0], whole(k, v), lengths, window)
    assert np.allclose(found, right[:, 0], rtol=0, atol=1e-13)


WORDS = {
    "alike": np.array([0b00001, 0b00011, 0b00101, 0b01011, 0b10101]),
    "one sees nothing new": np.array([[31, 0, 9, 4, 16]] * 2 + [[16, 8, 4, 2, 1]], np.uint32),
}


@pytest.mark.parametrize("queries", [None, (5, 1, 3), (0, 5, 2)])
@pytest.mark.parametrize("window", [None, 2, 10])
@pytest.mark.parametrize("mask", [CHAIN, BLOCK, *WORDS])
def test_several_queries(monkeypatch, mask, window, queries):
    """Some with more queries than tokens, or none; in blocks that end among the newest tokens."""
    monkeypatch.setattr(kvbench.oracle, "BLOCK", 7)
    lengths, tree, mask = (30, 3, 16), WORDS.get(mask), TREE if mask in WORDS else mask
    q, k, v = drawn(lengths, 5)
    words = np.broadcast_to(0 if tree is None else tree, (3, 5))
    tokens = [
        [tokens_of(length, count, i, window, mask, int(word)) for i, word in enumerate(own)]
        for length, count, own in zip(lengths, queries or (5,) * 3, words, strict=True)
    ]
    found = attention(q, whole(k, v), lengths, window, mask, tree, queries)
    assert np.allclose(found, by_hand(q, k, v, tokens), rtol=0, atol=1e-13)


@pytest.mark.parametrize("levels", [Levels(127, 8, 0), Levels(0, 8, 8)])
def test_several_queries_in_steps(levels):
    """Each is as if it were alone, of a sequence without the tokens that it does not attend to."""
    q, k, v = drawn((30, 3, 16), 5)
    many = attention_in_steps(
        q, whole(k, v), (30, 3, 16), (levels, levels), 9, TREE, WORDS["alike"], (5, 2, 5)
    )
    for b, query in np.ndindex(3, 5):
        length, count = (30, 3, 16)[b], (5, 2, 5)[b]
        own = tokens_of(length, count, query, 9, TREE, int(WORDS["alike"][query]))
        held = whole(k[b : b + 1, own], v[b : b + 1, own])
        alone = attention_in_steps(q[b : b + 1, query], held, (len(own),), (levels, levels))
        for several, one in zip(many, alone, strict=True):
            assert np.allclose(several[b, query], one[0], rtol=1e-12, atol=1e-13)


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
