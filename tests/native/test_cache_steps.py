"""What a cache and a pool of blocks do beside the lives of test_cache_life.py: one thing at a time."""

import gc

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.native import Arena, Team, default_library, store_task


def rows(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.fixture(scope="module")
def team():
    with Team(1) as made:
        yield made


@pytest.mark.parametrize("layout", default_library().words("layout"))
def test_memory_of_its_own_begins_as_zeros(layout):
    with kvbench.Cache(2, 8, 16, layout=layout, dtype="i8") as cache:
        assert not cache.arena.view().any()
        assert cache.length == 0


def test_a_forgotten_cache_gives_its_blocks_back():
    with kvbench.Pool(1, 4, 3, block_tokens=2) as pool:
        cache = pool.cache(6)
        cache.bulk(*rows(5, 2, 1, 5, 1, 4))
        assert pool.free == 0
        del cache
        gc.collect()
        assert pool.free == 3


def test_blocks_cannot_be_meddled_with():
    k, v = rows(6, 2, 1, 4, 1, 4)
    with kvbench.Pool(1, 4, 4, block_tokens=2) as pool:
        cache, other = pool.cache(8), pool.cache(8)
        other.bulk(k, v)
        with pytest.raises(ValueError, match="read-only"):
            cache.table[0, 0] = 0
        with pytest.raises(BadArgument, match="other caches"):
            cache.clear()
        with pytest.raises(BadArgument, match="no blocks"):
            cache.advance(1)
        cache.reserve(3)
        assert pool.free == 0
        cache.advance(3)
        cache.rollback(3)
        assert pool.free == 2
        assert np.array_equal(other.numpy()[0], k)


@pytest.fixture
def other_s_rows():
    """A pool of whose four blocks of two tokens a cache has had two, and left its rows there."""
    k, v = rows(8, 2, 1, 4, 1, 4)
    with kvbench.Pool(1, 4, 4, block_tokens=2) as pool:
        gone = pool.cache(4)
        gone.bulk(k, v)
        gone.close()
        yield pool


@pytest.mark.parametrize("advance", [False, True])
def test_no_task_stores_where_there_is_no_block(other_s_rows, team, advance):
    k, v = np.ascontiguousarray(rows(9, 2, 1, 1, 4))
    cache = other_s_rows.cache(8)
    make = lambda: store_task("append", cache, k, v, 1, isa=cache.library.isa(), advance=advance)
    with pytest.raises(BadArgument, match="no blocks") as caught:
        make()
    assert "reserve" in caught.value.hint and cache.length == 0
    cache.reserve(1)
    with make() as task:
        team.run(task)
        if not advance:
            cache.advance(1)
        assert np.array_equal(cache.numpy()[0], k[:, None]) and np.array_equal(cache.numpy()[1], v[:, None])


@pytest.mark.parametrize("pooled", [False, True])
def test_a_closed_cache(pooled):
    with kvbench.Pool(1, 8, 4) as pool:
        cache = pool.cache(8) if pooled else kvbench.Cache(1, 8, 8)
        cache.bulk(*rows(7, 2, 1, 3, 1, 8))
        row = rows(7, 1, 1, 8)
        cache.close()
        for call in (
            lambda: cache.append(row, row),
            lambda: cache.decode(row),
            lambda: cache.advance(1),
            lambda: cache.reserve(1),
            lambda: cache.rollback(1),
            lambda: cache.would_overflow(1),
            lambda: cache.place(0, 0),
            cache.reset,
            cache.clear,
            cache.numpy,
        ):
            with pytest.raises(BadArgument, match="closed"):
                call()
        assert cache.lengths.tolist() == [3]
        assert pool.free == 4


def test_an_arena_closed_too_early():
    arena = Arena(1 << 16)
    cache = kvbench.Cache(1, 8, 8, arena=arena)
    arena.close()
    with pytest.raises(BadArgument, match="arena is closed"):
        cache.append(np.ones((1, 1, 8)), np.ones((1, 1, 8)))
