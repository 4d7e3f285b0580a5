"""Compute how much a number format of the cache changes the answer of attention, in float64.

Rows are drawn to look like those of a model. Keys of real models have a few elements much larger
than the others, and a format whose elements share a scale loses most there.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

from kvbench.model.point import CHANNEL, TOKEN
from kvbench.native import Cache, channel_of
from kvbench.oracle import attention, whole

KEYS = ("normal", "heavy")  # from a normal distribution; with some larger elements
LARGE, TIMES = 4, 20  # large elements of a heavy row, and how many times as large they are


def drawn(
    keys: str, tokens: int, q_heads: int, kv_heads: int, head_dim: int, seed: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw q [1, q_heads, head_dim], and K and V [1, tokens, kv_heads, head_dim], with one of
    KEYS.
    """
    draw = np.random.default_rng(seed)
    k, v = draw.standard_normal((2, 1, tokens, kv_heads, head_dim), dtype=np.float32)
    q = draw.standard_normal((1, q_heads, head_dim), dtype=np.float32)
    if keys == KEYS[1]:
        k[..., draw.choice(head_dim, min(LARGE, head_dim), replace=False)] *= TIMES
    return q, k, v


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention of q to all tokens, in float64."""
    return attention(q, whole(k, v), [k.shape[1]] * len(q))


def relative_error(found: np.ndarray, right: np.ndarray) -> float:
    """The root mean square of the error, as a share of that of the right answer."""
    return float(np.sqrt(np.mean((found - right) ** 2) / np.mean(right**2)))


def format_error(
    q: np.ndarray, stored: tuple[np.ndarray, np.ndarray], kept: tuple[np.ndarray, np.ndarray]
) -> float:
    """The error that a format causes. stored: K and V in float32. kept: the same as read back from
    a cache of the format.
    """
    return relative_error(attended(q, *kept), attended(q, *stored))


# heads and head_dim of many models; enough tokens for two digits
_TOKENS, _Q_HEADS, _KV_HEADS, _HEAD_DIM = 256, 32, 8, 128
_ROOM = 1.5  # room for keys larger than those that the channels' scales are computed from


@cache
def format_errors(dtype: str, scale: str = "f32", k_scale: str = TOKEN) -> dict[str, float]:
    """The error for each of KEYS, with a cache that the library stores in this format."""
    return {
        keys: format_error(q, rows, own.numpy())
        for keys, q, rows, own in filled(dtype, scale, k_scale)
    }


def filled(
    dtype: str, scale: str, k_scale: str
) -> Iterator[tuple[str, np.ndarray, tuple[np.ndarray, np.ndarray], Cache]]:
    """For each of KEYS: queries, K and V, and a cache that holds them until the next iteration.
    Scales of channels are computed from the first half of the tokens, before the others exist.
    """
    for keys in KEYS:
        q, k, v = drawn(keys, _TOKENS, _Q_HEADS, _KV_HEADS, _HEAD_DIM)
        channel = channel_of(k[:, : _TOKENS // 2], _ROOM) if k_scale == CHANNEL else None
        shape = _KV_HEADS, _HEAD_DIM, _TOKENS
        with Cache(*shape, dtype=dtype, scale=scale, channel=channel) as own:
            own.bulk(k, v)
            yield keys, q, (k, v), own
