"""Decode and the tests' oracle against PyTorch's scaled_dot_product_attention in float64, over
masks that are made here anew, by comparisons of all tokens at once. A mask has the slopes in it,
and a sink is a token of its own, all of zeros; capped scores are PyTorch's, too.
"""

from collections import Counter
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from tests import cases, oracle, trial
from tests.queries import BLOCK, CHAIN, ONE
from tests.scores import Scores

torch = pytest.importorskip("torch")
SEED = 75
FEATURES = 8
EXACT = ("flash", "twopass", "perhead")  # they round neither queries nor weights


def mask_of(case: cases.Case) -> np.ndarray:
    """Return whether each query attends to each token: [B, queries, T]."""
    asked = case.queries
    token, length = np.arange(case.lengths.max()), case.lengths[:, None, None]
    ends, there, newest = placed(case)
    if asked.mask == CHAIN:
        mask = token < ends
    elif asked.mask == BLOCK:
        mask = there & (token < length)
    else:
        bit = token - newest
        seen = asked.tree[:, :, None] >> np.clip(bit, 0, 31).astype(np.uint32) & 1 == 1
        mask = there & (token < length) & ((bit < 0) | seen)
    later = mask[..., ::-1].cumsum(axis=2)[..., ::-1]  # it and those behind it
    return mask & ((later <= case.window) | (token < asked.kept)) if case.window else mask


def placed(case: cases.Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ends of a chain's queries, [B, queries, 1]; which queries exist; and the first of
    a sequence's newest tokens, [B, 1, 1].
    """
    asked, number = case.queries, np.arange(case.queries.count)[None, :, None]
    length = case.lengths[:, None, None]
    ends = length - (asked.count - 1 - number) if asked.ends is None else asked.ends[:, :, None]
    there = np.ones(ends.shape, bool) if asked.ends is None else ends > 0
    return ends, there, length - np.where(there, number + 1, 0).max(axis=1, keepdims=True)


def added(case: cases.Case, mask: np.ndarray) -> torch.Tensor:
    """Return what is added to scores: [B, Hq, queries, T + 1]. The last is a sink, or nothing."""
    ends, _, newest = placed(case)
    own = ends - 1 if case.queries.mask == CHAIN else newest + np.arange(ends.shape[1])[:, None]
    distance = np.arange(mask.shape[2]) - own
    slopes, sinks = (
        np.full(case.q_heads, none) if given is None else given.astype(float)
        for given, none in ((case.scores.slopes, 0.0), (case.scores.sinks, -np.inf))
    )
    found = slopes[:, None, None] * distance[:, None]
    found = np.where(mask[:, None], found, -np.inf)
    last = np.broadcast_to(sinks[:, None, None], (*found.shape[:3], 1))
    return torch.from_numpy(np.concatenate((found, last), axis=3))


def rows_of(case: cases.Case) -> list[torch.Tensor]:
    """Return K and V of each query head, float64 [B, Hq, T + 1, dim]. Tokens that no query attends
    to, and the last one, are zero.
    """
    shape, tokens = case.shape, int(case.lengths.max()) + 1
    found = [np.zeros((shape.batch, shape.kv_heads, tokens, side.dim)) for side in shape.sides]
    for seq, ranges in enumerate(case.ranges):
        for first, end in ranges:
            rows = oracle.load(shape, case.planes, case.table, seq, first, end - first)
            for own, plane in zip(rows, found, strict=True):
                plane[seq, :, first:end] = own
    group = case.q_heads // shape.kv_heads
    return [torch.from_numpy(plane.repeat(group, axis=1)) for plane in found]


def attention(case: cases.Case) -> np.ndarray:
    """Compute attention [B * queries, Hq, Dv]; zero if a query attends to no token."""
    shape, mask = case.shape, mask_of(case)
    q = case.q.reshape(shape.batch, -1, *case.q.shape[1:]).swapaxes(1, 2).astype(np.float64)
    scale = case.scale or float(np.float32(1) / np.sqrt(np.float32(shape.head_dim)))
    out = attended(torch.from_numpy(q), *rows_of(case), added(case, mask), scale, case.scores)
    seen = mask.any(axis=2)[:, :, None, None]
    return np.where(seen, out.numpy().swapaxes(1, 2), 0.0).reshape(case.out)


def attended(q, k, v, more, scale: float, asked: Scores) -> torch.Tensor:
    if not asked.softcap:
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(q, k, v, attn_mask=more, scale=scale)
    scores = asked.softcap * torch.tanh(scale * q @ k.transpose(2, 3) / asked.softcap)
    return torch.softmax(scores + more, dim=3).nan_to_num() @ v


def features(case: cases.Case) -> set[str]:
    k, v = case.shape.sides
    has = {
        "queries or masks": case.queries is not ONE,
        "kept": bool(case.queries.kept),
        "softcap": bool(case.scores.softcap),
        "slopes": case.scores.slopes is not None,
        "sinks": case.scores.sinks is not None,
        "pair": k.dtype != v.dtype,
        "width of V": k.dim != v.dim,
        "channel": k.channel is not None,
    }
    return {name for name, there in has.items() if there}


def with_each(words: cases.Words, some: int):
    """Draw random cases until each feature has enough of them."""
    found: Counter[str] = Counter()
    for index in count():
        case = cases.make(words, SEED, index)
        own = features(case) if case.lengths.any() else set()
        if any(found[name] < some for name in own):
            found.update(own)
            yield case if case.variant in EXACT else replace(case, variant="flash")
        if len(found) == FEATURES and min(found.values()) >= some:
            return


@pytest.mark.parametrize("some", [3, pytest.param(100, marks=pytest.mark.full)])
def test_attention_of_pytorch(bench, some):
    for case in with_each(bench.words, some):
        right = attention(case)
        own, bound = cases.answer(case)
        assert np.abs(own - right).max() <= 1e-10 * (1 + np.abs(right).max()), case.name
        for isa in bench.raw.tiers():
            if bench.words.runs(case.variant, case.shape, isa):
                assert trial.decode_failures(bench, case, isa, right, bound) == [], case.name
