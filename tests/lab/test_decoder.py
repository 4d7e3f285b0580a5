"""The tiny decoder, restated in float64: with a healthy cache its 256 greedy tokens are those, whatever the layout."""

from itertools import islice

import numpy as np
import pytest

from kvbench.lab.decoder import Cached, Decoder, Naive, Sizes, greedy
from kvbench.native import default_library

PROMPT = list(range(7, 39))


def norm(x):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


def turn(row, position):
    """Pairs (row[i], row[i + half]) as complex numbers, times e^(i * angle)."""
    half = len(row) // 2
    turned = (row[:half] + 1j * row[half:]) * np.exp(1j * position * 10_000.0 ** (-np.arange(half) / half))
    return np.concatenate((turned.real, turned.imag))


def reference(decoder, tokens):
    """Logits behind every token: the model as its first lines tell it, written out token by token in float64."""
    s = decoder.sizes
    names = ("_embedding", "_q", "_k", "_v", "_o", "_up", "_down", "_head")
    embedding, wq, wk, wv, wo, up, down, head = (getattr(decoder, name).astype(np.float64) for name in names)
    x = embedding[list(tokens)]
    for layer in range(s.layers):
        normed = norm(x)
        q = (normed @ wq[layer]).reshape(-1, s.q_heads, s.head_dim)
        k = (normed @ wk[layer]).reshape(-1, s.kv_heads, s.head_dim)
        v = (normed @ wv[layer]).reshape(-1, s.kv_heads, s.head_dim)
        for t in range(len(x)):
            q[t] = [turn(row, t) for row in q[t]]
            k[t] = [turn(row, t) for row in k[t]]
        out = np.zeros_like(q)
        for t in range(len(x)):
            for h in range(s.q_heads):
                own = h * s.kv_heads // s.q_heads
                weights = np.exp(k[: t + 1, own] @ q[t, h] / np.sqrt(s.head_dim))
                out[t, h] = weights @ v[: t + 1, own] / weights.sum()
        x = x + out.reshape(len(x), -1) @ wo[layer]
        inner = norm(x) @ up[layer]
        x = x + inner / (1 + np.exp(-inner)) @ down[layer]
    return norm(x) @ head


@pytest.fixture(scope="module")
def decoder():
    return Decoder(1)


@pytest.mark.parametrize("layout", default_library().words("layout"))
def test_a_healthy_cache_says_what_the_model_says(decoder, layout):
    """A token at a time: where each best token of the reference, on the text so far, is the one that was said next."""
    with Cached(decoder, 288, layout=layout) as cached:
        logits = np.array(list(islice(greedy(cached.step, PROMPT), 256)))
    said = logits.argmax(axis=1)
    want = reference(decoder, [*PROMPT, *said[:-1]])[len(PROMPT) - 1 :]
    assert np.array_equal(want.argmax(axis=1), said)
    assert np.abs(logits - want).max() < 2e-5
    assert len(set(said.tolist())) > 40  # it does not say the same again and again


def test_the_naive_one(decoder):
    logits = np.array(list(islice(greedy(Naive(decoder).step, PROMPT), 12)))
    said = logits.argmax(axis=1)
    want = reference(decoder, [*PROMPT, *said[:-1]])[len(PROMPT) - 1 :]
    assert np.array_equal(want.argmax(axis=1), said)
    assert np.abs(logits - want).max() < 2e-5


def test_it_is_the_same_every_time(decoder):
    again, other = Decoder(1), Decoder(2)
    x = decoder.embed([3, 5])
    assert np.array_equal(x, again.embed([3, 5]))
    assert not np.array_equal(x, other.embed([3, 5]))


def test_other_sizes():
    sizes = Sizes(vocabulary=11, layers=2, hidden=12, q_heads=3, kv_heads=1, head_dim=6)
    decoder = Decoder(5, sizes)
    with Cached(decoder, 8, dtype="f16") as cached:
        got = [cached.step(token) for token in (1, 2, 3)]
    assert np.abs(np.array(got) - reference(decoder, [1, 2, 3])).max() < 0.05
    assert got[0].shape == (11,)
