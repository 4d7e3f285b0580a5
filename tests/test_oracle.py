"""The package's reference against plain loops: different lengths, windows, empty sequences, blocks
of any size, and operations on scores.
"""

import math
import tracemalloc

import numpy as np
import pytest

import kvbench.oracle
from kvbench.model.masks import BLOCK, CHAIN, TREE
from kvbench.native import Cache, block_of, default_library
from kvbench.oracle import PLAIN, Levels, Scores, attention, attention_in_steps, rounding, whole
from tests.formats import MOST


def tokens_of(length, queries, query, window=None, mask=CHAIN, word=0, kept=0):
    """The tokens that one query of a sequence attends to."""
    if query >= queries:
        return []
    first = length - queries  # among the newest tokens, of which there is one for each query
    last = first + query if mask == CHAIN else length
    seen = [
        token
        for token in range(length)
        if token <= last and (token < first or mask != TREE or word >> (token - first) & 1)
    ]
    return [token for token in seen if token < kept or token in seen[-window:]] if window else seen


def scored(product, head, distance, asked):
    """A score after all operations. distance: from the query's own token to the other one, at most
    0 in a chain.
    """
    if asked.softcap:
        product = asked.softcap * math.tanh(product / asked.softcap)
    return product if asked.slopes is None else product + asked.slopes[head] * distance


def by_hand(q, k, v, tokens, asked=PLAIN, own_tokens=None):
    """Attention with one query head, one token and one product at a time. tokens[b][query]: those
    attended to.
    """
    out = np.zeros((*q.shape[:3], v.shape[3]))
    group = q.shape[2] // k.shape[2]
    for b, query, head in np.ndindex(*q.shape[:3]):
        own = tokens[b][query]
        scores = [
            math.fsum(
                float(x) * float(y)
                for x, y in zip(q[b, query, head], k[b, t, head // group], strict=True)
            )
            * (asked.scale or 1 / math.sqrt(q.shape[3]))
            for t in own
        ]
        if asked is not PLAIN:
            scores = [
                scored(score, head, t - own_tokens[b][query], asked)
                for score, t in zip(scores, own, strict=True)
            ]
        weights = [math.exp(score) for score in scores]
        sink = [] if asked.sinks is None else [math.exp(asked.sinks[head])]
        for d in range(v.shape[3]):
            values = (
                weight * float(v[b, t, head // group, d])
                for weight, t in zip(weights, own, strict=True)
            )
            every = math.fsum([*weights, *sink])
            out[b, query, head, d] = math.fsum(values) / every if weights else 0.0
    return out


def drawn(lengths, queries=1):
    rng = np.random.default_rng(1)
    q = rng.standard_normal((3, queries, 4, 8), dtype=np.float32)
    k, v = rng.standard_normal((2, 3, 50, 2, 8), dtype=np.float32)
    for b, length in enumerate(lengths):
        k[b, length:], v[b, length:] = 1e30, 1e30  # rows after a sequence's end must not matter
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
    """Some sequences have more queries than tokens, or none; some blocks end among the newest
    tokens.
    """
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


SINKS, SLOPES = (0.5, -1.0, 3.0, 0.0), (0.5, 0.25, 0.125, 2.0**-5)
ASKED = {
    "scale": Scores(scale=0.7),
    "softcap": Scores(softcap=1.5),
    "slopes": Scores(slopes=SLOPES),
    "sinks": Scores(sinks=SINKS),
    "kept": Scores(kept=4),
    "kept all": Scores(kept=40),
    "all": Scores(0.75, SLOPES, SINKS, 3, 1.25),
}


def spoken_to(lengths, counts, words, window, mask, kept):
    """For each query the tokens that it attends to, and its own token."""
    tokens = [
        [tokens_of(length, count, i, window, mask, int(word), kept) for i, word in enumerate(own)]
        for length, count, own in zip(lengths, counts, words, strict=True)
    ]
    own = [
        [length - count + i for i in range(5)]
        for length, count in zip(lengths, counts, strict=True)
    ]
    return tokens, own


@pytest.mark.parametrize("window", [None, 2, 10])
@pytest.mark.parametrize("mask", [CHAIN, BLOCK, *WORDS])
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_scores(monkeypatch, asked, mask, window):
    """Some sequences have more queries than tokens, or none; V is narrower than K."""
    monkeypatch.setattr(kvbench.oracle, "BLOCK", 7)
    lengths, counts = (50, 3, 16), (5, 5, 0)
    tree, mask = WORDS.get(mask), TREE if mask in WORDS else mask
    q, k, v = drawn(lengths, 5)
    v = v[..., :5]
    words = np.broadcast_to(0 if tree is None else tree, (3, 5))
    tokens, own = spoken_to(lengths, counts, words, window, mask, asked.kept)
    found = attention(q, whole(k, v), lengths, window, mask, tree, counts, asked)
    right = by_hand(q, k, v, tokens, asked, own)
    assert np.allclose(found, right, rtol=0, atol=1e-13) and not found[2].any()


def test_rows_between_the_first_tokens_and_a_window_are_not_asked_for():
    (q, k, v), read = drawn((50, 50, 50)), set()

    def rows(first, count):
        read.update(range(first, first + count))
        return whole(k, v)(first, count)

    attention(q, rows, (50, 50, 50), 10, scores=Scores(kept=4))
    assert read == {*range(4), *range(40, 50)}


@pytest.mark.parametrize("levels", [Levels(127, 8, 0), Levels(0, 8, 8)])
def test_scores_in_steps(levels):
    """Steps so fine that nothing is rounded give the same answer, and no error."""
    lengths, fine = (30, 3, 16), Levels(1 << 30, 8, 0) if levels.most else Levels(0, 8, 40)
    q, k, v = drawn(lengths, 5)
    v, facts = v[..., :5], (9, TREE, WORDS["alike"], None, ASKED["all"])
    right = attention(q, whole(k, v), lengths, *facts)
    found, off = attention_in_steps(q, whole(k, v), lengths, (fine, fine), *facts)
    assert np.allclose(found, right, rtol=0, atol=1e-6) and off.max() < 1e-6
    coarse, off = attention_in_steps(q, whole(k, v), lengths, (levels, levels), *facts)
    assert 1e-4 < np.abs(coarse - right).max() < 0.1 and 1e-4 < off.max() < 0.5


@pytest.mark.parametrize("levels", [Levels(127, 8, 0), Levels(0, 8, 8)])
def test_several_queries_in_steps(levels):
    """Each query gives the same as alone, in a sequence without the tokens that it does not attend
    to.
    """
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
    """The rounding of each format is within the allowed error, whatever the size of the numbers;
    f32 is exact.
    """
    rows = np.random.default_rng(1).standard_normal((2, 1, 500, 1, 80), dtype=np.float32)
    rows[..., 33] *= 30.0
    most = MOST.get(dtype, np.inf)
    rows = np.clip(rows, -most, most)
    with Cache(1, 80, 500, dtype=dtype) as cache:
        cache.bulk(*rows)
        off = np.abs(np.stack(cache.numpy()) - rows)
        allowed = rounding(rows, block_of(dtype), cache.struct.k.scale_bytes > 0)
    assert (off <= allowed).all() and (off == 0).all() == (dtype == "f32")


@pytest.mark.parametrize("asked", [PLAIN, ASKED["all"]])
@pytest.mark.parametrize("levels", [None, Levels(127, 8, 0), Levels(0, 8, 8)])
def test_no_more_than_the_scores_are_held_of_all_tokens(levels, asked):
    """The check holds the scores, and two more of one sequence, as a sweep's forecast counts them.
    Blocks are small here.
    """
    rng = np.random.default_rng(1)
    q, (k, v) = (
        rng.standard_normal((3, 8, 8)),
        rng.standard_normal((2, 3, 40000, 1, 8), dtype=np.float32),
    )
    scores = 8 * 40000 * 8
    asked = asked._replace(slopes=asked.slopes and 2 * SLOPES, sinks=asked.sinks and 2 * SINKS)
    tracemalloc.start()
    try:
        if levels:
            attention_in_steps(q, whole(k, v), (40000,) * 3, (levels, levels), scores=asked)
        else:
            attention(q, whole(k, v), (40000,) * 3, scores=asked)
        assert 3 * scores < tracemalloc.get_traced_memory()[1] < 5 * scores + (2 << 20)
    finally:
        tracemalloc.stop()
