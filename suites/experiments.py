"""A small decoder for `experiments.ipynb`, with random weights. A seed gives the same weights
everywhere.

for each layer: norm, project to q, k and v, turn q and k by their positions, attend, project, add;
    norm, feed-forward, add
norm, logits; the token with the largest logit is next
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

import kvbench

# (layer, q, k, v of new tokens) -> what these tokens get from attention
Attend = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Keep = Callable[[str, np.ndarray], np.ndarray]
Fault = Callable[[kvbench.Cache, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

_TURNS = 10_000.0  # the longest wavelength of the positions, as in most published models


@dataclass(frozen=True, slots=True)
class Sizes:
    vocabulary: int = 256
    layers: int = 3
    hidden: int = 64
    intermediate: int = 128
    q_heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16


def given(name: str, rows: np.ndarray) -> np.ndarray:
    return rows


class Decoder:
    """A decoder of one sequence: its weights, and the step. Rows are [tokens, ...].

    Attention weighs as much as all other parts and looks at few tokens. So an error in the cache is
    not averaged away.
    """

    def __init__(self, seed: int = 7, sizes: Sizes = Sizes()) -> None:
        self.sizes = s = sizes
        draw = np.random.default_rng(seed)

        def weights(rows: int, columns: int, gain: float = 1.0) -> list[np.ndarray]:
            shape = (s.layers, rows, columns)
            drawn = draw.standard_normal(shape, dtype=np.float32)
            return list(drawn * np.float32(gain / np.sqrt(rows)))

        queries, keys = s.q_heads * s.head_dim, s.kv_heads * s.head_dim
        self.embedding = draw.standard_normal((s.vocabulary, s.hidden), dtype=np.float32)
        self.q, self.k = weights(s.hidden, queries, gain=2.0), weights(s.hidden, keys)
        self.v, self.out = weights(s.hidden, keys), weights(queries, s.hidden)
        self.gate, self.up = (weights(s.hidden, s.intermediate) for _ in range(2))
        self.down = weights(s.intermediate, s.hidden)
        self.head = weights(s.hidden, s.vocabulary)[0]

    @property
    def weights(self) -> int:
        """Number of weights that a token is multiplied with."""
        parts = (self.q, self.k, self.v, self.out, self.gate, self.up, self.down, [self.head])
        return sum(each.size for part in parts for each in part)

    def logits(
        self,
        tokens: Sequence[int],
        first: int,
        attend: Attend,
        keep: Keep = given,
        dtype: Any = np.float32,
    ) -> np.ndarray:
        """Return the logits after the last of these tokens, [vocabulary]. `first`: number of the
        first of these tokens in the sequence.

        keep: takes an array of the step, by its name in the arena map, and returns the array that
        the step continues with.
        """
        x = keep("embedded_input", self.embedding[list(tokens)].astype(dtype))
        turn = keep("rope_cache", _angles(first, len(tokens), self.sizes.head_dim, x.dtype))
        for layer in range(self.sizes.layers):
            x = keep("layer_output", self._layer(layer, x, turn, attend, keep))
        return keep("logits", _norm(x) @ self.head)[-1]

    def _layer(
        self, layer: int, x: np.ndarray, turn: np.ndarray, attend: Attend, keep: Keep
    ) -> np.ndarray:
        x = keep("layer_input", x)
        heads, normed = (len(x), -1, self.sizes.head_dim), _norm(x)
        q = keep("q_scratch", _turned((normed @ self.q[layer]).reshape(heads), turn))
        k = keep("k_scratch", _turned((normed @ self.k[layer]).reshape(heads), turn))
        v = keep("v_scratch", (normed @ self.v[layer]).reshape(heads))
        attended = keep("attn_scratch", attend(layer, q, k, v)).reshape(len(x), -1)
        x = keep("residual", x + attended @ self.out[layer])
        gate, up = (_norm(x) @ own[layer] for own in (self.gate, self.up))
        product = gate / (1 + np.exp(-gate)) * up
        parts = (gate, up, product, product @ self.down[layer])
        return x + keep("mlp_scratch", np.concatenate(parts, axis=1))[:, -x.shape[1] :]


class Naive:
    """A decoder without a cache: each step computes all keys and values again, without a kernel."""

    def __init__(self, decoder: Decoder, dtype: Any = np.float64) -> None:
        self.decoder, self.dtype, self.tokens = decoder, dtype, list[int]()

    def step(self, token: int) -> np.ndarray:
        self.tokens.append(token)
        return self.decoder.logits(
            self.tokens, 0, lambda layer, *rows: causal(*rows), dtype=self.dtype
        )


class Cached:
    """A decoder with a cache for each layer: a step computes only the new token's keys and values.

    keep: see Decoder.logits. faults: what replaces the right store and decode, by layer and number
    of the token.
    """

    def __init__(
        self,
        decoder: Decoder,
        caches: Sequence[kvbench.Cache],
        keep: Keep = given,
        faults: Mapping[tuple[int, int], Fault] = MappingProxyType({}),
    ) -> None:
        self.decoder, self.caches, self.keep, self.faults = decoder, caches, keep, faults

    def step(self, token: int) -> np.ndarray:
        number = self.caches[0].length

        def attend(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            return self.faults.get((layer, number), rightly)(self.caches[layer], q, k, v)

        return self.decoder.logits([token], number, attend, self.keep)


def rightly(cache: kvbench.Cache, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    cache.append(k, v)
    return cache.decode(q)


def wrong_key(cache: kvbench.Cache, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Store the key with the wrong sign, for good."""
    return rightly(cache, q, -k, v)


def late(cache: kvbench.Cache, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Let the token attend before its slot is written; later tokens find the right row there."""
    cache.advance()
    out = cache.decode(q)
    cache.rollback(1)
    cache.append(k, v)
    return out


def displaced(cache: kvbench.Cache, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Write the token to the next slot, where the next token overwrites it; its own stays zero."""
    cache.advance()
    cache.append(k, v)
    cache.rollback(1)
    return cache.decode(q)


def greedy(step: Callable[[int], np.ndarray], prompt: Sequence[int], count: int) -> np.ndarray:
    """Return the logits after the prompt and after each greedy token: [count, vocabulary]."""
    for token in prompt[:-1]:
        step(token)
    logits = [step(prompt[-1])]
    while len(logits) < count:
        logits.append(step(int(logits[-1].argmax())))
    return np.array(logits)


def seconds(*calls: Callable[[], object], times: int = 5) -> list[float]:
    """Return each call's median seconds. Each round calls all in turn; the first is not counted."""
    taken = []
    for _ in range(times + 1):
        for call in calls:
            start = perf_counter()
            call()
            taken.append(perf_counter() - start)
    return [median(taken[number :: len(calls)][1:]) for number in range(len(calls))]


def causal(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attend from every token to itself and all earlier ones: [tokens, q_heads, head_dim]."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(rows, group, axis=1).swapaxes(0, 1) for rows in (k, v))
    scores = q.swapaxes(0, 1) @ k.swapaxes(1, 2) / np.sqrt(q.shape[2]).astype(q.dtype)
    scores[:, np.triu(np.ones(scores.shape[1:], dtype=bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (weights / weights.sum(axis=2, keepdims=True) @ v).swapaxes(0, 1)


def _norm(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + x.dtype.type(1e-6))


def _angles(first: int, tokens: int, dim: int, dtype: Any) -> np.ndarray:
    """Return cosines and sines of the positions: [2, tokens, dim / 2]."""
    speeds = _TURNS ** (-np.arange(dim // 2) / (dim // 2))
    angles = np.arange(first, first + tokens)[:, None] * speeds
    return np.array((np.cos(angles), np.sin(angles)), dtype=dtype)


def _turned(rows: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Turn each row by its angles: its halves are real and imaginary parts of complex numbers."""
    (cos, sin), (a, b) = turn[:, :, None], np.split(rows, 2, axis=2)
    return np.concatenate((a * cos - b * sin, a * sin + b * cos), axis=2)
