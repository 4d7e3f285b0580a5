"""kvbench.Cache against plain NumPy: what goes in comes out, attention is attention, and every
misuse is an error.
"""

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.native import Arena, default_library
from tests.oracle import attend


def rows(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def attention(q, k, v, window=None):
    """q [B,Hq,D], k and v [B,T,Hkv,D]"""
    k, v = (x[:, -window if window else 0 :].swapaxes(1, 2) for x in (k, v))
    grouped = q.reshape(*k.shape[:2], -1, q.shape[2])
    return np.array(
        [attend(*each, 1 / np.sqrt(q.shape[2]))[0] for each in zip(grouped, k, v, strict=True)]
    ).reshape(q.shape)


def close(got, want, v):
    return np.abs(got - want).max() <= 2e-6 * np.abs(v).max()


def test_a_window_above_the_capacity_never_binds():
    k, v = rows(10, 2, 1, 9, 1, 8)
    with kvbench.Cache(1, 8, 8, window=9) as cache:
        with pytest.raises(BadArgument, match="capacity"):
            cache.bulk(k, v)
        cache.bulk(k[:, :8], v[:, :8])
        assert close(
            cache.decode(rows(11, 1, 1, 8)), attention(rows(11, 1, 1, 8), k[:, :8], v[:, :8]), v
        )


def test_a_shuffled_table_changes_places_only():
    k, v = rows(15, 2, 2, 60, 2, 16)
    q = rows(16, 2, 4, 16)
    plain = kvbench.Cache(2, 16, 64, batch=2, layout="paged")
    shuffled = kvbench.Cache(2, 16, 64, batch=2, layout="paged", shuffle=3)
    assert sorted(shuffled.table.ravel()) == sorted(plain.table.ravel())
    assert not np.array_equal(shuffled.table, plain.table)
    for cache in (plain, shuffled):
        cache.bulk(k, v)
    assert not np.array_equal(plain.arena.view(), shuffled.arena.view())
    assert np.array_equal(plain.decode(q), shuffled.decode(q))
    plain.close()
    shuffled.close()


def test_inputs_of_other_kinds():
    with kvbench.Cache(1, 4, 8) as cache:
        cache.append([[[1, 2, 3, 4]]], [[[5, 6, 7, 8]]])
        cache.append(np.ones((1, 1, 4)), np.ones((1, 1, 8))[:, :, ::2])
        assert cache.decode(np.ones((1, 1, 4), dtype=np.float64)).dtype == np.float32
        assert cache.numpy()[1].tolist() == [[[[5, 6, 7, 8]], [[1, 1, 1, 1]]]]


# ---- life ----------------------------------------------------------------------------------------


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
