"""kvbench.Cache against plain NumPy: stored rows come back, attention is right, and every misuse is
an error.
"""

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.native import Arena, default_library
from tests.oracle import STORED, attend


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


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_a_scale_of_all_keys_and_one_of_all_values(dtype):
    """Numbers far outside the format's range come back, each plane with its own scale."""
    k, v = rows(20, 2, 1, 40, 2, 16)
    q, scales = rows(21, 1, 4, 16), (np.float32(3000.0), np.float32(2.0**-20))
    stored = [side * scale for side, scale in zip((k, v), scales, strict=True)]
    with kvbench.Cache(2, 16, 64, dtype=dtype, tensor=scales) as cache:
        cache.bulk(*stored)
        wanted = [
            (side / scale).astype(STORED[dtype]).astype(np.float32) * scale
            for side, scale in zip(stored, scales, strict=True)
        ]
        assert np.array_equal(np.array(cache.numpy()), np.array(wanted))
        assert close(cache.decode(q / scales[0]), attention(q / scales[0], *wanted), wanted[1])
    with pytest.raises(BadArgument, match="dtype f32 has no scale of the whole tensor"):
        kvbench.Cache(2, 16, 64, tensor=scales)


def test_a_table_that_the_caller_fills():
    with kvbench.Cache(1, 8, 64, layout="paged", blocks=256) as cache:
        assert cache.table.tolist() == [[-1] * 4]
        cache.table[:] = [[91, 17, 44, 203]]
        row, _ = cache.place(37, 0)
        assert divmod(row, 64) == (44 * 16 + 5, 0)
        k, v = rows(22, 2, 1, 40, 1, 8)
        cache.bulk(k, v)
        assert np.array_equal(cache.arena.view(np.float32)[row // 4 :][:8], k[0, 37, 0])
        assert close(cache.decode(rows(23, 1, 1, 8)), attention(rows(23, 1, 1, 8), k, v), v)


# ---- lengths -------------------------------------------------------------------------------------


def test_advance_and_rollback_are_a_pair():
    k, v = rows(24, 2, 2, 6, 1, 8)
    with kvbench.Cache(1, 8, 8, batch=2) as cache:
        cache.bulk(k, v)
        cache.rollback(4)
        cache.advance(4)
        assert np.array_equal(cache.numpy()[0], k)
        cache.advance(2, sequence=1)
        assert cache.lengths.tolist() == [6, 8] and cache.would_overflow()
        for call in (cache.advance, lambda: cache.append(k[:, 0], v[:, 0])):
            with pytest.raises(BadArgument, match=r"8 \+ 1 tokens are more than the capacity of 8"):
                call()
        cache.advance(sequence=0)
        assert cache.lengths.tolist() == [7, 8]


def test_a_ring_advances_without_end():
    k, v = rows(25, 2, 1, 11, 1, 8)
    q = rows(26, 1, 1, 8)
    with kvbench.Cache(1, 8, 4, window=4) as cache:
        cache.bulk(k[:, :10], v[:, :10])
        cache.advance(4)
        cache.lengths -= 4  # a ring does not roll back over what it has overwritten
        cache.append(k[:, 10], v[:, 10])
        assert close(cache.decode(q), attention(q, k, v, window=4), v)


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
