"""A step that grows, token after token, against float64 on its caches' bytes; and faults
meanwhile.
"""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import BadArgument, OutOfMemory, WrongAnswer
from kvbench.machine import describe
from kvbench.model import Shape
from kvbench.model.program import AGAIN, APPENDS, DECODES, LAST, MEMORY, WEIGHTS
from kvbench.native import Cache, default_library
from kvbench.plan.needs import needs_here
from kvbench.worker import growing, visit_growing
from kvbench.worker.answers import Answers
from kvbench.worker.ground import Ground
from kvbench.worker.stepping import Stepping, exact_rows
from kvbench.worker.steproom import room_of
from tests import made_run, oracle
from tests.made_job import CPU

TOKENS = 37  # of blocks of 8: over four borders or five
# context; batch and lengths; window, and of how many layers the last has none
CASES = {
    "even": {"batch": 1},
    "listed": {"batch": 3, "lengths": "listed:40,7,1"},
    "rings": {"batch": 2, "window": 24, "full_every": 3},
    "rings that fill": {"batch": 2, "lengths": "ragged:3", "window": 50, "full_every": 2},
    "rings that turn twice": {"batch": 2, "window": 13},
}
SHAPE = Shape(
    layers=4, batch=1, q_heads=4, kv_heads=2, head_dim=32, context=40, capacity=40, window=0
)
STEP = replace(
    made_run.DECODE,
    op="step",
    shape=SHAPE,
    pages="base",
    cpus=(CPU,),
    isa=default_library().isa(),
    block_tokens=8,
    between=640,
)


def step(case="even", **facts):
    return replace(STEP, shape=replace(SHAPE, **CASES[case]), **facts)


@contextmanager
def bench_of(point):
    end = growing.grown_point(point, TOKENS)
    machine = describe()
    needed = needs_here((end,), machine)[end]
    with (
        Ground(default_library(), machine) as ground,
        room_of(end, needed, ground) as room,
        Stepping(end, needed, room, Answers()) as bench,
    ):
        yield bench


def held_by(cache, point):
    """A cache's content for the oracle: shape, bytes, table and lengths."""
    s, c = point.shape, cache.struct
    shape = oracle.Shape(
        layout=point.layout,
        dtype=point.dtype,
        batch=s.batch,
        kv_heads=s.kv_heads,
        head_dim=s.head_dim,
        capacity=c.capacity,
        block_tokens=point.block_tokens,
        blocks=c.blocks,
        pad=c.pad,
        ring=bool(c.ring),
        scale=point.scale,
    )
    base = cache.library.ffi.cast("uintptr_t", cache.arena.base)
    begin = int(cache.library.ffi.cast("uintptr_t", c.k.rows)) - int(base)
    sizes = [c.k.bytes, c.v.bytes, c.k.scale_bytes, c.v.scale_bytes]
    ends = begin + np.cumsum(sizes)
    view = cache.arena.view()
    planes = oracle.Planes(*(view[end - size : end] for end, size in zip(ends, sizes, strict=True)))
    return shape, planes, cache.table, cache.lengths.copy()


def off(layers, number):
    """How far each layer's answer exceeds its allowed error, and what it stored last."""
    for layer, cache in enumerate(layers.room.caches):
        shape, planes, table, lengths = held_by(cache, layers.point)
        q, out = layers.queries.q[layer], layers.queries.out[layer]
        right, bound = oracle.decode(shape, planes, table, lengths, q, cache.window or 0)
        yield (np.abs(out - right) - bound).max()
        s = layers.point.shape
        token = exact_rows((2, s.batch, s.kv_heads, s.head_dim), number)
        token = token * layers.room.signs[layer][:, None, None]
        for sequence, length in enumerate(lengths):
            own = oracle.load(shape, planes, table, sequence, length - 1, 1)
            found = np.stack(own)[:, :, 0]
            yield np.abs(found - token[:, sequence]).max() - np.abs(token).max() / 8


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("layout", "dtype"), [("head", "f32"), ("paged", "f16"), ("paged", "i8"), ("paged", "q4_0")]
)
def test_every_step_is_right(case, layout, dtype):
    """All layers of each step, right after it."""
    point = step(case, layout=layout, dtype=dtype, order=3 if layout == "paged" else None)
    held, worst, seen = np.array(point.shape.held), 0.0, 0
    with bench_of(point) as bench:
        for sample in growing.Growing(bench, point.shape.held).steps(TOKENS):
            if sample.program != "point":
                continue
            seen += 1
            for layers in bench.parts:
                for cache in layers.room.caches:
                    assert np.array_equal(cache.lengths, held + seen)
                worst = max(worst, *off(layers, sample.round))
    assert seen == TOKENS and worst <= 0


@pytest.mark.parametrize("order", [None, 3])
def test_blocks_are_taken_as_they_are_needed(order):
    """No block belongs to two sequences; the last free blocks are taken at the end."""
    point = step("listed", layout="paged", order=order)
    with bench_of(point) as bench:
        cache = bench.parts[0].room.caches[0]
        whole = cache.table.copy()
        run = growing.Growing(bench, point.shape.held)
        for sample in run.steps(TOKENS):
            if sample.program == "point":
                wanted = -(-cache.lengths // 8)
                assert np.array_equal((cache.table >= 0).sum(axis=1), wanted)
                held = cache.table[cache.table >= 0]
                assert len(set(held.tolist())) == held.size
        assert run._parts[0].pool.free == 0
        assert set(cache.table[cache.table >= 0]) <= set(whole.ravel())


def test_programs_beside_the_steps():
    """The decodes of all tokens but the first and the last, the others at some. At those two their
    answers would hide the step's.
    """
    found = visit_growing(step("rings", layout="paged", order=None), 80, None)
    rounds = {
        name: [sample.round for sample in found.samples if sample.program == name]
        for name in ("point", DECODES, AGAIN, APPENDS, WEIGHTS, MEMORY)
    }
    assert rounds["point"] == list(range(80))
    assert sorted(rounds[DECODES]) == list(range(1, 79))
    assert rounds[AGAIN] == rounds[APPENDS] == rounds[WEIGHTS] == list(range(2, 79, 2))
    assert rounds[MEMORY] == rounds[AGAIN]
    assert all(sample.passes == 1 for sample in found.samples)
    assert found.max_abs_err < 1e-5
    first, last = found.traffic["point"], found.traffic[LAST]
    # 4 layers, of which one has no window, and two sequences
    assert last.bytes_kv - first.bytes_kv == 79 * 2 * (2 * 2 * 32 * 2)
    assert found.traffic[WEIGHTS].bytes_compulsory == 4 * 640
    assert found.point.shape.context == 40


@pytest.mark.parametrize(
    ("word", "context", "capacity", "lengths"),
    [
        ("even", 50, 50, "even"),
        ("listed:40,7", 50, 50, "listed:50,17"),
        ("ragged:3", 50, 50, "listed:50,20"),
    ],
)
def test_the_point_once_it_is_grown(word, context, capacity, lengths):
    shape = replace(SHAPE, batch=2, lengths=word)
    found = growing.grown_point(replace(STEP, shape=shape), 10).shape
    assert (found.context, found.capacity) == (context, capacity)
    assert found.lengths.partition(":")[0] == lengths.partition(":")[0]
    assert found.held == tuple(length + 10 for length in shape.held)
    roomy = replace(STEP, shape=replace(shape, capacity=99))
    assert growing.grown_point(roomy, 10).shape.capacity == 99


# ---- faults --------------------------------------------------------------------------------------


def fails(monkeypatch, point, words, **planted):
    for name, value in planted.items():
        owner, _, own = name.rpartition("__")
        monkeypatch.setattr({"layers": growing.GrowingLayers, "": growing}[owner], own, value)
    with pytest.raises(WrongAnswer, match=words):
        visit_growing(point, TOKENS, None)


@pytest.mark.parametrize("layout", ["head", "paged"])
def test_a_decode_in_front_of_its_append_is_seen(layout, monkeypatch):
    series = growing.Series

    def swapped(library, tasks, kinds, threads):
        return series(library, tasks[::-1], kinds[::-1], threads)

    point = step("rings", layout=layout, order=None)
    fails(monkeypatch, point, "is off by", Series=swapped)


def test_a_layer_that_stores_nothing_is_seen(monkeypatch):
    series = growing.Series

    def without(library, tasks, kinds, threads):
        # the first append of a whole step
        return series(library, tasks[1:], kinds[1:], threads)

    fails(monkeypatch, step(layout="paged", order=None), "stores rows off", Series=without)


def test_a_token_that_is_stored_elsewhere_is_seen(monkeypatch):
    """Every step but the first stores its token over the one before."""
    take = growing.GrowingLayers.take

    def behind(self, number):
        take(self, number)
        for before in self.layers.before if number else ():
            before.lengths -= 1

    fails(monkeypatch, step(layout="paged", order=None), "stores rows off", layers__take=behind)


def test_a_block_that_is_freed_too_early_is_seen(monkeypatch):
    """Another sequence takes it while this one still attends to it."""
    take = growing.GrowingLayers.take

    def early(self, number):
        if number == 20:
            self.pool.give_back([int(self.layers.room.caches[0].table[0, 1])])
        take(self, number)

    point = step("listed", layout="paged", order=None)
    fails(monkeypatch, point, "places of others|rows off", layers__take=early)


def test_an_empty_pool_allows_no_step(monkeypatch):
    make = growing.pool_of

    def less(cache, held, end):
        pool = make(cache, held, end)
        pool.take(1)
        return pool

    monkeypatch.setattr(growing, "pool_of", less)
    with pytest.raises(BadArgument, match="blocks: .* wanted"):
        visit_growing(step(layout="paged", order=None), TOKENS, None)


def test_a_cache_too_large_for_memory_is_refused(monkeypatch):
    monkeypatch.setattr("kvbench.worker.room.available_memory", lambda: 1 << 20)
    with pytest.raises(OutOfMemory, match="of memory, 1 MiB are free"):
        visit_growing(step(), TOKENS, None)


@pytest.mark.parametrize("order", [None, 5])
@pytest.mark.parametrize(
    ("held", "end"), [((17, 3), (40, 26)), ((0, 8), (40, 8)), ((9, 9), (9, 9)), ((9, 9), (40, 40))]
)
def test_a_pool_gives_the_blocks_that_the_table_had(order, held, end):
    held, end = np.array(held), np.array(end)
    with Cache(1, 16, 40, batch=2, layout="paged", block_tokens=8, shuffle=order) as cache:
        whole = cache.table.copy()
        pool = growing.pool_of(cache, held, end)
        cache.lengths[:] = held
        while (cache.lengths < end).any():
            for sequence in np.flatnonzero(cache.lengths < end):
                pool.fill(cache, 1, int(sequence))
                cache.lengths[sequence] += 1
        columns = np.arange(5)
        left = cache.table >= 0
        assert np.array_equal(left, columns < -(-end // 8)[:, None])
        assert sorted(cache.table[left]) == sorted(whole[left])
        if len(set(held)) == len(set(end)) == 1:
            assert np.array_equal(cache.table[left], whole[left])
