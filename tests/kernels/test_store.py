"""Stored bytes are exact: every midpoint rounds to even, and every tier writes the same bytes. That
every code decodes, the C check program shows (tests/check/codes.c); that nothing else is written,
the fuzz.
"""

import numpy as np
import pytest

from tests import formats, oracle
from tests.oracle import Planes, Shape
from tests.raw import Bound, store_args
from tests.trial import compare_planes

DIM = 64
# rounded one by one
FLOATS = [dtype for dtype in formats.STORED if dtype != "f32" and dtype not in formats.SCALED]


def one_head(dtype, rows, dim=DIM, **more):
    return Shape(
        layout="head", dtype=dtype, batch=1, kv_heads=1, head_dim=dim, capacity=rows, **more
    )


def encode(bench, isa, shape, values, nt=0, head_major=0):
    """Return the bytes of K after a bulk store of `values` [rows, D] (their negatives are V), and
    the planes.
    """
    with Bound(bench.raw, shape, [0], guard=1) as bound:
        bound.put(Planes.filled(shape, 0xA5))
        k = np.ascontiguousarray(values, dtype=np.float32)
        v = -k
        bench.team(1).do(
            "bulk", store_args(bench.raw, bound, k, v, len(k), isa, nt=nt, head_major=head_major)
        )
        return bound.planes.copy()


def codes_of(dtype):
    """Return every code, positive ones first."""
    size = np.dtype(formats.STORED[dtype]).itemsize
    return np.arange(1 << 8 * size).astype(f"u{size}")


def around_midpoints(dtype):
    """Return every finite code, every midpoint between neighbours, and one float32 step to both
    sides of it.
    """
    codes = codes_of(dtype)
    with np.errstate(invalid="ignore"):
        codes = codes[: len(codes) // 2].view(formats.STORED[dtype]).astype(np.float64)
    codes = codes[np.isfinite(codes)]
    middle = np.append(
        (codes[:-1] + codes[1:]) / 2, codes[-1] + (codes[-1] - codes[-2]) / 2
    ).astype(np.float32)
    inf = np.float32(np.inf)
    with np.errstate(over="ignore"):
        values = [
            codes.astype(np.float32),
            middle,
            np.nextafter(middle, inf),
            np.nextafter(middle, -inf),
        ]
    edge = np.array(
        [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            1e-45,
            1.1754942e-38,
            1.1754944e-38,
            3.4028235e38,
            65519.996,
            65520,
            464,
            480,
            512,
            61440,
            65536,
        ],
        np.float32,
    )
    values = np.concatenate([*values, edge])
    return np.concatenate([values, -values])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("nt", [0, 1])
def test_every_midpoint_rounds_to_even(bench, isa, dtype, nt):
    values = around_midpoints(dtype)
    values = np.pad(values, (0, -len(values) % DIM)).reshape(-1, DIM)
    got = encode(bench, isa, one_head(dtype, len(values)), values, nt)
    for plane, source in ((got.k, values), (got.v, -values)):
        assert plane.tobytes() == formats.rounded(dtype, source).tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_stays_nan(bench, isa, dtype):
    bits = np.array(
        [0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF, 0x7F80FFFF, 0xFF800001, 0x7FBFFFFF],
        np.uint32,
    )
    values = np.pad(bits, (0, DIM - len(bits))).view(np.float32)[None]
    shape = one_head(dtype, 1)
    planes = encode(bench, isa, shape, values)
    for plane in (planes.k, planes.v):
        stored = plane.view(formats.STORED[dtype]).astype(np.float32)
        assert np.isnan(stored[: len(bits)]).all() and not stored[len(bits) :].any()
    assert [p.tobytes() for p in planes.all()] == [
        p.tobytes() for p in encode(bench, "scalar", shape, values).all()
    ]


@pytest.mark.parametrize("dtype", formats.MOST)
def test_one_nan_of_each_sign(bench, isa, dtype):
    bits = np.array(
        [0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0xFF800001, 0x7FAAAAAA, 0xFFD55555], np.uint32
    )
    values = np.pad(bits, (0, DIM - len(bits))).view(np.float32)[None]
    planes = encode(bench, isa, one_head(dtype, 1), values)
    assert planes.k[: len(bits)].tolist() == [0x7F, 0x7F, 0xFF, 0xFF, 0x7F, 0xFF]
    assert planes.v[: len(bits)].tolist() == [0xFF, 0xFF, 0x7F, 0x7F, 0xFF, 0x7F]


def i8_rows(rng):
    """Return rows of every magnitude and some unusual ones: ties, zeros, NaN, infinities,
    subnormals, the limits of the scale.
    """
    rows = rng.standard_normal((400, DIM)).astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        rows *= np.exp2(rng.integers(-149, 126, (400, 1))).astype(np.float32)
    rows[:40] = rng.integers(-254, 255, (40, DIM)) / 2
    rows[:40, 0] = 127
    rows[40] = 0
    rows[41, 3], rows[42, 5], rows[43, 0], rows[44] = np.nan, np.inf, -np.inf, np.nan
    rows[45], rows[46], rows[47, 1] = 1e-45, 1.2e-38, 3.4028235e38
    rows[48], rows[49] = 65504 * 127.0, 65520 * 127.0
    rows[50:60] = rng.standard_normal((10, DIM)) * 1e-6  # f16 scales that are subnormal, or vanish
    return rows


def agree(bench, isa, shape, values, *how):
    """Compare each byte with the oracle."""
    right = Planes.filled(shape, 0xA5)
    oracle.store(shape, right, None, 0, 0, values[:, None], -values[:, None])
    assert not compare_planes("bulk", encode(bench, isa, shape, values, *how), right)


@pytest.mark.parametrize("scale", ["f32", "f16"])
@pytest.mark.parametrize("nt", [0, 1])
def test_i8_codes_and_scales(bench, isa, scale, nt):
    values = i8_rows(np.random.default_rng(2))
    agree(bench, isa, one_head("i8", len(values), scale=scale), values, nt)


def block_rows(rng, dtype):
    """Return the rows of i8 and others: ties of codes, blocks whose largest elements have both
    signs, the ends of float16 scales.
    """
    rows = rng.standard_normal((500, DIM)).astype(np.float32)
    rows[:400] = i8_rows(rng)
    largest, half = (127, 254) if dtype == "q8_0" else (8, 16)
    rows[400:440] = rng.integers(-half, half + 1, (40, DIM)) / 2  # x * inverse is half way
    rows[400:440, ::32] = largest * rng.choice([-1, 1], (40, 2))
    rows[440:450] = rng.choice([-3, 3, 3 - 2**-22], (10, DIM))
    # scales that are subnormal, or vanish
    rows[450:460] *= np.float32(2) ** rng.integers(-30, -12, (10, 1))
    for row, scale in enumerate(
        (65504, 65519.996, 65520, 7e4, 2**-24, 2**-25, 2.9802326e-8, 1e-38), 460
    ):
        rows[row, ::32] = scale * largest * (-1) ** row
    rows[470], rows[471], rows[472, 40] = 0.0, -0.0, np.float32(2.0**-126)
    rows[473, :32], rows[474, 5], rows[475, 3:5] = np.nan, np.nan, (np.inf, np.nan)
    return rows


@pytest.mark.parametrize("dtype", formats.PACKED)
@pytest.mark.parametrize("nt", [0, 1])
@pytest.mark.parametrize("head_major", [0, 1])
def test_blocks(bench, isa, dtype, nt, head_major):
    values = block_rows(np.random.default_rng(3), dtype)
    agree(bench, isa, one_head(dtype, len(values)), values, nt, head_major)


@pytest.mark.parametrize(
    ("layout", "dtype", "more"),
    [
        ("head", "i8", {"v_scale": "f16", "v_dim": 70}),
        ("position", "e4m3", {"v_dtype": "e5m2", "tensor": (41.0, 3.0), "v_dim": 20}),
        ("blockt", "f16", {"v_dtype": "q4_0", "v_dim": 130}),
        ("block16", "i8", {"v_dtype": "q4_0", "v_dim": 130}),
        ("block16", "q8_0", {"v_dtype": "e5m2", "tensor": (0.0, 3.0), "v_dim": 20}),
        ("block16", "e4m3", {"tensor": (41.0, 0.0), "v_dtype": "q8_0", "v_dim": 320}),
    ],
)
@pytest.mark.parametrize("head_major", [0, 1])
def test_two_widths(bench, isa, layout, dtype, more, head_major):
    """K and V have two dtypes, or their own scales. Every byte is right in partial blocks and whole
    ones, also streamed.
    """
    shape, rng = Shape(layout, dtype, 1, 2, 64, 40, **more), np.random.default_rng(8)
    k, v = (rng.standard_normal((1, 37, 2, side.dim), dtype=np.float32) for side in shape.sides)
    right = Planes.filled(shape, 0xA5)
    oracle.store(shape, right, None, 0, 0, k[0], v[0])
    sources = [np.ascontiguousarray(x.swapaxes(1, 2)) if head_major else x for x in (k, v)]
    for nt in (0, 1):
        with Bound(bench.raw, shape, [0], guard=1) as bound:
            bound.put(Planes.filled(shape, 0xA5))
            args = store_args(bench.raw, bound, *sources, 37, isa, nt=nt, head_major=head_major)
            bench.team(1).do("bulk", args)
            assert not compare_planes("bulk", bound.planes, right)
