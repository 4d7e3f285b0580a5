"""The reference that a kernel's answer is checked against before and after it is timed: float64 NumPy.

for each block of tokens: scores
softmax, over the tokens that a sequence attends to
for each block of tokens: weights times values
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

Rows = Callable[[int, int], tuple[np.ndarray, np.ndarray]]  # first token, count -> K and V [B, count, Hkv, D]

_LONG = 4096  # tokens from which float32 sums get more room
BLOCK = 4096  # tokens taken together: decoded, a long cache is many times what it was


def attention(q: np.ndarray, rows: Rows, lengths: Sequence[int], window: int | None = None) -> np.ndarray:
    """Decode attention on a decoded cache: q [B, Hq, D] -> float64 [B, Hq, D].

    Sequence b holds lengths[b] tokens and attends to the last `window` of them. No token, no weight: zero.
    """
    ends = np.asarray(lengths, dtype=np.int64)
    starts = np.maximum(0, ends - window) if window else np.zeros_like(ends)
    first, last = int(starts.min()), int(ends.max())
    scores = np.full((*q.shape[:2], last - first), -np.inf)
    queries = q.astype(np.float64) / np.sqrt(q.shape[2])
    for at, count in _blocks(first, last):
        k, _ = rows(at, count)
        for b, queried, head in _heads(q, k):
            scores[b, queried, at - first : at - first + count] = queries[b, queried] @ k[b, :, head].astype(float).T
        del k, _  # the next block takes their place
    weights = _softmax(scores, starts - first, ends - first)
    out = np.zeros(q.shape)
    for at, count in _blocks(first, last):
        _, v = rows(at, count)
        for b, queried, head in _heads(q, v):
            out[b, queried] += weights[b, queried, at - first : at - first + count] @ v[b, :, head].astype(float)
        del v, _
    return out


def whole(k: np.ndarray, v: np.ndarray) -> Rows:
    """Of arrays that hold all tokens."""
    return lambda first, count: (k[:, first : first + count], v[:, first : first + count])


def rounded(rows: np.ndarray, dtype: str) -> np.ndarray:
    """float32 rows as a kernel takes them that rounds them to a dtype while it reads: f16 is NumPy's float of 2 bytes.
    What is beyond its range is infinite."""
    with np.errstate(over="ignore"):
        return rows.astype(f"f{int(dtype.removeprefix('f')) // 8}").astype(np.float32)


# Of a row's largest element, by bytes per element and whether rows have scales: the coarsest rounding of such formats.
# A block of 4 bits has one code less for elements of the other sign than its largest, and its scale is rounded, too.
_STEPS = {
    (4, False): 0.0,
    (2, False): 2.0**-8,
    (1, True): 1 / 250,
    (1, False): 2.0**-3,
    (34 / 32, False): 1 / 220,
    (18 / 32, False): 1 / 7.9,
}


def rounding(element: float, scaled: bool) -> float:
    """By what share of its row's largest element a stored one may be off, where one takes so many bytes."""
    return _STEPS[element, scaled]


def tolerance(v: float, tokens: int) -> float:
    """The largest error that float32 arithmetic explains on ordinary data; `v`: the largest magnitude of a value."""
    return (2e-6 if tokens <= _LONG else 1e-5) * v


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    yield from ((at, min(BLOCK, last - at)) for at in range(first, last, BLOCK))


def _heads(q: np.ndarray, rows: np.ndarray) -> Iterator[tuple[int, slice, int]]:
    """Sequence, the query heads of a group, and their KV head."""
    group = q.shape[1] // rows.shape[2]
    yield from ((b, slice(h * group, (h + 1) * group), h) for b in range(len(q)) for h in range(rows.shape[2]))


def _softmax(scores: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """In place, over the tokens from start to end of each sequence; all others weigh nothing."""
    for own, start, end in zip(scores, starts, ends, strict=True):
        attended = own[:, start:end]
        if attended.size:
            attended[:] = np.exp(attended - attended.max(axis=1, keepdims=True))
            attended /= attended.sum(axis=1, keepdims=True)
        own[:, :start] = own[:, end:] = 0.0
    return scores
