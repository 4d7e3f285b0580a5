"""Decode and the tests' oracle against PyTorch's scaled_dot_product_attention in float64, over
boolean masks that are made here anew, by comparisons of all tokens at once.
"""

from dataclasses import replace
from itertools import count, islice

import numpy as np
import pytest

from tests import cases, oracle, trial
from tests.queries import BLOCK, CHAIN, ONE

torch = pytest.importorskip("torch")
SEED = 74
EXACT = ("flash", "twopass", "perhead")  # they round neither queries nor weights


def mask_of(case: cases.Case) -> np.ndarray:
    """[B, queries, T]: whether a query attends to a token."""
    asked = case.queries
    token, number = np.arange(case.lengths.max()), np.arange(asked.count)[None, :, None]
    length = case.lengths[:, None, None]
    ends = length - (asked.count - 1 - number) if asked.ends is None else asked.ends[:, :, None]
    there = np.ones(ends.shape, bool) if asked.ends is None else ends > 0
    newest = length - np.where(there, number + 1, 0).max(axis=1, keepdims=True)
    if asked.mask == CHAIN:
        mask = token < ends
    elif asked.mask == BLOCK:
        mask = there & (token < length)
    else:
        bit = token - newest
        seen = asked.tree[:, :, None] >> np.clip(bit, 0, 31).astype(np.uint32) & 1 == 1
        mask = there & (token < length) & ((bit < 0) | seen)
    later = mask[..., ::-1].cumsum(axis=2)[..., ::-1]  # it and those behind it
    return mask & (later <= case.window) if case.window else mask


def rows_of(case: cases.Case) -> list[torch.Tensor]:
    """K and V of each query head, float64 [B, Hq, T, dim]; zero where nobody attends."""
    shape, tokens = case.shape, int(case.lengths.max())
    found = [np.zeros((shape.batch, shape.kv_heads, tokens, side.dim)) for side in shape.sides]
    for seq, (first, end) in enumerate(case.spans):
        rows = oracle.load(shape, case.planes, case.table, seq, first, end - first)
        for own, plane in zip(rows, found, strict=True):
            plane[seq, :, first:end] = own
    group = case.q_heads // shape.kv_heads
    return [torch.from_numpy(plane.repeat(group, axis=1)) for plane in found]


def attention(case: cases.Case) -> np.ndarray:
    """[B * queries, Hq, Dv]; zero where a query attends to nothing."""
    shape, mask = case.shape, mask_of(case)
    q = case.q.reshape(shape.batch, -1, *case.q.shape[1:]).swapaxes(1, 2).astype(np.float64)
    out = torch.nn.functional.scaled_dot_product_attention(
        torch.from_numpy(q),
        *rows_of(case),
        attn_mask=torch.from_numpy(mask[:, None]),
        scale=case.scale or float(np.float32(1) / np.sqrt(np.float32(shape.head_dim))),
    )
    seen = mask.any(axis=2)[:, :, None, None]
    return np.where(seen, out.numpy().swapaxes(1, 2), 0.0).reshape(case.out)


def with_queries(words: cases.Words):
    """Random cases of several queries, or masks."""
    for index in count():
        case = cases.make(words, SEED, index)
        if case.queries is not ONE and case.lengths.any():
            runs = case.variant in EXACT
            yield case if runs else replace(case, variant="flash")


@pytest.mark.parametrize("some", [12, pytest.param(300, marks=pytest.mark.full)])
def test_attention_of_pytorch(bench, some):
    for case in islice(with_queries(bench.words), some):
        right = attention(case)
        own, bound = cases.answer(case)
        assert np.abs(own - right).max() <= 1e-10 * (1 + np.abs(right).max()), case.name
        for isa in bench.raw.tiers():
            if bench.words.runs(case.variant, case.shape, isa):
                assert trial.decode_failures(bench, case, isa, right, bound) == [], case.name
