"""K of i8 with scales by channel, against NumPy: what is stored, where, the answers, and what is
refused.
"""

import gc
from itertools import product

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.native import (
    Asked,
    Team,
    channel_of,
    decode_task,
    default_library,
    plane_bytes,
    repack_task,
    store_task,
    times_channel,
)
from kvbench.oracle import attention_in_steps, whole
from kvbench.verify.reads import rows_sum
from tests.formats import CODES
from tests.native.test_pairs import answer, kept

LIBRARY = default_library()
BATCH, KV, GROUP, DIM, TOKENS = 2, 2, 3, 72, 75
OF_V = ("i8", "bf16", "q4_0", "e4m3")  # as V lies beside such K
THERE = {kernel.id for kernel in LIBRARY.kernels() if kernel.runnable}

every_tier = pytest.mark.parametrize("isa", LIBRARY.isas())
every_layout = pytest.mark.parametrize("layout", LIBRARY.words("layout"))


class Rows:
    """`codes`: the integers that K must be stored as, rounded to nearest even and cut off."""

    def __init__(self):
        rng = np.random.default_rng(7)
        self.k, self.v = rng.standard_normal((2, BATCH, TOKENS, KV, DIM), dtype=np.float32)
        self.k[..., 5] *= 20
        # scales of the first tokens: some of the others are larger
        self.channel = channel_of(self.k[:, :40])
        self.channel[1, 7] = 0.25
        self.k[1, 70, 1, 7] = 0.625  # half way between two codes
        self.k[0, 60, 1, 7], self.k[0, 61, 1, 7] = np.inf, -1e30
        self.k[0, 62, 1, 7] = np.nan
        found = np.nan_to_num(np.rint(self.k / self.channel), posinf=127)
        self.codes = np.clip(found, -127, 127)
        assert (np.abs(found) > 127).sum() > 10 and self.codes[1, 70, 1, 7] == 2
        self.q = rng.standard_normal((BATCH, KV * GROUP, DIM), dtype=np.float32)


@pytest.fixture(scope="module")
def rows():
    return Rows()


def cache_of(layout, channel, v="i8", **facts):
    facts = {"capacity": 80} | ({"shuffle": 1} if layout == "paged" else {}) | facts
    dtype = f"i8+{v}"
    return kvbench.Cache(KV, DIM, batch=BATCH, layout=layout, dtype=dtype, channel=channel, **facts)


@every_layout
@every_tier
def test_what_is_stored(isa, layout, rows):
    """For a prompt in either order, and for later tokens, in a ring too."""
    ways = product(({}, {"nt": True}), ({"capacity": 80}, {"capacity": 50, "window": 40}))
    for way, facts in ways:
        with cache_of(layout, rows.channel, **facts) as cache:
            first, then = slice(0, 33), slice(33, 72)
            cache.bulk(rows.k[:, first], rows.v[:, first], isa=isa, **way)
            turned = (np.ascontiguousarray(own[:, then].swapaxes(1, 2)) for own in (rows.k, rows.v))
            cache.bulk(*turned, head_major=True, isa=isa, threads=2, **way)
            for token in range(72, TOKENS):
                cache.append(rows.k[:, token], rows.v[:, token], isa=isa)
            for sequence, head, token in ((0, 1, 62), (1, 1, 70), (1, 0, 74)):
                own = cache.arena.view()[plane_bytes(cache, token, head, sequence)]
                wanted = rows.codes[sequence, token, head]
                assert np.array_equal(own.view(np.int8)[:DIM], wanted) and not own[DIM:].any()
            k, v = cache.numpy(isa)
            held = slice(TOKENS - k.shape[1], TOKENS)
            assert np.array_equal(k, np.float32(rows.codes[:, held] * rows.channel))
            assert np.allclose(v, kept("i8", rows.v[:, held]), rtol=2e-7, atol=0)


@every_layout
@every_tier
def test_what_is_answered(isa, layout, rows):
    """Rows are codes times scales. Products of narrow numbers multiply the queries by the
    scales.
    """
    for v in OF_V if layout != "block16" else set(OF_V) & set(CODES):
        with cache_of(layout, rows.channel, v) as cache:
            cache.bulk(rows.k, rows.v)
            stored = rows.codes * rows.channel.astype(np.float64), kept(v, rows.v)
            right, limit = answer(rows.q, *stored), 4e-6 * np.abs(rows.v).max()
            for variant in ("flash", "twopass", "perhead", "dot"):
                halves = {f"decode.{variant}.{layout}.{dtype}.{isa}" for dtype in ("i8", v)}
                if not halves <= THERE or (variant == "perhead" and v != "i8"):
                    continue
                out = cache.decode(rows.q, variant, isa, threads=2)
                if variant == "dot":
                    folded = times_channel(rows.q, rows.channel)
                    levels = LIBRARY.levels(variant, cache.dtype, DIM)
                    wanted, off = attention_in_steps(
                        folded, whole(rows.codes, stored[1]), cache.lengths, levels
                    )
                    assert (np.abs(out - wanted) <= off + limit).all(), v
                else:
                    assert np.abs(out - right).max() <= limit, (variant, v)


@every_tier
@pytest.mark.parametrize("layout", ["head", "position", "block16"])
def test_groups_and_queries(isa, layout, rows):
    """More query rows than a call folds, and several queries."""
    rng = np.random.default_rng(3)
    stored = rows.codes * rows.channel.astype(np.float64), kept("i8", rows.v)
    with cache_of(layout, rows.channel) as cache:
        cache.bulk(rows.k, rows.v)
        for group, queries in ((1, 1), (9, 1), (2, 4)):
            q = rng.standard_normal((BATCH, queries, KV * group, DIM), dtype=np.float32)
            out = cache.decode(q[:, 0] if queries == 1 else q, isa=isa)
            for query in range(queries):
                held = slice(0, TOKENS - queries + 1 + query)
                right = kvbench.oracle.attention(q[:, query], whole(*stored), [held.stop] * BATCH)
                got = out if queries == 1 else out[:, query]
                assert np.abs(got - right).max() <= 4e-6 * np.abs(rows.v).max()


@every_tier
@every_layout
def test_the_twin_reads_no_scales_of_k(isa, layout, rows):
    out = np.empty_like(rows.q)
    with cache_of(layout, rows.channel) as cache, Team(2) as team:
        assert cache.struct.k.scale_bytes == 0 < cache.struct.v.scale_bytes
        cache.bulk(rows.k, rows.v)
        with decode_task("twin", cache, rows.q, out, 2, isa=isa) as task:
            team.run(task)
            assert task.sum() == rows_sum(cache)
        tokens = BATCH * TOKENS * KV
        for op in ("decode", "twin"):
            with decode_task(op, cache, rows.q, out, 2, isa=isa) as task:
                traffic = task.traffic()
            assert traffic.bytes_kv == tokens * 2 * DIM and traffic.bytes_scales == tokens * 4
        own = 2 * rows.q.nbytes + rows.channel.nbytes
        with decode_task("decode", cache, rows.q, out, 2, isa=isa) as task:
            assert task.traffic().bytes_compulsory - own == traffic.bytes_compulsory
        with store_task("append", cache, rows.k[:, 0], rows.v[:, 0], 1, isa=isa) as task:
            assert task.traffic().bytes_scales == BATCH * KV * 4


@pytest.mark.parametrize("layout", ["head", "blockt", "block16"])
def test_a_cache_that_grows(layout, rows):
    with cache_of(layout, rows.channel, capacity=200) as after, Team(1) as team:
        other = rows.channel.copy()
        other[1, 3] *= 2
        with cache_of(layout, other, arena=after.arena) as before:
            with pytest.raises(BadArgument, match="channels, .* must be those of from"):
                repack_task(before, after, 1, isa=LIBRARY.isa())
        with cache_of(layout, rows.channel, arena=after.arena) as before:
            before.bulk(rows.k, rows.v)
            held = before.numpy()
            with repack_task(before, after, 1, isa=LIBRARY.isa()) as task:
                team.run(task)
        assert all(map(np.array_equal, after.numpy(), held))


def test_scales_are_the_caches_own(rows):
    """Whatever happens to the caller's array."""
    given = rows.channel.copy()
    with cache_of("head", given) as cache:
        given[:] = np.nan
        del given
        gc.collect()
        cache.bulk(rows.k, rows.v)
        assert np.array_equal(cache.channel, rows.channel)
        assert np.array_equal(cache.numpy()[0], np.float32(rows.codes * rows.channel))
    with kvbench.Cache(KV, DIM, 80, dtype="i8") as cache:
        assert cache.channel is None


def test_a_filled_cache_has_rows_of_its_scales(rows):
    """The same rows as without such scales, as nearly as the scales allow."""
    filled = []
    for channel in (None, np.linspace(2, 3, KV * DIM).reshape(KV, DIM) / 127):
        with cache_of("head", channel) as cache, Team(2) as team:
            cache.advance(TOKENS)
            out = np.empty_like(rows.q)
            with decode_task("fill", cache, rows.q, out, 2, isa=LIBRARY.isa(), seed=5) as task:
                team.run(task)
            filled.append(cache.numpy())
    far = np.abs(filled[0][0] - filled[1][0]).max()
    assert 0 < far < 2.5 / 127 and np.array_equal(filled[0][1], filled[1][1])


def test_sizes():
    shape = (KV, DIM, 80)
    plain, own = (kvbench.Cache.size_of(*shape, dtype="i8", channel=c) for c in (None, True))
    assert plain - own == own - kvbench.Cache.size_of(*shape, dtype="e4m3") == 80 * KV * 4
    given = kvbench.Cache.planned(*shape, dtype="i8+q4_0", channel=np.ones((KV, DIM)))
    gc.collect()
    assert LIBRARY.ffi.unpack(given.k.channel, KV * DIM) == [1.0] * KV * DIM


def changed(value):
    channel = np.ones((KV, DIM), np.float32)
    channel[1, 71] = value
    return channel


@pytest.mark.parametrize(
    ("channel", "dtype", "said"),
    [
        (changed(0), "i8", r"k.channel\[143\] is 0; all must be finite and positive"),
        (changed(-1), "i8", r"k.channel\[143\] is -1"),
        (changed(np.nan), "i8", r"k.channel\[143\] is nan"),
        (changed(np.inf), "i8", r"k.channel\[143\] is inf"),
        (changed(1)[:, 1:], "i8", r"channel has the shape \[2, 71\] \(expected is \[2, 72\]"),
        (1.0, "i8", r"channel has the shape \[\]"),
        (False, "i8", r"channel has the shape \[\]"),
        ("scales", "i8", "channel is not an array of real numbers"),
        (changed(1), "q8_0", "k.channel: the dtype q8_0 has no scales of channels"),
        (changed(1), "f16+i8", "k.channel: the dtype f16 has no scales of channels"),
        (True, "e4m3", "k.channel: the dtype e4m3 has no scales of channels"),
    ],
)
def test_what_is_refused(channel, dtype, said):
    with pytest.raises(BadArgument, match=said):
        kvbench.Cache(KV, DIM, 8, dtype=dtype, channel=channel)


def test_scales_of_rows():
    k = np.zeros((1, 3, 1, 3), np.float32)
    k[0, :, 0, 0], k[0, 1, 0, 1] = (1, -254, 3), 127
    assert channel_of(k).tolist() == [[2.0, 1.0, 1.0]]  # where all are 0, any will do
    with pytest.raises(BadArgument, match="k has the shape"):
        channel_of(k[0])
    q = np.ones((1, 4, 3), np.float32)
    own = times_channel(q, np.array([[2, 1, 1], [3, 1, 1]], np.float32))
    assert own[0, :, 0].tolist() == [2, 2, 3, 3]


def test_a_plug_in_that_does_not_take_them():
    asked, lib = Asked(channel=True), LIBRARY.lib
    assert asked.missing(0, lib) == "K by channel, and kvb_kernel.takes lacks KVB_TAKES_CHANNEL"
    assert not asked.missing(lib.KVB_TAKES_CHANNEL, lib)
