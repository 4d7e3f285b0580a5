"""Several queries of a sequence at once, each with its own end: each is answered as it would be by
by itself, against the oracle.
"""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from tests import cases, trial
from tests.raw import Bound, Refused, decode_args

CASES = 60


def drawn(bench, index):
    """A random case whose sequences are there from their first token on, with up to five queries,
    and what each of them attends to: null ends are the last tokens'.
    """
    case = cases.make(bench.words, 71, index)
    rng = np.random.default_rng(index)
    count = int(rng.integers(2, 6))
    if case.window or (case.lengths > case.shape.capacity).any():
        return None
    last = np.maximum(0, case.lengths[:, None] - np.arange(count)[::-1])
    given = index % 2
    ends = rng.integers(0, case.lengths[:, None] + 1, last.shape) if given else last
    q = rng.standard_normal((case.shape.batch, count, *case.q.shape[1:]), dtype=np.float32)
    return case, q, ends, given


def answers(case, q, ends):
    """Of each query by itself: [B, queries, Hq, Dv], twice."""
    each = [
        cases.answer(replace(case, q=q[:, query], lengths=ends[:, query]))
        for query in range(q.shape[1])
    ]
    return (np.stack(part, axis=1) for part in zip(*each, strict=True))


def test_each_query_is_answered_as_if_it_were_the_only_one(bench, isa):
    ran = 0
    for case, q, ends, given in filter(None, (drawn(bench, index) for index in range(CASES))):
        if not bench.words.runs(case.variant, case.shape, isa):
            continue
        expected, bound = answers(case, q, ends)
        with ExitStack() as stack:
            cache = stack.enter_context(
                Bound(bench.raw, case.shape, case.lengths, case.table, case.guard)
            )
            cache.put(case.planes)
            flat = bench.floats(stack, q.reshape(-1, *q.shape[2:]), case.guard)
            out = bench.floats(stack, np.full(expected.shape, trial.SENTINEL), case.guard)
            told = np.ascontiguousarray(ends, dtype=np.int64)
            more = {"ends": bench.raw.ffi.cast("int64_t *", told.ctypes.data)} if given else {}
            args = decode_args(
                bench.raw, cache, flat, out, isa, case.variant, case.schedule,
                deterministic=case.deterministic, scale=case.scale, q_len=q.shape[1], **more,
            )  # fmt: skip
            bench.team(case.threads).do("decode", args)
            found = trial.compare(case, out, expected, bound)
        assert found == [], (case.index, case.shape, case.q_heads, q.shape[1])
        ran += 1
    assert ran > CASES / 4


@pytest.mark.parametrize("beyond", [-1, 1])
def test_an_end_is_within_its_sequence(bench, beyond):
    case = next(filter(None, (drawn(bench, index) for index in range(CASES))))[0]
    ends = np.zeros(case.shape.batch, dtype=np.int64)
    ends[-1] = beyond if beyond < 0 else case.lengths[-1] + beyond
    with Bound(bench.raw, case.shape, case.lengths, case.table) as cache:
        args = decode_args(
            bench.raw, cache, case.q, np.zeros(case.out, np.float32), "scalar", case.variant,
            ends=bench.raw.ffi.cast("int64_t *", ends.ctypes.data),
        )  # fmt: skip
        message = (
            rf"ends\[{len(ends) - 1}\] is {ends[-1]}; its sequence has {case.lengths[-1]} tokens"
        )
        with pytest.raises(Refused, match=message):
            bench.team(1).do("decode", args)
