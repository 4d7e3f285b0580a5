"""repack, transpose, logits, fill, and the probes that write."""

import numpy as np
import pytest

from tests import oracle
from tests.oracle import Planes, Shape
from tests.raw import Arena, Bound, Refused, decode_args


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


@pytest.mark.parametrize(("rows", "heads", "dim"), [(1, 1, 1), (7, 3, 5), (64, 8, 128), (33, 2, 17)])
def test_transpose_and_back(raw, rows, heads, dim):
    source = np.random.default_rng(dim).standard_normal((rows, heads, dim)).astype(np.float32)
    turned, back = np.empty((heads, rows, dim), np.float32), np.empty_like(source)
    raw.check(raw.lib.kvb_transpose(raw.floats(source), raw.floats(turned), rows, heads, dim, 1))
    assert np.array_equal(turned, source.swapaxes(0, 1))
    raw.check(raw.lib.kvb_transpose(raw.floats(turned), raw.floats(back), rows, heads, dim, 0))
    assert np.array_equal(back, source)


def test_logits(raw):
    matrix = np.arange(24, dtype=np.float32).reshape(4, 6)
    right = matrix.copy()
    right[2] = right[0]
    raw.check(raw.lib.kvb_logits(raw.floats(matrix[0]), raw.floats(matrix), 2, 4, 6))
    assert np.array_equal(matrix, right)
    raw.check(raw.lib.kvb_logits(raw.floats(matrix[2]), raw.floats(matrix), 2, 4, 6))
    assert np.array_equal(matrix, right)


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


# ---- probes -------------------------------------------------------------------------------------------------------


def probe(bench, op, isa, size, threads=1, **more):
    """Run a probe over three guarded buffers of random floats; returns them after it, and as they were."""
    raw, count = bench.raw, size // 4
    arenas = [Arena(raw, size, guard=1) for _ in range(3)]
    views = [arena.floats(count, at_end=True) for arena in arenas]
    for index, view in enumerate(views):
        view[:] = np.random.default_rng(index).standard_normal(count)
    before = [view.copy() for view in views]
    args = raw.ffi.new("kvb_probe *")
    args.op, args.isa, args.bytes, args.steps = raw.word("op", op), raw.word("isa", isa), size, 10
    args.a, args.b, args.c = (arena.base for arena in arenas)
    for name, value in more.items():
        setattr(args, name, value)
    bench.team(threads).do("probe", args)
    after = [view.copy() for view in views]
    for arena in arenas:
        arena.close()
    return after, before


@pytest.mark.parametrize("size", [64, 448, 512, 4096 + 64, 100 * 64])
@pytest.mark.parametrize("threads", [1, 3])
class TestProbes:
    @pytest.mark.parametrize("distance", [0, 2048])
    def test_read_writes_nothing(self, bench, isa, size, threads, distance):
        after, before = probe(bench, "read", isa, size, threads, distance=distance)
        assert all(np.array_equal(a, b) for a, b in zip(after, before, strict=True))

    @pytest.mark.parametrize("op", ["write", "write_nt"])
    def test_write(self, bench, isa, size, threads, op):
        after, before = probe(bench, op, isa, size, threads)
        assert (after[0] == after[0][0]).all() and not (after[0] == before[0]).any()
        assert np.array_equal(after[1], before[1])

    @pytest.mark.parametrize("op", ["copy", "copy_nt"])
    @pytest.mark.parametrize("distance", [0, 1024])
    def test_copy(self, bench, isa, size, threads, op, distance):
        after, before = probe(bench, op, isa, size, threads, distance=distance)
        assert np.array_equal(after[0], before[1]) and np.array_equal(after[1], before[1])

    def test_triad(self, bench, isa, size, threads):
        after, before = probe(bench, "triad", isa, size, threads)
        assert np.allclose(after[0], before[1] + 3 * before[2], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lines", [1, 2, 3, 100, 4097])
def test_chain_is_one_cycle(raw, lines):
    with Arena(raw, 64 * lines, guard=1) as arena:
        raw.check(raw.lib.kvb_chain(arena.base, 64 * lines, 7))
        links = raw.bytes_at(arena.base, 64 * lines).view(np.uint64)[::8]
        base, at, seen = int(raw.ffi.cast("uintptr_t", arena.base)), 0, set()
        while at not in seen:
            seen.add(at)
            at = (int(links[at]) - base) // 64
    assert len(seen) == lines and at == 0
