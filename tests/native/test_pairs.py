"""Caches with two dtypes or two widths for K and V, against NumPy: what is stored, where, and the
answers.
"""

from itertools import product

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.native import Team, decode_task, default_library, repack_task, token_bytes
from kvbench.oracle import Levels, attention_in_steps, whole
from kvbench.verify.reads import rows_sum
from tests.formats import (
    CODES,
    DTYPES,
    PACKED,
    SCALED,
    TRANSPOSED,
    WHOLE,
    from_blocks,
    quantise,
    rounded,
    to_blocks,
)
from tests.oracle import Side, attend, encode_rows

LIBRARY = default_library()
TOKENS, BATCH, KV, GROUP = 75, 2, 2, 3
DIMS = (96, 96), (192, 128), (40, 64)
# every dtype as K and as V, beside some others
PAIRS = [(dtype, DTYPES[place - 3]) for place, dtype in enumerate(DTYPES)]
PAIRS += [("q8_0", "q4_0"), ("f16", "i8"), ("i8", "q8_0"), ("f16", "f16"), ("i8", "i8")]
DOT = sorted({kernel.dtype for kernel in LIBRARY.kernels() if kernel.variant == "dot"})

every_tier = pytest.mark.parametrize("isa", LIBRARY.isas())
every_layout = pytest.mark.parametrize("layout", LIBRARY.words("layout"))


@pytest.fixture(scope="module")
def rows():
    """K, V and queries of these widths."""

    def made(dims):
        rng = np.random.default_rng(sum(dims))
        k, v = (rng.standard_normal((BATCH, TOKENS, KV, dim), dtype=np.float32) for dim in dims)
        return k, v, rng.standard_normal((BATCH, KV * GROUP, dims[0]), dtype=np.float32)

    found = {dims: made(dims) for dims in DIMS}
    return found.__getitem__


def pairs_of(layout):
    of_v = CODES if layout == "block16" else DTYPES
    return [pair for pair in PAIRS if pair[0] in TRANSPOSED.get(layout, DTYPES) and pair[1] in of_v]


def kept(dtype, values):
    """float32 rows as they are stored, in float64."""
    if dtype in PACKED:
        return from_blocks(dtype, to_blocks(dtype, values))[..., : values.shape[-1]]
    if dtype in SCALED:
        codes, scales = quantise(values, "f32")
        return codes * scales[..., None].astype(np.float64)
    return rounded(dtype, values).astype(np.float64)


def levels(dtype):
    """For rows of 96 elements."""
    return Levels(127, 32 if dtype in PACKED else 96, 0) if dtype in WHOLE else Levels(0, 96, 8)


def cache_of(layout, pair, dims, **facts):
    shuffled = {"shuffle": 1} if layout == "paged" else {}
    width = {} if dims[0] == dims[1] else {"v_dim": dims[1]}
    facts = shuffled | width | facts
    return kvbench.Cache(KV, dims[0], 80, BATCH, layout=layout, dtype="+".join(pair), **facts)


def answer(q, k, v):
    """q [B, Hq, Dk], k and v [B, T, Hkv, D]"""
    k, v = k.swapaxes(1, 2), v.swapaxes(1, 2)
    grouped = q.reshape(BATCH, KV, GROUP, -1)
    out = [attend(*each, 1 / np.sqrt(q.shape[2]))[0] for each in zip(grouped, k, v, strict=True)]
    return np.reshape(out, (BATCH, KV * GROUP, -1))


@every_layout
@every_tier
@pytest.mark.parametrize("dims", DIMS)
def test_what_is_stored_and_what_is_answered(isa, layout, dims, rows):
    """A prompt, then a token: rows come back as each format stores them, and attention is float64's
    on these.
    """
    k, v, q = rows(dims)
    for pair in pairs_of(layout):
        with cache_of(layout, pair, dims) as cache:
            cache.bulk(k[:, :-1], v[:, :-1], isa=isa, threads=2)
            cache.append(k[:, -1], v[:, -1], isa=isa)
            stored = list(map(kept, pair, (k, v)))
            for got, want in zip(cache.numpy(isa), stored, strict=True):
                assert np.allclose(got, want, rtol=2e-7, atol=0), pair
            right = answer(q, *stored)
            for variant in ("flash", "twopass")[: 1 if layout == "block16" else 2]:
                out = cache.decode(q, variant, isa, threads=2)
                assert np.abs(out - right).max() <= 2e-6 * np.abs(stored[1]).max(), (variant, pair)


@every_tier
@pytest.mark.parametrize("layout", ["head", "blockt", "block16"])
def test_products_of_narrow_numbers(isa, layout, rows):
    """For every two such dtypes, within what the rounding of queries and weights explains."""
    k, v, q = rows((96, 96))
    there = {kernel.id for kernel in LIBRARY.kernels() if kernel.runnable}
    for pair in product(DOT, DOT):
        halves = zip((layout, layout if layout == "block16" else "head"), pair, strict=True)
        if not {f"decode.dot.{where}.{dtype}.{isa}" for where, dtype in halves} <= there:
            continue
        with cache_of(layout, pair, (96, 96)) as cache:
            cache.bulk(k, v)
            stored = list(map(kept, pair, (k, v)))
            k_levels, v_levels = map(levels, pair)
            assert LIBRARY.levels("dot", "+".join(pair), 96) == (k_levels, v_levels)
            right, off = attention_in_steps(q, whole(*stored), cache.lengths, (k_levels, v_levels))
            out = cache.decode(q, "dot", isa)
            assert (np.abs(out - right) <= off + 2e-6 * np.abs(stored[1]).max()).all(), pair
            assert not (np.abs(1.2 * out - right) <= off).all()


@every_layout
def test_each_row_lies_in_a_plane_of_its_own(layout, rows):
    """Its bytes and its scales' bytes are where token_bytes() says."""
    k, v, _ = rows((192, 128))
    for pair in pairs_of(layout):
        with cache_of(layout, pair, (192, 128), scale="f16") as cache:
            cache.bulk(k, v)
            sides = [
                encode_rows(Side(dtype, row.size, "f16", 0), row)
                for dtype, row in zip(pair, (k[1, 40, 1], v[1, 40, 1]), strict=True)
            ]
            wanted = [rows for rows, _ in sides] + [s for _, s in sides if s is not None]
            found = [cache.arena.view()[places] for places in token_bytes(cache, 40, 1, 1)]
            assert list(map(bytes, found)) == list(map(bytes, wanted)), pair


@every_tier
@every_layout
def test_the_twin_reads_both_planes(isa, layout, rows):
    """Every row and scale once; traffic counts both planes' bytes and products."""
    k, v, q = rows((192, 128))
    out, tokens = np.empty((BATCH, KV * GROUP, 128), dtype=np.float32), BATCH * TOKENS * KV
    for pair in pairs_of(layout)[::3]:
        with cache_of(layout, pair, (192, 128)) as cache, Team(2) as team:
            cache.bulk(k, v)
            with decode_task("twin", cache, q, out, 2, isa=isa) as task:
                team.run(task)
                assert task.sum() == rows_sum(cache), pair
            with decode_task("decode", cache, q, out, 2, isa=isa) as task:
                traffic = task.traffic()
        sides = [Side(dtype, dim, "f32", 0) for dtype, dim in zip(pair, (192, 128), strict=True)]
        assert traffic.bytes_kv == tokens * sum(side.payload for side in sides), pair
        assert traffic.bytes_scales == tokens * sum(side.scale_bytes for side in sides), pair
        assert traffic.flops == 2 * tokens * GROUP * (192 + 128)


@pytest.mark.parametrize(
    ("layout", "pair"),
    [("head", ("q8_0", "f16")), ("blockt", ("i8", "q4_0")), ("block16", ("q4_0", "i8"))],
)
def test_a_cache_that_grows(layout, pair, rows):
    k, v, _ = rows((192, 128))
    facts = {"layout": layout, "dtype": "+".join(pair), "v_dim": 128}
    with (
        kvbench.Cache(KV, 192, 200, BATCH, **facts) as after,
        kvbench.Cache(KV, 192, 80, BATCH, arena=after.arena, **facts) as before,
        Team(1) as team,
    ):
        before.bulk(k, v)
        held = before.numpy()
        with repack_task(before, after, 1, isa=LIBRARY.isa()) as task:
            team.run(task)
        for got, want in zip(after.numpy(), held, strict=True):
            assert np.array_equal(got, want)
        after.clear()
        assert not after.arena.view().any()


def test_a_pair_of_equal_dtypes_is_written_as_one():
    with kvbench.Cache(2, 192, 8, dtype="f16+f16") as cache:
        assert cache.dtype == "f16" and repr(cache).startswith("<Cache head f16, 1 x 2 x 192, ")
    with kvbench.Cache(2, 192, 8, dtype="q8_0+q4_0", v_dim=128) as cache:
        assert cache.dtype == "q8_0+q4_0" and cache.dims == (192, 128)
        assert repr(cache).startswith("<Cache head q8_0+q4_0, 1 x 2 x 192+128, ")
    alike = kvbench.Cache.size_of(2, 64, 96, dtype="i8+i8", v_dim=64)
    assert alike == kvbench.Cache.size_of(2, 64, 96, dtype="i8")


@pytest.mark.parametrize(
    ("dtype", "said"),
    [
        ("q8_0+", r"'q8_0\+' is not a pair of dtypes: one is missing"),
        ("+f16", r"'\+f16' is not a pair of dtypes: one is missing"),
        ("f16+f99", r"'f16\+f99' is not a pair of dtypes: 'f99' is not known \(one of: f32, f16"),
        ("f16+i8+f16", r"'i8\+f16' is not known"),
        ("f16 + i8", "'f16 ' is not known"),
    ],
)
def test_words_that_are_not_a_pair(dtype, said):
    with pytest.raises(BadArgument, match=said):
        kvbench.Cache(1, 8, 8, dtype=dtype)


@pytest.mark.parametrize("v_dim", [0, -1, 1.5, "64"])
def test_numbers_that_are_not_a_width(v_dim):
    with pytest.raises(BadArgument, match="v_dim is"):
        kvbench.Cache(1, 8, 8, v_dim=v_dim)


def test_rows_of_another_width_are_refused(rows):
    k, v, q = rows((192, 128))
    with cache_of("head", ("f16", "f16"), (192, 128)) as cache:
        with pytest.raises(BadArgument, match=r"v has the shape .*expected is \[2, 75, 2, 128\]"):
            cache.bulk(k, k)
        with pytest.raises(BadArgument, match=r"v has the shape .*expected is \[2, 2, 128\]"):
            cache.append(k[:, 0], k[:, 0])
        cache.bulk(k, v)
        with pytest.raises(BadArgument, match="q has the shape"):
            cache.decode(q[..., :128])


@pytest.mark.parametrize(
    ("variant", "pair"),
    [
        ("perhead", ("q8_0", "q4_0")),
        ("round16", ("f32", "f16")),
        ("round16", ("f16", "f32")),
        ("dot", ("i8", "f16")),
        ("dot", ("f16", "bf16")),
        ("dot", ("f32", "i8")),
    ],
)
def test_a_pair_that_a_variant_lacks(variant, pair, rows):
    k, v, q = rows((96, 96))
    said = f"variant {variant} has no kernel for (K of {pair[0]}|V of {pair[1]})"
    with cache_of("head", pair, (96, 96)) as cache:
        cache.bulk(k, v)
        with pytest.raises(BadArgument, match=said):
            cache.decode(q, variant)


@pytest.mark.parametrize(("variant", "dtype"), [("perhead", "f16"), ("round16", "f32")])
def test_other_variants_take_two_widths(variant, dtype, rows):
    k, v, q = rows((192, 128))
    with cache_of("head", (dtype, dtype), (192, 128)) as cache:
        cache.bulk(k, v)
        right = answer(q, kept("f16", k), kept("f16", v))
        assert np.abs(cache.decode(q, variant) - right).max() <= 2e-6 * np.abs(v).max()
