"""Series against outside facts: traffic counted by hand, shares of time by an outside clock,
outputs by the oracle. tests/check/series.c tests what is refused.
"""

import time
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from tests import oracle
from tests.kernels.test_decode import shape_of, table_of
from tests.kernels.test_times import Clocked, run
from tests.raw import Arena, Bound, Team, decode_args, store_args

TOKENS = 530


@contextmanager
def series_of(raw, tasks, kinds, threads=1):
    pointers = raw.ffi.new("kvb_task *[]", tasks)
    own = raw.ffi.new("int32_t[]", kinds)
    with raw.task("series", pointers, own, len(tasks), threads) as task:
        yield task


def test_shares_are_those_of_the_clock(raw, team):
    """Each part takes at least its own time, and all parts at most the time of the series."""
    parts = [Clocked(raw, lambda seconds=s: time.sleep(seconds)) for s in (0.002, 0.03, 0.01)]
    with ExitStack() as stack:
        tasks = [stack.enter_context(part).task for part in parts]
        order, kinds = [0, 1, 2, 1], [2, 0, 2, 1]  # the second task at two places, of two kinds
        series = stack.enter_context(series_of(raw, [tasks[i] for i in order], kinds))
        times, each, own, outside = run(raw, team, series, 3)
    spans = [part.seconds() for part in parts]
    assert [len(span) for span in spans] == [3, 6, 3]
    inside = [sum(spans[1][0::2]), sum(spans[1][1::2]), sum(spans[0]) + sum(spans[2])]
    shares = list(times.stage_share)
    assert sum(shares) == pytest.approx(1)
    for share, seconds in zip(shares, inside, strict=True):
        most = outside - (sum(inside) - seconds)
        assert seconds / outside <= share <= most / sum(inside)
    assert sum(inside) <= own <= times.seconds * (1 + 1e-6) <= outside * (1 + 1e-6)
    assert sum(each) == pytest.approx(times.seconds, rel=1e-6)


def test_parts_run_in_turn(raw, team):
    """In each pass, a part begins only when the part before it has ended."""
    with ExitStack() as stack:
        parts = [stack.enter_context(Clocked(raw, lambda: None)) for _ in range(3)]
        tasks = [parts[i].task for i in (2, 0, 1)]
        run(raw, team, stack.enter_context(series_of(raw, tasks, [0, 0, 0])), 4)
    order = [span for spans in zip(*(parts[i].spans for i in (2, 0, 1)), strict=True)
             for span in spans]  # fmt: skip
    assert len(order) == 12
    assert all(a[1] <= b[0] for a, b in zip(order, order[1:], strict=False))


def test_shares_of_a_run_before_are_forgotten(raw, team):
    with Clocked(raw, lambda: None) as clocked:
        for kind in (1, 2):
            with series_of(raw, [clocked.task], [kind]) as task:
                share = list(run(raw, team, task, 1)[0].stage_share)
            assert share == [kind == at for at in range(3)]
        assert list(run(raw, team, clocked.task, 1)[0].stage_share) == [0, 0, 0]


def test_traffic_is_the_sum(raw):
    """Bytes and FLOPs of two heads of 96 f16 are computed by hand. A part that occurs twice counts
    twice.
    """
    shape = shape_of(capacity=TOKENS)
    row = 2 * shape.kv_heads * shape.head_dim
    with ExitStack() as stack:
        bound = stack.enter_context(Bound(raw, shape, [TOKENS - 1]))
        q = np.zeros((1, 6, shape.head_dim), np.float32)
        kv = np.zeros((1, 1, shape.kv_heads, shape.head_dim), np.float32)
        decode = decode_args(raw, bound, q, q.copy(), "scalar")
        append = store_args(raw, bound, kv, kv, 1, "scalar")
        arena = stack.enter_context(Arena(raw, 640))
        facts = {"op": raw.word("op", "read"), "bytes": 640, "piece": 128, "a": arena.base}
        read = raw.ffi.new("kvb_probe *", facts)
        makers = (("append", append), ("decode", decode), ("probe", read))
        tasks = [stack.enter_context(raw.task(maker, args, 2)) for maker, args in makers]
        found = raw.ffi.new("kvb_traffic *")
        series = stack.enter_context(series_of(raw, [*tasks, tasks[2]], [0, 1, 2, 2], threads=2))
        raw.check(raw.lib.kvb_task_traffic(series, found))
    decoded, flops = 2 * (TOKENS - 1) * row + 2 * q.nbytes, 4 * 6 * (TOKENS - 1) * shape.head_dim
    assert found.flops == flops
    assert found.compulsory == 2 * row + 2 * kv.nbytes + decoded + 2 * 128
    assert found.kv == 2 * TOKENS * row
    assert found.ai == pytest.approx(flops / found.compulsory)


class Grown:
    """A cache that has all of TOKENS tokens but the last one, and the cache as it should become."""

    def __init__(self, layout, dtype, ring):
        capacity = ring or TOKENS
        self.shape = shape_of(layout, dtype, capacity=capacity, ring=bool(ring), scale="f32")
        rng, self.table = np.random.default_rng(5), table_of(self.shape)
        rows = TOKENS, self.shape.kv_heads, self.shape.head_dim
        k, v = rng.standard_normal((2, *rows), dtype=np.float32)
        self.last = 3 * k[-1:], 50 * v[-1:]  # values that show in every output
        self.q = rng.standard_normal((1, 6, self.shape.head_dim), dtype=np.float32)
        self.stale = oracle.Planes.filled(self.shape, 0)
        oracle.store(self.shape, self.stale, self.table, 0, 0, k[:-1], v[:-1])
        self.right = self.stale.copy()
        oracle.store(self.shape, self.right, self.table, 0, TOKENS - 1, *self.last)

    def answers(self, ring):
        """Return outputs and bounds of a decode of TOKENS after the store, and before it."""
        facts = [TOKENS], self.q, ring
        return [
            oracle.decode(self.shape, planes, self.table, *facts)
            for planes in (self.right, self.stale)
        ]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        ("head", "f32"),
        ("paged", "f16"),
        ("blockt", "i8"),
        ("block16", "q4_0"),
        ("position", "q8_0"),
    ],
)
@pytest.mark.parametrize("ring", [0, 300])
def test_a_decode_sees_the_token_that_is_stored_in_front_of_it(
    raw, isa, layout, dtype, threads, ring
):
    """In a swapped series it does not: there the store and the decode have two lengths."""
    made, shorter = Grown(layout, dtype, ring), np.array([TOKENS - 1])
    answers, out = made.answers(ring), np.empty_like(made.q)
    with ExitStack() as stack:
        after = stack.enter_context(Bound(raw, made.shape, [TOKENS], made.table, guard=1))
        team = stack.enter_context(Team(raw, threads))
        before = raw.ffi.new("kvb_cache *", after.cache[0])
        before.lengths = raw.ffi.cast("int64_t *", shorter.ctypes.data)
        put = store_args(raw, after, *made.last, 1, isa)
        put.cache = before
        decode = decode_args(raw, after, made.q, out, isa, window=ring)
        append = stack.enter_context(raw.task("append", put, threads))
        attend = stack.enter_context(raw.task("decode", decode, threads))
        orders = (append, attend), (attend, append)
        for order, (expected, bound) in zip(orders, answers, strict=True):
            after.put(made.stale)
            with series_of(raw, order, [0, 1], threads) as series:
                team.run(series)
            assert (np.abs(out - expected) <= bound).all()
            for found, right in zip(after.planes.all(), made.right.all(), strict=True):
                assert np.array_equal(found, right)
    assert (np.abs(answers[0][0] - answers[1][0]) > answers[0][1] + answers[1][1]).any()
