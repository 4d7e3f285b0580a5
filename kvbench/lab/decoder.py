"""A tiny decoder, the same for a seed everywhere: once with our kernels and a cache, once without either.

for each layer: norm, project to q, k and v, turn q and k by their positions, attend, project, add; norm, MLP, add
norm, logits, and the best of them is the next token
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kvbench.native import Cache

Store = Callable[[Cache, np.ndarray, np.ndarray], None]  # k and v [1, kv_heads, head_dim] of a new token

_TURNS = 10_000.0  # the longest wavelength of the positions, as in most published models


@dataclass(frozen=True, slots=True)
class Sizes:
    vocabulary: int = 256
    layers: int = 4
    hidden: int = 64
    q_heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16


class Decoder:
    """Weights and what a layer does beside attention, in float32. x is [tokens, hidden].

    Attention counts for as much as all else, and looks at few tokens: so what is wrong in a cache is not averaged away.
    """

    def __init__(self, seed: int = 1, sizes: Sizes = Sizes()) -> None:
        self.sizes = s = sizes
        draw = np.random.default_rng(seed)

        def weights(*shape: int, gain: float = 1.0) -> np.ndarray:
            return draw.standard_normal(shape, dtype=np.float32) * np.float32(gain / np.sqrt(shape[-2]))

        self._embedding = draw.standard_normal((s.vocabulary, s.hidden), dtype=np.float32)
        self._q = weights(s.layers, s.hidden, s.q_heads * s.head_dim, gain=2.0)
        self._k = weights(s.layers, s.hidden, s.kv_heads * s.head_dim)
        self._v = weights(s.layers, s.hidden, s.kv_heads * s.head_dim)
        self._o = weights(s.layers, s.q_heads * s.head_dim, s.hidden)
        self._up = weights(s.layers, s.hidden, 4 * s.hidden)
        self._down = weights(s.layers, 4 * s.hidden, s.hidden)
        self._head = weights(s.hidden, s.vocabulary)

    def embed(self, tokens: Sequence[int]) -> np.ndarray:
        return self._embedding[list(tokens)]

    def project(self, layer: int, x: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q [tokens, q_heads, head_dim], k and v [tokens, kv_heads, head_dim] of tokens `first` and on."""
        normed = _norm(x)
        q, k, v = (
            (normed @ weights[layer]).reshape(len(x), -1, self.sizes.head_dim)
            for weights in (self._q, self._k, self._v)
        )
        positions = np.arange(first, first + len(x))
        return _turned(q, positions), _turned(k, positions), v

    def finish(self, layer: int, x: np.ndarray, attended: np.ndarray) -> np.ndarray:
        """The next layer's x. attended: [tokens, q_heads, head_dim]."""
        x = x + attended.reshape(len(x), -1).astype(np.float32) @ self._o[layer]
        up = _norm(x) @ self._up[layer]
        return x + (up / (1 + np.exp(-up))) @ self._down[layer]

    def logits(self, x: np.ndarray) -> np.ndarray:
        """[vocabulary], behind the last token."""
        return _norm(x[-1:])[0] @ self._head


class Naive:
    """Keeps the tokens alone: at every one all keys and values are computed anew, and attention in float64."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder, self._tokens = decoder, list[int]()

    def step(self, token: int) -> np.ndarray:
        """The logits behind it."""
        self._tokens.append(token)
        x = self._decoder.embed(self._tokens)
        for layer in range(self._decoder.sizes.layers):
            x = self._decoder.finish(layer, x, causal(*self._decoder.project(layer, x, 0)))
        return self._decoder.logits(x)


class Cached:
    """Computes keys and values of the new token alone; a cache of each layer has the others. `facts`: see Cache.

    `store` may be another one: what a program would do that writes wrongly.
    """

    def __init__(self, decoder: Decoder, capacity: int, isa: str | None = None, **facts: Any) -> None:
        s = decoder.sizes
        self.caches = [Cache(s.kv_heads, s.head_dim, capacity, **facts) for _ in range(s.layers)]
        self.store: Store = lambda cache, k, v: cache.append(k, v, isa)
        self._decoder, self._isa = decoder, isa

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for cache in self.caches:
            cache.close()

    def step(self, token: int) -> np.ndarray:
        """The logits behind it."""
        x, first = self._decoder.embed([token]), self.caches[0].length
        for layer, cache in enumerate(self.caches):
            q, k, v = self._decoder.project(layer, x, first)
            self.store(cache, k, v)
            x = self._decoder.finish(layer, x, cache.decode(q, isa=self._isa))
        return self._decoder.logits(x)


def greedy(step: Callable[[int], np.ndarray], prompt: Sequence[int]) -> Iterator[np.ndarray]:
    """The logits behind the prompt, and then without end those behind each best token."""
    for token in prompt[:-1]:
        step(token)
    token = prompt[-1]
    while True:
        logits = step(token)
        yield logits
        token = int(logits.argmax())


def causal(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64 attention of every token over itself and those before it, [tokens, q_heads, head_dim]."""
    tokens, heads, dim = q.shape
    group = heads // k.shape[1]
    k, v = (np.repeat(rows.astype(np.float64), group, axis=1).transpose(1, 0, 2) for rows in (k, v))
    scores = q.astype(np.float64).transpose(1, 0, 2) @ k.swapaxes(1, 2) / np.sqrt(dim)
    scores[:, np.triu(np.ones((tokens, tokens), dtype=bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (weights / weights.sum(axis=2, keepdims=True) @ v).transpose(1, 0, 2)


def _norm(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-6))


def _turned(rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Rotary positions: the two halves of a row are the parts of complex numbers, each turned at a speed of its own."""
    half = rows.shape[2] // 2
    angles = positions[:, None] * _TURNS ** (-np.arange(half) / half)
    cos, sin = (part[:, None].astype(np.float32) for part in (np.cos(angles), np.sin(angles)))
    a, b = rows[:, :, :half], rows[:, :, half:]
    return np.concatenate((a * cos - b * sin, a * sin + b * cos), axis=2)
