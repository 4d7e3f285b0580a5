"""kvbench.Cache against plain NumPy: what goes in comes out, attention is attention, and every misuse is an error."""

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument, KvbenchError, Unsupported
from kvbench.native import default_library

WORDS = default_library().words
ROUNDING = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8, "i8": 0.5 / 127, "e4m3": 2.0**-4, "e5m2": 2.0**-3,
            "q8_0": 1 / 220, "q4_0": 1 / 7.9}  # fmt: skip
# of the largest value of a row


def rows(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def attention(q, k, v, window=None):
    """float64; q [B,Hq,D], k and v [B,T,Hkv,D]"""
    if window:
        k, v = k[:, -window:], v[:, -window:]
    group = q.shape[1] // k.shape[2]
    k, v = (np.repeat(x.astype(np.float64), group, axis=2) for x in (k, v))
    scores = np.einsum("bhd,bthd->bht", q.astype(np.float64), k) / np.sqrt(q.shape[2])
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    return np.einsum("bht,bthd->bhd", weights, v)


def close(got, want, v):
    return np.abs(got - want).max() <= 2e-6 * np.abs(v).max()


@pytest.mark.parametrize(
    ("layout", "dtype"), [(layout, dtype) for layout in WORDS("layout") for dtype in default_library().dtypes(layout)]
)
@pytest.mark.parametrize("inner", WORDS("inner"))
def test_what_goes_in_comes_out(layout, dtype, inner):
    k, v = rows(1, 2, 2, 21, 3, 40)
    with kvbench.Cache(3, 40, 32, batch=2, layout=layout, dtype=dtype, inner=inner, block_tokens=5) as cache:
        cache.bulk(k[:, :20], v[:, :20])
        cache.append(k[:, 20], v[:, 20])
        assert cache.length == 21
        assert list(cache.lengths) == [21, 21]
        for got, given in zip(cache.numpy(), (k, v), strict=True):
            assert got.shape == given.shape
            assert np.all(np.abs(got - given) <= ROUNDING[dtype] * np.abs(given).max(axis=3, keepdims=True) * 1.0001)


@pytest.mark.parametrize(
    ("variant", "layout", "dtype"),
    dict.fromkeys(
        (k.variant, k.layout, k.dtype)
        for k in default_library().kernels()
        if k.op == "decode" and not default_library().levels(k.variant, 64)  # those are not so exact
    ),
)
def test_decode_is_attention(layout, dtype, variant):
    k, v = rows(2, 2, 2, 300, 2, 64)
    q = rows(3, 2, 6, 64)
    with kvbench.Cache(2, 64, 320, 2, layout, dtype, shuffle=1 if layout == "paged" else None) as cache:
        cache.bulk(k, v, threads=2)
        halves = variant == "round16"
        want = attention(q, *(x.astype(np.float16) if halves else x for x in cache.numpy()))
        for isa in default_library().isas():
            for threads in (1, 3):
                assert close(cache.decode(q, variant, isa, threads), want, v), isa


@pytest.mark.parametrize("layout", WORDS("layout"))
def test_deterministic_whatever_the_threads(layout):
    k, v = rows(4, 2, 1, 2000, 2, 32)
    q = rows(5, 1, 8, 32)
    with kvbench.Cache(2, 32, 2000, layout=layout, dtype="f16") as cache:
        cache.bulk(k, v)
        outs = [cache.decode(q, threads=threads, deterministic=True) for threads in (1, 2, 3, 7, 16)]
        assert all(np.array_equal(out, outs[0]) for out in outs)


@pytest.mark.parametrize("layout", WORDS("layout"))
def test_a_ring_keeps_the_last_tokens(layout):
    k, v = rows(6, 2, 1, 100, 2, 16)
    q = rows(7, 1, 4, 16)
    with kvbench.Cache(2, 16, 24, layout=layout, window=16, block_tokens=7) as cache:
        cache.bulk(k[:, :60], v[:, :60])
        for t in range(60, 100):
            cache.append(k[:, t], v[:, t])
            assert close(cache.decode(q), attention(q, k[:, : t + 1], v[:, : t + 1], window=16), v)
        assert cache.length == 100
        assert np.array_equal(cache.numpy()[0], k[:, 76:])
        assert np.array_equal(cache.numpy()[1], v[:, 76:])


def test_a_window_without_a_ring():
    k, v = rows(8, 2, 1, 50, 1, 8)
    q = rows(9, 1, 2, 8)
    with kvbench.Cache(1, 8, 50, window=20, ring=False) as cache:
        cache.bulk(k, v)
        assert close(cache.decode(q), attention(q, k, v, window=20), v)
        with pytest.raises(BadArgument, match="capacity"):
            cache.append(k[:, 0], v[:, 0])


def test_a_window_above_the_capacity_never_binds():
    k, v = rows(10, 2, 1, 9, 1, 8)
    with kvbench.Cache(1, 8, 8, window=9) as cache:
        with pytest.raises(BadArgument, match="capacity"):
            cache.bulk(k, v)
        cache.bulk(k[:, :8], v[:, :8])
        assert close(cache.decode(rows(11, 1, 1, 8)), attention(rows(11, 1, 1, 8), k[:, :8], v[:, :8]), v)


def test_sequences_of_different_lengths():
    k, v = rows(12, 2, 2, 30, 2, 16)
    q = rows(13, 2, 4, 16)
    with kvbench.Cache(2, 16, 30, batch=2) as cache:
        cache.bulk(k, v)
        cache.lengths[1] = 11
        out = cache.decode(q)
        assert close(out[:1], attention(q[:1], k[:1], v[:1]), v)
        assert close(out[1:], attention(q[1:], k[1:, :11], v[1:, :11]), v)
        assert cache.length == 30
        assert np.array_equal(cache.numpy()[0][1, :11], k[1, :11])
        assert not cache.numpy()[0][1, 11:].any()


@pytest.mark.parametrize("nt", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_head_major_sources(nt, threads):
    k, v = rows(14, 2, 2, 33, 3, 24)
    with kvbench.Cache(3, 24, 40, batch=2, dtype="bf16") as one, kvbench.Cache(3, 24, 40, batch=2, dtype="bf16") as two:
        one.bulk(k, v)
        two.bulk(k.swapaxes(1, 2), v.swapaxes(1, 2), head_major=True, nt=nt, threads=threads)
        assert np.array_equal(one.arena.view(), two.arena.view())


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


def test_reset_and_clear():
    k, v = rows(17, 2, 1, 4, 1, 8)
    with kvbench.Cache(1, 8, 4, dtype="i8") as cache:
        cache.bulk(k, v)
        cache.reset()
        assert cache.length == 0
        assert cache.arena.view().any()
        assert cache.numpy()[0].shape == (1, 0, 1, 8)
        cache.clear(threads=2)
        assert not cache.arena.view().any()


@pytest.mark.parametrize("guard", [1, 2])
@pytest.mark.parametrize("layout", WORDS("layout"))
def test_guarded_memory(layout, guard):
    k, v = rows(18, 2, 1, 13, 3, 33)
    with kvbench.Cache(3, 33, 13, layout=layout, guard=guard, pages="base", pad=0, block_tokens=13) as cache:
        cache.bulk(k, v, threads=2)
        assert np.array_equal(cache.numpy()[1], v)
        assert close(cache.decode(rows(19, 1, 3, 33)), attention(rows(19, 1, 3, 33), k, v), v)


def test_inputs_of_other_kinds():
    with kvbench.Cache(1, 4, 8) as cache:
        cache.append([[[1, 2, 3, 4]]], [[[5, 6, 7, 8]]])
        cache.append(np.ones((1, 1, 4)), np.ones((1, 1, 8))[:, :, ::2])
        assert cache.decode(np.ones((1, 1, 4), dtype=np.float64)).dtype == np.float32
        assert cache.numpy()[1].tolist() == [[[[5, 6, 7, 8]], [[1, 1, 1, 1]]]]


# ---- misuse ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"kv_heads": 0}, "kv_heads"),
        ({"head_dim": 0}, "head_dim"),
        ({"head_dim": 1 << 20}, "head_dim"),
        ({"capacity": 0}, "capacity"),
        ({"capacity": 1 << 31}, "capacity"),
        ({"capacity": 2**31 - 1, "kv_heads": 1 << 16, "head_dim": 1024, "batch": 1 << 20}, "capacity"),
        ({"batch": 0}, "batch"),
        ({"scale": "i8"}, "scale"),
        ({"window": 0}, "window"),
        ({"layout": "paged", "block_tokens": 0}, "block_tokens"),
        ({"pad": 1}, "pad"),
        ({"guard": 3}, "guard"),
        ({"shuffle": 1}, "shuffle"),
    ],
    ids=str,
)
def test_a_wrong_shape(changes, named):
    with pytest.raises(BadArgument, match=named) as caught:
        kvbench.Cache(**{"kv_heads": 2, "head_dim": 16, "capacity": 32} | changes)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_more_memory_than_there_is():
    with pytest.raises(KvbenchError):
        kvbench.Cache(1 << 16, 1024, 2**31 - 1)


@pytest.fixture
def cache():
    with kvbench.Cache(2, 16, 8, batch=2) as made:
        made.bulk(rows(20, 2, 5, 2, 16), rows(21, 2, 5, 2, 16))
        yield made


@pytest.mark.parametrize("shape", [(2, 16), (2, 2, 15), (1, 2, 16), (2, 1, 16), (2, 1, 2, 16), ()], ids=str)
def test_append_of_a_wrong_shape(cache, shape):
    right = np.ones((2, 2, 16))
    before = cache.arena.view().copy()
    with pytest.raises(BadArgument, match="k has the shape"):
        cache.append(np.ones(shape), right)
    with pytest.raises(BadArgument, match="v has the shape"):
        cache.append(right, np.ones(shape))
    assert cache.length == 5
    assert np.array_equal(cache.arena.view(), before)


def test_wrong_bulks(cache):
    right = np.ones((2, 3, 2, 16))
    with pytest.raises(BadArgument, match="v has the shape"):
        cache.bulk(right, right[:, :2])
    with pytest.raises(BadArgument, match="k has the shape"):
        cache.bulk(right[:, :0], right[:, :0])
    with pytest.raises(BadArgument, match="k has the shape"):
        cache.bulk(right, right, head_major=True)
    with pytest.raises(BadArgument, match="tokens"):
        cache.bulk(np.ones((2, 4, 2, 16)), np.ones((2, 4, 2, 16)))
    assert cache.length == 5


def test_wrong_decodes(cache):
    q = np.ones((2, 4, 16))
    with pytest.raises(BadArgument, match="q_heads"):
        cache.decode(np.ones((2, 3, 16)))
    with pytest.raises(BadArgument, match="q has the shape"):
        cache.decode(np.ones((2, 4, 8)))
    with pytest.raises(BadArgument, match="q has the shape"):
        cache.decode(np.ones((2, 0, 16)))
    with pytest.raises(BadArgument, match="variant"):
        cache.decode(q, variant="flashy")
    with pytest.raises(BadArgument, match="isa"):
        cache.decode(q, isa="mmx")
    absent = next(isa for isa in WORDS("isa") if isa not in default_library().isas())
    with pytest.raises(Unsupported, match=absent):
        cache.decode(q, isa=absent)
    for threads in (0, 1 << 20):
        with pytest.raises(BadArgument, match="threads"):
            cache.decode(q, threads=threads)


def test_lengths_and_tables_gone_wrong():
    with kvbench.Cache(1, 8, 8, layout="paged", block_tokens=4) as cache:
        k = np.ones((1, 5, 1, 8))
        cache.bulk(k, k)
        for wrong in (2, 1 << 30, -1):
            cache.table[0, 1] = wrong
            with pytest.raises(BadArgument, match="table"):
                cache.decode(np.ones((1, 1, 8)))
        cache.table[0, 1] = 1
        for wrong in (9, -1):
            cache.lengths[0] = wrong
            with pytest.raises(BadArgument, match="lengths|empty"):
                cache.decode(np.ones((1, 1, 8)))


def test_an_empty_cache():
    with kvbench.Cache(1, 8, 8) as cache, pytest.raises(BadArgument, match="empty"):
        cache.decode(np.ones((1, 1, 8)))


def test_a_closed_cache():
    cache = kvbench.Cache(1, 8, 8)
    k = np.ones((1, 1, 8))
    cache.append(k, k)
    cache.close()
    cache.close()
    for call in (lambda: cache.append(k, k), lambda: cache.decode(k), cache.numpy, cache.reset, cache.clear):
        with pytest.raises(BadArgument, match="closed"):
            call()
    assert "head f32" in repr(cache)


def test_the_forced_tier_is_used(monkeypatch, cache):
    monkeypatch.setenv("KVBENCH_ISA", "mmx")
    with pytest.raises(BadArgument, match="KVBENCH_ISA"):
        cache.decode(np.ones((2, 2, 16)))
    for isa in default_library().isas():
        monkeypatch.setenv("KVBENCH_ISA", isa)
        assert np.array_equal(cache.decode(np.ones((2, 2, 16))), cache.decode(np.ones((2, 2, 16)), isa=isa))


@pytest.mark.parametrize("layout", [word for word in WORDS("layout") if "e4m3" in default_library().dtypes(word)])
@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_scales_of_whole_tensors(layout, dtype):
    """Stores divide by them; decode and what is read back multiply."""
    k, v = rows(8, 2, 2, 90, 2, 40)
    q = rows(9, 2, 6, 40)
    with (
        kvbench.Cache(2, 40, 90, 2, layout, dtype, tensor_scale=(0.03, 50.0)) as cache,
        kvbench.Cache(2, 40, 90, 2, layout, dtype) as plain,
    ):
        cache.bulk(k, v)
        plain.bulk(k / np.float32(0.03), v / np.float32(50))
        assert np.array_equal(cache.arena.view(), plain.arena.view())
        pairs = zip(cache.numpy(), plain.numpy(), (0.03, 50.0), strict=True)
        assert all(np.array_equal(mine, other * np.float32(scale)) for mine, other, scale in pairs)
        want = attention(q, *cache.numpy())
        for variant in ("flash", "twopass", "perhead"):
            for threads in (1, 3):
                assert close(cache.decode(q, variant, threads=threads), want, cache.numpy()[1]), variant


@pytest.mark.parametrize(
    ("dtype", "scale"), [("f16", 2.0), ("i8", (1.0, 2.0)), ("e4m3", 0.0), ("e5m2", -1.0), ("e4m3", (1.0, np.inf))]
)
def test_scales_that_no_tensor_can_have(dtype, scale):
    with pytest.raises(BadArgument, match="tensor"):
        kvbench.Cache(1, 8, 8, dtype=dtype, tensor_scale=scale)
