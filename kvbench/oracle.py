"""The reference that a kernel's answer is checked against before and after it is timed: float64
NumPy.

for each block of tokens: scores
softmax, over the tokens that a sequence attends to
for each block of tokens: weights times values
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

# first token, count -> K and V [B, count, Hkv, D]
Rows = Callable[[int, int], tuple[np.ndarray, np.ndarray]]
_Values = Callable[[int, int], tuple[np.ndarray | None, np.ndarray]]  # the same, or V alone

Lengths = Sequence[int] | np.ndarray  # of sequences, in tokens

TILE = 1024  # tokens, at most, whose weights a kernel takes together
_LONG = 4096  # tokens from which float32 sums get more room
BLOCK = 4096  # tokens taken together: decoded, a long cache is many times what it was


class Levels(NamedTuple):
    """What a kernel rounds: a query by the dtype of K, or weights by that of V."""

    most: int  # to whole numbers, this the largest of each `together` elements; or where it is 0,
    together: int
    bits: int  # each by itself, to so many significant bits


def attention(q: np.ndarray, rows: Rows, lengths: Lengths, window: int | None = None) -> np.ndarray:
    """Decode attention on a decoded cache: q [B, Hq, D] -> float64 [B, Hq, D].

    Sequence b holds lengths[b] tokens and attends to the last `window` of them. No token, no
    weight: zero.
    """
    weights, first = _weights(q, rows, lengths, window)
    return _sums(weights, first, q, rows)


def attention_in_steps(
    q: np.ndarray,
    rows: Rows,
    lengths: Lengths,
    levels: tuple[Levels, Levels],
    window: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The same of a kernel that rounds what it multiplies: with q as it takes that, and how far its
    weights may be off.

    levels: of K and of V, as kvb_levels tells. A weight is off by at most half a step: six standard
    deviations of their sum, for it has no sign in common on ordinary data.
    """
    of_k, of_v = levels
    q = _as_taken(q, of_k)
    weights, first = _weights(q, rows, lengths, window)
    out, variance = _sums(weights, first, q, rows), np.zeros(q.shape)
    for b, d in product(range(len(q)), range(0, q.shape[2], of_v.together)):
        # elements that share a scale of V share weights
        one, part = slice(b, b + 1), slice(d, d + of_v.together)
        own = _of(rows, one, part)
        off = _variances(weights[one].copy(), of_v, first, q[one], own)
        variance[one, :, part] = _sums(
            off, first, q[one, :, part], lambda *at, own=own: (None, _codes(own(*at)[1]) ** 2)
        )
    return out, 6 * np.sqrt(variance)


def _as_taken(q: np.ndarray, levels: Levels) -> np.ndarray:
    """In float32, as kernels do it: times the scale of the scores, then rounded."""
    scale = np.float32(1) / np.sqrt(np.float32(q.shape[2])) * np.float32(1.44269504)
    scaled = q.astype(np.float32) * scale
    own = _significant(scaled, levels.bits) if levels.bits else _in_steps(scaled, levels)
    return own / np.float64(scale)


def _significant(values: np.ndarray, bits: int) -> np.ndarray:
    share, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(share, bits)), exponent - bits)


def _in_steps(scaled: np.ndarray, levels: Levels) -> np.ndarray:
    """Of the largest / levels.most of each head, or of so many elements of it."""
    together, dim = levels.together, scaled.shape[2]
    most = np.maximum.reduceat(np.abs(scaled), np.arange(0, dim, together), axis=2)
    most = np.repeat(most, together, axis=2)[..., :dim]
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = np.where(most > 0, np.rint(scaled * (np.float32(levels.most) / most)), 0)
    return codes * (most / np.float32(levels.most)).astype(np.float64)


def _of(rows: Rows, sequence: slice, elements: slice) -> _Values:
    """V alone, of a sequence, and of some of its elements."""
    return lambda first, count: (None, rows(first, count)[1][sequence, ..., elements])


def _codes(v: np.ndarray) -> np.ndarray:
    """Rows in units of their largest element."""
    most = np.abs(v).max(axis=-1, keepdims=True)
    return np.divide(v, most, out=np.zeros_like(v), where=most > 0)


def _variances(
    weights: np.ndarray, levels: Levels, first: int, q: np.ndarray, rows: _Values
) -> np.ndarray:
    """In place, what rounding does to each, times its row's largest element. A step is a share of
    the weight itself; or of the largest one of a token's tile, which may begin at any token, and
    has no more than TILE.
    """
    for at, count in _blocks(first, first + weights.shape[2]):
        _, v = rows(at, count)
        for b, queried, head in _heads(q, v):
            weights[b, queried, at - first : at - first + count] *= np.abs(v[b, :, head]).max(
                axis=-1
            )
        del v, _
    if levels.bits:
        weights *= 2.0**-levels.bits
        return np.divide(np.square(weights, out=weights), 3, out=weights)
    tokens = weights.shape[2]
    for b, head in np.ndindex(weights.shape[:2]):
        tiles = (
            np.pad(weights[b, head], (TILE, -tokens % TILE + TILE)).reshape(-1, TILE).max(axis=1)
        )
        near = np.maximum(np.maximum(tiles[:-2], tiles[1:-1]), tiles[2:])
        weights[b, head] = np.repeat((near / levels.most) ** 2 / 12, TILE)[:tokens]
    return weights


def _weights(
    q: np.ndarray, rows: Rows, lengths: Lengths, window: int | None
) -> tuple[np.ndarray, int]:
    """[B, Hq, tokens] from the first token on that any sequence attends to."""
    ends = np.asarray(lengths, dtype=np.int64)
    starts = np.maximum(0, ends - window) if window else np.zeros_like(ends)
    first, last = int(starts.min()), int(ends.max())
    scores = np.full((*q.shape[:2], last - first), -np.inf)
    queries = q.astype(np.float64) / np.sqrt(q.shape[2])
    for at, count in _blocks(first, last):
        k, _ = rows(at, count)
        for b, queried, head in _heads(q, k):
            scores[b, queried, at - first : at - first + count] = (
                queries[b, queried] @ k[b, :, head].astype(float).T
            )
        del k, _  # the next block takes their place
    return _softmax(scores, starts - first, ends - first), first


def _sums(weights: np.ndarray, first: int, q: np.ndarray, rows: _Values) -> np.ndarray:
    """Sums of the values, each times its weight: [B, Hq, D]."""
    out = np.zeros(q.shape)
    for at, count in _blocks(first, first + weights.shape[2]):
        _, v = rows(at, count)
        for b, queried, head in _heads(q, v):
            out[b, queried] += weights[b, queried, at - first : at - first + count] @ v[
                b, :, head
            ].astype(float)
        del v, _
    return out


def whole(k: np.ndarray, v: np.ndarray) -> Rows:
    """Rows from arrays that hold all tokens."""
    return lambda first, count: (k[:, first : first + count], v[:, first : first + count])


def rounded(rows: np.ndarray, dtype: str) -> np.ndarray:
    """float32 rows as a kernel takes them that rounds them to a dtype while it reads: f16 is
    NumPy's float of 2 bytes. What is beyond its range is infinite.
    """
    with np.errstate(over="ignore"):
        return rows.astype(f"f{int(dtype.removeprefix('f')) // 8}").astype(np.float32)


# The coarsest rounding of formats with so many bytes for an element: half a step, as a share of it
# and near zero.
_STEPS = {4: (0.0, 0.0), 2: (2.0**-8, 2.0**-25), 1: (2.0**-3, 2.0**-10)}
# Where elements share a scale, by elements and bytes of a block: half a step, as a share of the
# largest of them. A block of 4 bits has one code less for elements of the other sign than its
# largest, and its scale is rounded, too.
_SCALED_STEPS = {(1, 1): 1 / 250, (32, 34): 1 / 220, (32, 18): 1 / 7.9}


def rounding(rows: np.ndarray, block: tuple[int, int], scaled: bool) -> np.ndarray:
    """By how much each element may be off once it is stored in blocks of so many elements and
    bytes. scaled: each row has a scale.
    """
    elements, size = block
    allowed = np.abs(rows)
    if elements > 1 or scaled:
        dim = rows.shape[-1]
        together = dim if scaled else elements
        largest = np.maximum.reduceat(allowed, np.arange(0, dim, together), axis=-1) * np.float32(
            _SCALED_STEPS[block]
        )
        return np.repeat(largest, together, axis=-1)[..., :dim]
    share, least = _STEPS[size]
    allowed *= share
    allowed += least
    return allowed


def tolerance(v: float, tokens: int) -> float:
    """The largest error that float32 arithmetic explains on ordinary data; `v`: the largest
    magnitude of a value.
    """
    return (2e-6 if tokens <= _LONG else 1e-5) * v


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    yield from ((at, min(BLOCK, last - at)) for at in range(first, last, BLOCK))


def _heads(q: np.ndarray, rows: np.ndarray) -> Iterator[tuple[int, slice, int]]:
    """Sequence, the query heads of a group, and their KV head."""
    group = q.shape[1] // rows.shape[2]
    yield from (
        (b, slice(h * group, (h + 1) * group), h)
        for b in range(len(q))
        for h in range(rows.shape[2])
    )


def _softmax(scores: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """In place, over the tokens from start to end of each sequence; all others weigh nothing."""
    for own, start, end in zip(scores, starts, ends, strict=True):
        attended = own[:, start:end]
        if attended.size:
            attended[:] = np.exp(attended - attended.max(axis=1, keepdims=True))
            attended /= attended.sum(axis=1, keepdims=True)
        own[:, :start] = own[:, end:] = 0.0
    return scores
