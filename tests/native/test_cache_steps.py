"""What a cache does beside the lives of test_cache_life.py: one thing at a time."""

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.native import Arena, default_library


def rows(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("layout", default_library().words("layout"))
def test_memory_of_its_own_begins_as_zeros(layout):
    with kvbench.Cache(2, 8, 16, layout=layout, dtype="i8") as cache:
        assert not cache.arena.view().any()
        assert cache.length == 0


def test_a_closed_cache():
    cache = kvbench.Cache(1, 8, 8)
    cache.bulk(*rows(7, 2, 1, 3, 1, 8))
    row = rows(7, 1, 1, 8)
    cache.close()
    for call in (
        lambda: cache.append(row, row),
        lambda: cache.decode(row),
        lambda: cache.advance(1),
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


def test_an_arena_closed_too_early():
    arena = Arena(1 << 16)
    cache = kvbench.Cache(1, 8, 8, arena=arena)
    arena.close()
    with pytest.raises(BadArgument, match="arena is closed"):
        cache.append(np.ones((1, 1, 8)), np.ones((1, 1, 8)))
