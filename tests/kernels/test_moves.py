"""repack and fill. Other moves, and the probes, are what kvbench verify checks (tests/verify)."""

import numpy as np
import pytest

from tests import oracle
from tests.oracle import Planes, Shape
from tests.raw import Bound, Refused, decode_args


def shape_of(dtype="f16", **more):
    facts = {"layout": "head", "batch": 2, "kv_heads": 3, "head_dim": 40, "capacity": 20, "block_tokens": 4,
             "blocks": 10}  # fmt: skip
    return Shape(dtype=dtype, **(facts | more))


@pytest.mark.parametrize("layout", ["head", "blockt"])
@pytest.mark.parametrize("dtype", oracle.CELL)
@pytest.mark.parametrize(("old", "new", "pad"), [(20, 21, 0), (20, 40, 320), (1, 300, 0), (20, 20, 0), (17, 64, 64)])
def test_repack_grows_in_place(raw, layout, dtype, old, new, pad):
    small, large = (shape_of(dtype, layout=layout, capacity=capacity, pad=pad) for capacity in (old, new))
    lengths, rng = [old, old // 2], np.random.default_rng(old)
    with Bound(raw, large, [0, 0], guard=1) as room:
        view = raw.ffi.new("kvb_cache *", room.cache[0])
        view.capacity = old
        held = np.array(lengths, np.int64)
        view.lengths = raw.ffi.cast("int64_t *", held.ctypes.data)
        raw.check(raw.lib.kvb_cache_plan(view))
        raw.check(raw.lib.kvb_cache_bind(view, room.arena.base))
        before = Planes.filled(small, 0xFF)
        for seq, length in enumerate(lengths):
            k, v = rng.standard_normal((2, length, 3, 40)).astype(np.float32)
            oracle.store(small, before, None, seq, 0, k, v)
        pointers = ((view.k.rows, view.k.bytes), (view.v.rows, view.v.bytes), (view.k.scales, view.k.scale_bytes),
                    (view.v.scales, view.v.scale_bytes))  # fmt: skip
        for (pointer, size), plane in zip(pointers, before.all(), strict=True):
            if size:
                raw.bytes_at(pointer, size)[:] = plane
        raw.check(raw.lib.kvb_repack(view, room.cache))
        assert room.lengths.tolist() == lengths
        for seq, length in enumerate(lengths):
            right, got = (oracle.load(shape, planes, None, seq, 0, length)
                          for shape, planes in ((small, before), (large, room.planes)))  # fmt: skip
            assert all(np.array_equal(a, b) for a, b in zip(right, got, strict=True))


def test_repack_refuses_other_layouts(raw):
    with Bound(raw, shape_of(layout="position"), [1, 1]) as bound, pytest.raises(Refused, match="layout"):
        raw.check(raw.lib.kvb_repack(bound.cache, bound.cache))


@pytest.mark.parametrize("layout", ["head", "position", "paged"])
@pytest.mark.parametrize("dtype", oracle.STORED)
def test_fill_is_random_and_the_same_everywhere(bench, isa, layout, dtype):
    shape = shape_of(dtype, layout=layout, capacity=300, blocks=160, head_dim=64)
    table = np.arange(150, dtype=np.int32).reshape(2, 75) if layout == "paged" else None
    rows = []
    for threads in (1, 3):
        with Bound(bench.raw, shape, [300, 120], table, guard=1) as bound:
            bound.put(Planes.filled(shape, 0xFF))
            q = np.zeros((2, 6, 64), np.float32)
            args = decode_args(bench.raw, bound, q, q.copy(), isa)
            task = bench.raw.ffi.new("kvb_task **")
            bench.raw.check(bench.raw.lib.kvb_task_fill(args, threads, 42, task))
            bench.team(threads).run(task[0])
            bench.raw.lib.kvb_task_free(task[0])
            k, v = oracle.load(shape, bound.planes, table, 0, 0, 300)
            rows.append((k.tobytes(), v.tobytes()))
    assert rows[0] == rows[1]
    assert abs(k.mean()) < 0.05 and abs(k.std() - 1) < 0.05 and abs(v.std() - 1) < 0.05
    for one, two in ((k[:, 1:], k[:, :-1]), (k[:, 1:, :-1], k[:, :-1, 1:]), (k[:1], k[1:2]), (k, v)):
        assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 0.05
