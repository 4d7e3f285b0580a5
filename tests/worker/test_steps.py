"""Random whole steps against float64 NumPy on the raw bytes: every layer's answer, and all bytes
that a step leaves in all caches. No expected value comes from the library.
"""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from kvbench import regime
from kvbench.machine import describe
from kvbench.model import Shape
from kvbench.native import (
    Blocks,
    Cache,
    Series,
    Team,
    decode_task,
    default_library,
    store_task,
)
from kvbench.plan import needs_here
from kvbench.worker.answers import Answers
from kvbench.worker.ground import Ground
from kvbench.worker.stepping import APPEND, DECODE, Stepping, behind
from kvbench.worker.steproom import StepRoom
from tests import made_run, oracle
from tests.made_job import CPU
from tests.oracle import Planes

LIBRARY = default_library()
CASES, POOLED = 380, 120  # of all: 500
KERNELS = {
    (each.variant, each.layout, each.dtype, each.isa)
    for each in LIBRARY.kernels()
    if each.op == "decode" and each.runnable and not LIBRARY.levels(each.variant, each.dtype)
}
WORDS = sorted(
    kernel
    for kernel in KERNELS
    if kernel[0] in ("flash", "twopass", "perhead") and kernel[3] in (LIBRARY.isa(), "scalar")
)


@pytest.fixture(scope="module")
def ground():
    """What counts as memory is made small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regime, "FAR_BYTES", 1 << 18)
        with Ground(LIBRARY, replace(describe(), caches=())) as made:
            yield made


def drawn(rng):
    """A step of a model's layers, some of which may slide."""
    variant, layout, dtype, isa = WORDS[rng.integers(len(WORDS))]
    batch, kv_heads, context = (int(rng.integers(1, most)) for most in (4, 4, 90))
    lengths = ",".join(str(int(each)) for each in rng.integers(1, context + 1, batch))
    window = int(rng.choice([0, rng.integers(1, context + 1)]))
    shape = Shape(
        batch=batch,
        q_heads=kv_heads * int(rng.integers(1, 5)),
        kv_heads=kv_heads,
        head_dim=int(rng.choice([8, 24, 32, 40, 64])),
        context=context,
        capacity=context + int(rng.integers(0, 20)),
        window=window,
        layers=int(rng.integers(1, 6)),
        full_every=int(rng.choice([0, 2, 3])),
        lengths=f"listed:{lengths}",
    )
    return replace(
        made_run.DECODE,
        op="step",
        variant=variant,
        layout=layout,
        dtype=dtype,
        isa=isa,
        shape=shape,
        inner=str(rng.choice(["head", "token"])),
        block_tokens=int(rng.choice([1, 5, 16, 32])),
        order=int(rng.integers(100)) if layout == "paged" and rng.random() < 0.7 else None,
        scale=str(rng.choice(["f32", "f16"])),
        pad=rng.choice([None, 0, 64]),
        deterministic=bool(rng.random() < 0.3),
        cpus=(CPU,) * int(rng.integers(1, 3)),
        pages="base",
        between=64 * int(rng.choice([0, 3, 5000])),
    )


def shape_of(cache):
    c = cache.struct
    return oracle.Shape(
        cache.layout,
        cache.dtype,
        c.batch,
        c.kv_heads,
        c.head_dim,
        c.capacity,
        inner=LIBRARY.words("inner")[c.inner],
        scale=LIBRARY.words("scale")[c.k.scale],
        ring=bool(c.ring),
        block_tokens=c.block_tokens,
        blocks=c.blocks,
        pad=c.pad,
    )


def planes_of(shape, data):
    """Copies of the four planes, which lie one after another."""
    ends = np.cumsum(shape.planes)
    return Planes(*(part.copy() for part in np.split(data, ends)[:4]))


def expected(cache, data, held, token, q, window):
    """The cache after a step and its layer's answer, computed from the formats and layouts."""
    shape = shape_of(cache)
    planes = planes_of(shape, data)
    for sequence, length in enumerate(held):
        rows = token[:, sequence][:, None]
        oracle.store(shape, planes, cache.table, sequence, length - 1, *rows)
    return planes, *oracle.decode(shape, planes, cache.table, held, q, window)


def same(planes, cache, data):
    left = planes_of(shape_of(cache), data)
    return all(map(np.array_equal, planes.all(), left.all()))


@pytest.mark.parametrize("part", range(10))
def test_a_step_stores_then_decodes_in_every_layer(part, ground):
    seen = set()
    for number in range(part, CASES, 10):
        point = drawn(np.random.default_rng([68, number]))
        needed = needs_here([point], ground.machine)[point]
        with (
            StepRoom(point, needed, ground) as room,
            Stepping(point, needed, room, Answers()) as found,
        ):
            for layers in found.parts:
                layers.make_stale()
            wanted = [
                expected(
                    layers.room.caches[place],
                    layers.room.rows[place],
                    point.shape.held,
                    layers.sources[place],
                    layers.queries.q[place],
                    layers.point.shape.window,
                )
                for layers, place in found.order
            ]
            found.team.run(*found.own.tasks)
            for (layers, place), (planes, out, bound) in zip(found.order, wanted, strict=True):
                off = np.abs(layers.queries.out[place] - out)
                assert (off <= bound).all(), (number, point.name)
                assert same(planes, layers.room.caches[place], layers.room.rows[place]), number
            assert found.verify() < 1e-4
            rings = [layers.room.caches[0].struct.ring for layers in found.parts]
            seen.add(tuple(rings))
    assert {(0,), (1,), (0, 1)} <= seen


def pooled(rng):
    """Caches of one pool, as in a server: a sequence begins with blocks of another one."""
    dtype = rng.choice(LIBRARY.words("dtype"))
    facts = {"layout": "paged", "dtype": str(dtype), "block_tokens": int(rng.choice([2, 5, 16]))}
    shape = int(rng.integers(1, 3)), int(rng.choice([16, 32, 40])), int(rng.integers(40, 90))
    return shape, 3, facts


@pytest.mark.parametrize("part", range(4))
def test_a_step_over_blocks_of_a_pool_some_of_them_shared(part):
    for number in range(part, POOLED, 4):
        rng = np.random.default_rng([69, number])
        (kv_heads, dim, capacity), batch, facts = pooled(rng)
        threads, layers, tasks, wanted = int(rng.integers(1, 3)), [], [], []
        with ExitStack() as owned:
            team = owned.enter_context(Team(threads))
            for _ in range(int(rng.integers(1, 4))):
                cache, before = owned.enter_context(sharing(rng, kv_heads, dim, capacity, facts))
                q = rng.standard_normal((batch, 2 * kv_heads, dim), dtype=np.float32)
                token = rng.standard_normal((2, batch, kv_heads, dim), dtype=np.float32)
                out = np.full_like(q, np.nan)
                how = {"isa": LIBRARY.isa()}
                own = (
                    store_task("append", before, *token, threads, **how),
                    decode_task("decode", cache, q, out, threads, **how),
                )
                tasks += [owned.enter_context(task) for task in own]
                layers.append((cache, out, token))
                held = [int(length) for length in cache.lengths]
                wanted.append(expected(cache, cache.arena.view(), held, token, q, 0))
            kinds = [APPEND, DECODE] * len(layers)
            series = owned.enter_context(Series(LIBRARY, tasks, kinds, threads))
            team.run(series)
            for (cache, out, _), (planes, right, bound) in zip(layers, wanted, strict=True):
                assert (np.abs(out - right) <= bound).all(), number
                assert same(planes, cache, cache.arena.view()), number


class sharing(ExitStack):
    """A cache with a batch of 3: the second sequence begins with blocks of the first, and each has
    room for one more token. And the same cache without that token.
    """

    def __init__(self, rng, kv_heads, dim, capacity, facts):
        super().__init__()
        self._made = rng, kv_heads, dim, capacity, facts

    def __enter__(self):
        rng, kv_heads, dim, capacity, facts = self._made
        block = facts["block_tokens"]
        pool = Blocks(3 * -(-capacity // block))
        pool.give_back(rng.permutation(pool.take(pool.count)))
        cache = self.enter_context(Cache(kv_heads, dim, capacity, 3, blocks=pool, **facts))
        cache.arena.view()[:] = 0xFF
        rows = rng.standard_normal((2, 3, capacity - 1, kv_heads, dim), dtype=np.float32)
        shared = int(rng.integers(1, (capacity - 1) // block + 1)) * block
        cache.bulk(*rows)
        cache.rollback(to=0, sequence=1)
        pool.share(cache, cache, shared, of=0, sequence=1)
        cache.rollback(to=int(rng.integers(1, capacity - 1)), sequence=2)
        cache.advance()
        facts = {**facts, "blocks": pool.count}
        view = Cache(kv_heads, dim, capacity, 3, arena=cache.arena, **facts)
        return cache, behind(self.enter_context(view), cache)
