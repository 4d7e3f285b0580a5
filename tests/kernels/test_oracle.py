"""The oracle against plain loops and numbers made by hand; its addresses never overlap."""

import itertools
import math

import numpy as np
import pytest

from tests import formats, oracle
from tests.cases import Words
from tests.oracle import Shape
from tests.raw import Bound

LAYOUTS = [
    ("head", "head"),
    ("position", "head"),
    ("paged", "head"),
    ("paged", "token"),
    ("blockt", "head"),
]
PLANNED = [*LAYOUTS, ("block16", "head")]


def shape_of(layout, inner, dtype="i8", **more):
    facts = {
        "batch": 2,
        "kv_heads": 3,
        "head_dim": 20,
        "capacity": 11,
        "block_tokens": 4,
        "blocks": 7,
        "pad": 64,
    }
    return Shape(layout=layout, inner=inner, dtype=dtype, **(facts | more))


def table_of(shape):
    return (
        np.random.default_rng(0)
        .permutation(shape.blocks)[: shape.batch * shape.table_width]
        .reshape(2, -1)
    )


def test_attention_by_hand():
    q, k, v = (
        np.array([[[2.0, 0.0]]]),
        np.array([[[0.0, 5.0], [1.0, 7.0]]]),
        np.array([[[1.0, 0.0], [0.0, 4.0]]]),
    )
    out, _ = oracle.attend(q, k, v, scale=0.5)
    second = math.e / (1 + math.e)
    assert out[0, 0] == pytest.approx([1 - second, 4 * second], rel=1e-15)


@pytest.mark.parametrize(("layout", "inner"), LAYOUTS)
@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
def test_rows_never_overlap(layout, inner, dtype):
    """V is in rows; K has another dtype and width."""
    shape = shape_of(layout, inner, "bf16", v_dtype=dtype, v_dim=70)
    side, slots, rows, scales = shape.v, np.arange(shape.capacity), [], []
    for seq in range(shape.batch):
        places = oracle.places(shape, side, table_of(shape), seq, slots)
        rows.append(places[0].ravel())
        scales.append(places[1].ravel())
    rows, scales = np.sort(np.concatenate(rows)), np.sort(np.concatenate(scales))
    assert (np.diff(rows) >= side.row).all()
    assert rows[0] >= 0 and rows[-1] + side.row <= shape.plane(side)
    if side.scaled:
        assert (np.diff(scales) >= side.scale_bytes).all()
        assert scales[-1] < shape.scale_plane(side)


@pytest.mark.parametrize("dtype", formats.CELL)
def test_cells_of_keys_by_hand(dtype):
    """Every byte of K has its own place. Cell 3 of slot 17 is the second one in the fourth row of
    the second block.
    """
    shape = shape_of("blockt", "head", dtype, capacity=35)
    side, slots = shape.k, np.arange(48)
    rows = np.concatenate([oracle.places(shape, side, None, seq, slots)[0] for seq in range(2)])
    spans = oracle.row_spans(side, rows, slots, side.row)
    assert len(np.unique(spans)) == spans.size
    assert spans.min() == 0 and spans.max() < shape.plane(side)
    cell = {"f32": 4, "f16": 2, "bf16": 4, "i8": 4}[dtype]
    assert spans[0, 17, 3 * cell : 4 * cell].tolist() == [
        16 * side.row + (3 * 16 + 1) * cell + i for i in range(cell)
    ]
    assert np.array_equal(
        spans[4] - spans[0], np.full(spans[0].shape, 4 * (48 * side.row + shape.pad))
    )


# where a row of 64 elements has the 22nd of its codes
CODE_21 = {"i8": 21, "e4m3": 21, "e5m2": 21, "q8_0": 2 + 21, "q4_0": 18 + 2 + 5}


@pytest.mark.parametrize("dtype", formats.CODES)
def test_blocks_of_codes_by_hand(dtype):
    """Every byte of K and V has its own place. Code 21 of slot 22, the seventh row of the second
    block, is the second code of cell 5 in K. In V it is the sixth code of the second part of 16,
    in its second quad. Two packs have 64 bytes of scales before their codes.
    """
    shape = shape_of("block16", "head", dtype, capacity=35, head_dim=64)
    front = 2 * 32 if dtype in formats.PACKED else 0
    for side, place in zip(shape.sides, ((5 * 16 + 6) * 4 + 1, 256 + 64 + 5 * 4 + 2), strict=True):
        slots, heads = np.arange(48), []
        for seq in range(2):
            rows, _ = oracle.places(shape, side, None, seq, slots)
            heads.append(oracle.row_spans(side, rows, slots, side.row))
        spans = np.concatenate(heads)
        assert len(np.unique(spans)) == spans.size
        assert spans.min() == 0 and spans.max() < shape.plane(side)
        assert (spans[1] - spans[0] == 48 * side.row + shape.pad).all()
        assert spans[0, 22, CODE_21[dtype]] == 16 * side.row + front + place
        if front:  # of its second scale
            second = spans[0, 22, formats.PACKED[dtype] :][:2]
            assert second.tolist() == [16 * side.row + 32 + 6 * 2 + i for i in range(2)]


@pytest.mark.parametrize(("layout", "inner"), PLANNED)
@pytest.mark.parametrize("scale", ["f32", "f16"])
def test_library_plans_the_same_sizes(raw, layout, inner, scale):
    """K and V are alike, or V is i8 with another width and f16 scales."""
    more = {"v_dtype": "i8", "v_scale": "f16", "v_dim": 70}
    for dtype, dim, pad, v in itertools.product(
        Words.of(raw).dtypes(layout), (1, 20, 129), (0, 320), ({}, more)
    ):
        shape = shape_of(layout, inner, dtype, scale=scale, head_dim=dim, pad=pad, **v)
        with Bound(raw, shape, [0, 0], table_of(shape)) as bound:
            k, v = bound.cache.k, bound.cache.v
            assert (k.bytes, v.bytes, k.scale_bytes, v.scale_bytes) == shape.planes
            assert bound.cache.bytes == sum(shape.planes)
            assert (k.dim, v.dim) == tuple(side.dim for side in shape.sides)
            assert (k.cell, v.cell) == tuple(side.cell for side in shape.sides)
            for plane, side in enumerate(shape.sides):
                words = raw.word("layout", layout), raw.word("dtype", side.dtype)
                assert raw.lib.kvb_cell(*words, plane) == side.cell


def test_quantise_by_hand():
    codes, scale = formats.quantise(np.array([127.0, 0.5, 1.5, -2.5, np.nan]), "f32")
    assert scale == np.float32(127.0) * (np.float32(1) / np.float32(127)) and codes.tolist() == [
        127,
        0,
        2,
        -2,
        0,
    ]
    codes, scale = formats.quantise(np.zeros(3), "f32")
    assert scale == 0 and codes.tolist() == [0, 0, 0]
    codes, scale = formats.quantise(np.array([np.inf, -np.inf, 1.0]), "f16")
    assert scale == 65504 and codes.tolist() == [127, -127, 0]


def block_by_block(dtype, x):
    """Encode by ggml's rule for one block, element by element."""
    largest, at = np.float32(0), np.float32(0)
    for value in x:
        if abs(value) > largest:
            largest, at = abs(value), value
    d = largest / np.float32(127) if dtype == "q8_0" else at / np.float32(-8)
    inverse = np.float32(1) / d if d else np.float32(0)
    codes = []
    for value in x * inverse:
        near = math.floor(abs(float(value)) + 0.5)
        codes.append(
            (near if value > 0 else -near) % 256
            if dtype == "q8_0"
            else min(15, int(value + np.float32(8.5)))
        )
    if dtype == "q4_0":
        codes = [codes[i] | codes[i + 16] << 4 for i in range(16)]
    return np.float16(d).tobytes() + bytes(codes)


@pytest.mark.parametrize("dtype", formats.PACKED)
def test_blocks_by_hand(dtype):
    rng = np.random.default_rng(6)
    rows = (rng.standard_normal((60, 32)) * 10.0 ** rng.integers(-6, 5, (60, 1))).astype(np.float32)
    rows[:20] = rng.integers(-16, 17, (20, 32)) / 2
    rows[20] = 0
    rows[21] = np.where(np.arange(32) % 2, 5, -5)
    assert formats.to_blocks(dtype, rows).reshape(60, -1).tobytes() == b"".join(
        block_by_block(dtype, x) for x in rows
    )
    assert formats.to_blocks(dtype, rows[20]).tobytes() == (
        bytes(34) if dtype == "q8_0" else b"\x00\x80" + b"\x88" * 16
    )


def test_a_wrong_answer_is_outside_the_bound():
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((2, n, 64)) for n in (3, 300, 300))
    out, bound = oracle.attend(q, k, v, 0.125)
    off = k.copy()
    off[:, 7, 0] *= -1
    worse, _ = oracle.attend(q, off, v, 0.125)
    assert (np.abs(worse - out).max(axis=2) > oracle.practical(v)).all()
    rounded, _ = oracle.attend(q, k.astype(np.float32), v.astype(np.float32), 0.125)
    assert (np.abs(rounded - out) < bound).all()
