"""The reference that a kernel's answer is checked against before and after it is timed: float64 NumPy."""

from collections.abc import Sequence

import numpy as np

_LONG = 4096  # tokens from which float32 sums get more room


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, lengths: Sequence[int], window: int | None = None
) -> np.ndarray:
    """Decode attention on a decoded cache: q [B, Hq, D], k and v [B, T, Hkv, D] -> float64 [B, Hq, D].

    Sequence b holds lengths[b] tokens and attends to the last `window` of them. No token, no weight: zero.
    """
    batch, heads, dim = q.shape
    kv_heads = k.shape[2]
    group = heads // kv_heads
    out = np.zeros(q.shape)
    for b in range(batch):
        end = int(lengths[b])
        tokens = slice(max(0, end - window) if window else 0, end)
        for head in range(kv_heads if end else 0):
            queries = slice(head * group, (head + 1) * group)
            scores = q[b, queries].astype(np.float64) @ k[b, tokens, head].astype(np.float64).T / np.sqrt(dim)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            out[b, queries] = weights @ v[b, tokens, head].astype(np.float64)
    return out


def tolerance(v: np.ndarray, tokens: int) -> float:
    """The largest error that float32 arithmetic explains on ordinary data."""
    return (2e-6 if tokens <= _LONG else 1e-5) * float(np.abs(v).max(initial=0.0))
