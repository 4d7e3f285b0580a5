"""The reference for a kernel's answers, which are checked before and after timing. float64 NumPy.

for each block of tokens: scores
softmax, over the tokens that a sequence attends to
for each block of tokens: weights times values
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from kvbench.model.masks import CHAIN, tokens_seen

# first token, count -> K and V [B, count, Hkv, D]
Rows = Callable[[int, int], tuple[np.ndarray, np.ndarray]]
_Values = Callable[[int, int], tuple[np.ndarray | None, np.ndarray]]  # the same, or V alone
_Ranges = list[tuple[int, int]]  # of tokens: the first, and one past the last; ascending

Lengths = Sequence[int] | np.ndarray  # of sequences, in tokens

TILE = 1024  # the most tokens whose weights a kernel handles together
_LONG = 4096  # tokens from which float32 sums may be further off
BLOCK = 4096  # tokens decoded at a time: a decoded cache is many times as large


class Levels(NamedTuple):
    """How a kernel rounds: a query according to K's dtype, or weights according to V's."""

    most: int  # round to integers, scaled so that the largest of `together` elements is `most`;
    together: int
    bits: int  # if most is 0: round each element to this many significant bits


class Scores(NamedTuple):
    """What is done to scores, see kvbench/model/scores.py. Slopes and sinks are rounded to float32,
    as in kernels.
    """

    softcap: float = 0.0
    slopes: Sequence[float] | np.ndarray | None = None  # by query head
    sinks: Sequence[float] | np.ndarray | None = None  # by query head
    kept: int = 0  # first tokens that are attended to beside a window
    scale: float = 0.0  # of q . k; 0: 1 / sqrt(head_dim)


PLAIN = Scores()


class _Span(NamedTuple):
    """The tokens that a query attends to: the first `kept`, those from `start` to before `older`,
    and `newest`. `own` is the query's own token.
    """

    kept: int
    start: int
    older: int
    newest: tuple[int, ...]
    own: int

    @property
    def end(self) -> int:
        return self.newest[-1] + 1 if self.newest else self.older


def attention(
    q: np.ndarray,
    rows: Rows,
    lengths: Lengths,
    window: int | None = None,
    mask: str = CHAIN,
    tree: np.ndarray | Sequence[int] | None = None,
    queries: Sequence[int] | np.ndarray | None = None,
    scores: Scores = PLAIN,
) -> np.ndarray:
    """Decode attention on a decoded cache: q [B, Hq, D] or [B, queries, Hq, D] -> float64 of that
    shape, with the width of V as its last dimension.

    Sequence b holds lengths[b] tokens. The first queries[b] of its queries (None: all) belong to
    its newest tokens, one each. A query attends to all tokens before the newest ones, and among the
    newest to those of the mask, or of the words in `tree`, [queries] or [B, queries]. With a window
    each query attends to the last `window` of its tokens. A query without tokens gives zeros.
    """
    spans = _spans(q, lengths, window, mask, tree, queries, scores.kept)
    held, own = _held(spans), _with_queries(q)
    out = _sums(_weights(own, rows, spans, held, scores), held, rows)
    return out.reshape(*q.shape[:-1], out.shape[3])


def attention_in_steps(
    q: np.ndarray,
    rows: Rows,
    lengths: Lengths,
    levels: tuple[Levels, Levels],
    window: int | None = None,
    mask: str = CHAIN,
    tree: np.ndarray | Sequence[int] | None = None,
    queries: Sequence[int] | np.ndarray | None = None,
    scores: Scores = PLAIN,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a kernel that rounds q and the softmax weights should give: the answer with q
    rounded likewise, and how far the rounded weights can shift it.

    levels: of K and of V, as from kvb_levels. Each weight is off by at most half a step, with
    either sign on ordinary data; so the result is six standard deviations of the sum.
    """
    of_k, of_v = levels
    spans, shape = _spans(q, lengths, window, mask, tree, queries, scores.kept), q.shape[:-1]
    held, q = _held(spans), _as_taken(_with_queries(q), of_k, _scale_of(q, scores))
    weights = _weights(q, rows, spans, held, scores)
    out = _sums(weights, held, rows)
    variance = np.zeros(out.shape)
    for b, d in product(range(len(q)), range(0, out.shape[3], of_v.together)):
        # elements that share a scale of V share weights
        one, part = slice(b, b + 1), slice(d, d + of_v.together)
        own = _of(rows, one, part)
        off = _variances(weights[one].copy(), of_v, held, own)
        variance[one, ..., part] = _sums(
            off, held, lambda *at, own=own: (None, _codes(own(*at)[1]) ** 2)
        )
    shape = (*shape, out.shape[3])
    return out.reshape(shape), 6 * np.sqrt(variance).reshape(shape)


# ---- which tokens a query attends to -------------------------------------------------------------


def _with_queries(q: np.ndarray) -> np.ndarray:
    """q as [B, queries, Hq, D]."""
    return q if q.ndim == 4 else q[:, None]


def _spans(
    q: np.ndarray,
    lengths: Lengths,
    window: int | None,
    mask: str,
    tree: np.ndarray | Sequence[int] | None,
    queries: Sequence[int] | np.ndarray | None,
    kept: int,
) -> list[list[_Span | None]]:
    """The span of each query of each sequence; None if it attends to no token."""
    batch, most = _with_queries(q).shape[:2]
    words = np.broadcast_to(tokens_seen(mask, most) if tree is None else tree, (batch, most))
    counts = np.full(batch, most) if queries is None else queries
    return [
        [
            _span(int(length), int(count), query, int(word), window, kept)
            if query < count
            else None
            for query, word in enumerate(own)
        ]
        for length, count, own in zip(lengths, counts, words, strict=True)
    ]


def _span(
    length: int, count: int, query: int, word: int, window: int | None, kept: int
) -> _Span | None:
    """The span of one of `count` queries of a sequence."""
    before = length - count  # below 0 if there are more queries than tokens
    older, start = max(0, before), 0
    newest = tuple(token for token in range(older, length) if word >> token - before & 1)
    every = newest
    if window:
        newest = newest[-window:]
        start = max(0, older - (window - len(newest)))
    first = min(kept, older)
    newest = tuple(token for token in every if token < kept or token in newest)
    span = _Span(min(first, start), start, older, newest, before + query)
    return span if newest or start < older or first else None


def _held(spans: list[list[_Span | None]]) -> _Ranges:
    """Ranges that cover all tokens that any query attends to."""
    some = [span for own in spans for span in own if span]
    kept = max((span.kept for span in some), default=0)
    first = min((span.start for span in some), default=0)
    last = max((span.end for span in some), default=0)
    return [(0, min(kept, first)), (first, last)] if kept else [(first, last)]


# ---- the sums ------------------------------------------------------------------------------------


def _scale_of(q: np.ndarray, scores: Scores) -> float:
    return scores.scale or 1 / np.sqrt(q.shape[-1])


def _as_taken(q: np.ndarray, levels: Levels, scale_of_scores: float) -> np.ndarray:
    """q as the kernel uses it: in float32, times the scale of the scores, then rounded."""
    scale = np.float32(scale_of_scores) * np.float32(1.44269504)
    scaled = q.astype(np.float32) * scale
    own = _significant(scaled, levels.bits) if levels.bits else _in_steps(scaled, levels)
    return own / np.float64(scale)


def _significant(values: np.ndarray, bits: int) -> np.ndarray:
    share, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(share, bits)), exponent - bits)


def _in_steps(scaled: np.ndarray, levels: Levels) -> np.ndarray:
    """Round to steps of 1 / levels.most of the largest element of each head, or of each group of
    `together` elements.
    """
    together, dim = levels.together, scaled.shape[3]
    most = np.maximum.reduceat(np.abs(scaled), np.arange(0, dim, together), axis=3)
    most = np.repeat(most, together, axis=3)[..., :dim]
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = np.where(most > 0, np.rint(scaled * (np.float32(levels.most) / most)), 0)
    return codes * (most / np.float32(levels.most)).astype(np.float64)


def _of(rows: Rows, sequence: slice, elements: slice) -> _Values:
    """A function that reads some elements of V of one sequence."""
    return lambda first, count: (None, rows(first, count)[1][sequence, ..., elements])


def _codes(v: np.ndarray) -> np.ndarray:
    """Rows in units of their largest element."""
    most = np.abs(v).max(axis=-1, keepdims=True)
    return np.divide(v, most, out=np.zeros_like(v), where=most > 0)


def _variances(weights: np.ndarray, levels: Levels, held: _Ranges, rows: _Values) -> np.ndarray:
    """The variance from rounding of each weight times the largest element of its row, computed in
    place.

    A step is a share of the weight itself, or of the largest weight in the token's tile. A tile may
    begin at any token and has at most TILE tokens.
    """
    for place, at, count in _blocks(held):
        _, v = rows(at, count)
        for queried, stored in _heads(weights, v):
            weights[queried][..., place] *= np.abs(v[stored]).max(axis=-1)
        del v, _
    if levels.bits:
        weights *= 2.0**-levels.bits
        return np.divide(np.square(weights, out=weights), 3, out=weights)
    tokens = weights.shape[3]
    for row in np.ndindex(weights.shape[:3]):
        tiles = np.pad(weights[row], (TILE, -tokens % TILE + TILE)).reshape(-1, TILE).max(axis=1)
        near = np.maximum(np.maximum(tiles[:-2], tiles[1:-1]), tiles[2:])
        off = np.repeat((near / levels.most) ** 2 / 12, TILE)[:tokens]
        off[weights[row] == 0] = 0.0  # a weight of 0 is exact
        weights[row] = off
    return weights


def _weights(
    q: np.ndarray, rows: Rows, spans: list[list[_Span | None]], held: _Ranges, asked: Scores
) -> np.ndarray:
    """The weights of the held tokens: [B, queries, Hq, tokens held]."""
    scores = np.full((*q.shape[:3], len(_tokens(held))), -np.inf)
    queries = q.astype(np.float64) * _scale_of(q, asked)
    for place, at, count in _blocks(held):
        k, _ = rows(at, count)
        for queried, stored in _heads(q, k):
            scores[queried][..., place] = _product(queries[queried], k[stored].astype(float).T)
        del k, _  # make room for the next block
    return _softmax(scores, spans, _tokens(held), asked)


def _sums(weights: np.ndarray, held: _Ranges, rows: _Values) -> np.ndarray:
    """Sums of the values, each times its weight: [B, queries, Hq, D]."""
    first, last = held[-1]
    width = rows(first, min(1, last - first))[1].shape[-1]
    out = np.zeros((*weights.shape[:3], width))
    for place, at, count in _blocks(held):
        _, v = rows(at, count)
        for queried, stored in _heads(weights, v):
            out[queried] += _product(weights[queried][..., place], v[stored].astype(float))
        del v, _
    return out


def whole(k: np.ndarray, v: np.ndarray) -> Rows:
    """A Rows function over arrays that hold all tokens."""
    return lambda first, count: (k[:, first : first + count], v[:, first : first + count])


def rounded(rows: np.ndarray, dtype: str) -> np.ndarray:
    """float32 rows rounded to a dtype, as a kernel does that rounds while it reads. f16 is NumPy's
    2-byte float. Values beyond its range become infinite.
    """
    with np.errstate(over="ignore"):
        return rows.astype(f"f{int(dtype.removeprefix('f')) // 8}").astype(np.float32)


# The coarsest rounding among formats, by bytes per element: half a step, as a share of the element,
# and as an absolute value near zero.
_STEPS = {4: (0.0, 0.0), 2: (2.0**-8, 2.0**-25), 1: (2.0**-3, 2.0**-10)}
# For elements that share a scale, by elements and bytes of a block: half a step, as a share of the
# largest element. A 4-bit block has one code less for the sign opposite to its largest element, and
# its scale is rounded, too.
_SCALED_STEPS = {(1, 1): 1 / 250, (32, 34): 1 / 220, (32, 18): 1 / 7.9}


def rounding(rows: np.ndarray, block: tuple[int, int], scaled: bool) -> np.ndarray:
    """By how much each element may be off after it is stored in blocks of `block` = (elements,
    bytes). scaled: each row has a scale.
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
    """The largest error that float32 arithmetic explains on ordinary data. v: the largest magnitude
    of a value.
    """
    return (2e-6 if tokens <= _LONG else 1e-5) * v


def _tokens(held: _Ranges) -> np.ndarray:
    return np.concatenate([np.arange(*own) for own in held])


def _blocks(held: _Ranges) -> Iterator[tuple[slice, int, int]]:
    """The blocks of the held tokens: their positions among these, the first token, and the
    count.
    """
    before = 0
    for first, last in held:
        for at in range(first, last, BLOCK):
            count = min(BLOCK, last - at)
            yield slice(before, before + count), at, count
            before += count


def _heads(
    q: np.ndarray, rows: np.ndarray
) -> Iterator[tuple[tuple[int, slice, slice], tuple[int, slice, int]]]:
    """For each sequence and KV head: the index of its group's queries, and the index of its
    rows.
    """
    group, every = q.shape[2] // rows.shape[2], slice(None)
    for b, h in product(range(len(q)), range(rows.shape[2])):
        yield (b, every, slice(h * group, (h + 1) * group)), (b, every, h)


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[queries, heads, n] times [n, m], as one matrix product."""
    return (left.reshape(-1, left.shape[2]) @ right).reshape(*left.shape[:2], -1)


def _softmax(
    scores: np.ndarray, spans: list[list[_Span | None]], tokens: np.ndarray, asked: Scores
) -> np.ndarray:
    """The softmax in place, over the tokens that each query attends to. Other tokens have weight
    0.
    """
    sinks = np.full(scores.shape[2], -np.inf) if asked.sinks is None else _by_head(asked.sinks)
    for b, query in np.ndindex(scores.shape[:2]):
        own, span = scores[b, query], spans[b][query]
        if not span:
            own[:] = 0.0
            continue
        if asked.softcap:
            own /= asked.softcap
            np.tanh(own, out=own)
            own *= asked.softcap
        if asked.slopes is not None:
            own += _by_head(asked.slopes)[:, None] * (tokens - span.own)
        own[:, _left_out(span, tokens)] = -np.inf
        _weigh(own, sinks)
    return scores


def _by_head(values: Sequence[float] | np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float32).astype(float)


def _left_out(span: _Span, tokens: np.ndarray) -> np.ndarray:
    """Which tokens the query does not attend to."""
    older = (tokens < span.older) & ((tokens < span.kept) | (tokens >= span.start))
    return ~(older | np.isin(tokens, span.newest))


def _weigh(scores: np.ndarray, sinks: np.ndarray) -> None:
    """The softmax of one query in place, [Hq, tokens]. A sink takes its share, but has no value."""
    most = np.maximum(scores.max(axis=1), sinks)
    scores -= most[:, None]
    np.exp(scores, out=scores)
    scores /= (scores.sum(axis=1) + np.exp(sinks - most))[:, None]
