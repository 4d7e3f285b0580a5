"""What a cache and a pool of blocks do, one thing at a time: grow, go back, share blocks, refuse, and close."""

import gc

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument, OutOfMemory
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


def test_a_branch_of_a_conversation():
    k, v = rows(1, 2, 1, 30, 2, 8)
    with kvbench.Cache(2, 8, 32) as cache:
        cache.bulk(k[:, :20], v[:, :20])
        cache.rollback(to=12)
        cache.bulk(k[:, 20:], v[:, 20:])
        want = np.concatenate((k[:, :12], k[:, 20:]), axis=1)
        assert np.array_equal(cache.numpy()[0], want)


def test_a_ring_rolled_back_forgets_what_was_overwritten():
    k, v = rows(2, 2, 1, 20, 1, 4)
    with kvbench.Cache(1, 4, 8, window=5) as cache:
        cache.bulk(k, v)
        cache.rollback(3)
        assert np.array_equal(cache.numpy()[0], k[:, 12:17])
        with pytest.raises(BadArgument, match="overwritten") as caught:
            cache.rollback(1)
        assert "8" in caught.value.hint
        cache.append(k[:, 0], v[:, 0])
        assert np.array_equal(cache.numpy()[1], np.concatenate((v[:, 12:17], v[:, :1]), axis=1))
        cache.rollback(to=0)
        cache.bulk(k[:, :3], v[:, :3])
        assert np.array_equal(cache.numpy()[0], k[:, :3])


def test_one_sequence_of_several():
    k, v = rows(3, 2, 3, 6, 1, 4)
    with kvbench.Cache(1, 4, 8, batch=3) as cache:
        cache.bulk(k, v)
        cache.rollback(4, sequence=1)
        assert cache.lengths.tolist() == [6, 2, 6]
        cache.append(k[:, 5], v[:, 5])
        assert np.array_equal(cache.numpy()[0][1, :3, 0], k[1, [0, 1, 5], 0])


def test_a_pool_serves_whoever_grows():
    k, v = rows(4, 2, 1, 40, 2, 8)
    with kvbench.Pool(2, 8, 5, block_tokens=8) as pool:
        one, two = pool.cache(40), pool.cache(40)
        one.bulk(k[:, :17], v[:, :17])
        assert pool.free == 2
        two.bulk(k[:, :16], v[:, :16])
        assert pool.free == 0
        two_before = two.numpy()
        assert two.would_overflow(1)
        assert not one.would_overflow(7)
        with pytest.raises(OutOfMemory, match="1 block .* 0 of 5 are free"):
            two.append(k[:, 16], v[:, 16])
        one.rollback(to=8)
        assert pool.free == 2
        two.append(k[:, 16], v[:, 16])
        assert np.array_equal(two.numpy()[0][:, :16], two_before[0])
        assert np.array_equal(one.numpy()[1], v[:, :8])
        one.close()
        one.close()
        assert pool.free == 2
        assert sorted(two.table[two.table >= 0].tolist()) == sorted(set(range(5)) - set(pool._free))
    with pytest.raises(BadArgument, match="closed"):
        two.append(k[:, 0], v[:, 0])
    with pytest.raises(BadArgument, match="closed"):
        pool.cache(4)


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


def test_a_task_kept_while_its_blocks_are_given_back(other_s_rows, team):
    k, v = np.ascontiguousarray(rows(10, 2, 1, 1, 4))
    cache = other_s_rows.cache(8)
    cache.reserve(4)
    with store_task("append", cache, k, v, 1, isa=cache.library.isa(), advance=True) as task:
        team.run(task, passes=3)
        cache.rollback(to=0)
        before = other_s_rows.arena.view().copy()
        for runs in (
            lambda: team.run(task),
            lambda: team.run(task, task),
            lambda: team.run(task, between=task),
        ):
            with pytest.raises(BadArgument, match="no blocks"):
                runs()
        cache.reserve(2)
        for runs in (
            lambda: team.run(task, passes=3),
            lambda: team.run(task, task, passes=3),
            lambda: team.run(task, passes=2, between=task),
        ):
            with pytest.raises(BadArgument, match="no blocks"):
                runs()
        assert cache.length == 0 and np.array_equal(other_s_rows.arena.view(), before)
        team.run(task, task, passes=2)
        assert cache.length == 2
        cache.close()
        with pytest.raises(BadArgument, match="no blocks"):
            team.run(task)


@pytest.mark.parametrize("length", [0, 3, 9])
def test_more_tokens_than_can_be_listed(length):
    """A ring takes two billion tokens in the blocks of its capacity."""
    huge = 2_000_000_000
    with kvbench.Pool(1, 4, 5, block_tokens=3) as pool:
        cache = pool.cache(8, window=8)
        if length:
            cache.bulk(*rows(11, 2, 1, length, 1, 4))
        assert not cache.would_overflow(huge)
        cache.reserve(huge)
        assert pool.free == 2 and sorted(cache.table[0] >= 0) == [True] * 3
        cache.advance(huge)
        assert cache.length == length + huge
        with pool.cache(10, window=10) as larger:
            assert larger.would_overflow(huge) and not larger.would_overflow(6)


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({"layout": "head"}, "layout"),
        ({"blocks": 0}, "blocks"),
        ({"blocks": 1 << 40}, "blocks"),
        ({"block_tokens": 0}, "block_tokens"),
        ({"kv_heads": 0}, "kv_heads"),
    ],
    ids=str,
)
def test_a_wrong_pool(facts, named):
    with pytest.raises(BadArgument, match=named) as caught:
        kvbench.Pool(**{"kv_heads": 1, "head_dim": 8, "blocks": 4} | facts)
    assert caught.value.hint


@pytest.mark.parametrize("pooled", [False, True])
def test_a_closed_cache(pooled):
    with kvbench.Pool(1, 8, 4) as pool:
        cache = pool.cache(8) if pooled else kvbench.Cache(1, 8, 8)
        cache.bulk(*rows(7, 2, 1, 3, 1, 8))
        cache.close()
        for call in (
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
