"""dot in whole numbers, against the bound that it states and against rounding in NumPy."""

import numpy as np
import pytest

from tests import narrow, oracle
from tests.formats import BLOCK, PACKED, TRANSPOSED, WHOLE
from tests.kernels.test_decode import DOT, case_of, passes, shape_of, table_of
from tests.oracle import Planes, Shape
from tests.raw import Bound, decode_args
from tests.scores import softmax

ROWS = [("i8", "head"), ("i8", "blockt"), ("q8_0", "head"), ("q4_0", "head")]
ROWS += [(dtype, "block16") for dtype in WHOLE]
MOST = {"i8": (-128, 127), "q8_0": (-128, 127), "q4_0": (-8, 7)}  # codes
every = pytest.mark.parametrize(("dtype", "layout"), ROWS)
FLOATS = [(dtype, "head") for dtype in DOT if dtype not in WHOLE]
FLOATS += [
    (dtype, where) for dtype, _ in FLOATS for where, own in TRANSPOSED.items() if dtype in own
]


def decoded(bench, isa, dtype, codes, scales, q, layout="head"):
    """Decode one sequence and KV head: codes of K and V [2, T, D], where D is whole blocks or
    lines; scales [2, T], for packed rows [2, T, blocks]. Returns None if a tier cannot run it.
    """
    if ("dot", layout, dtype, isa) not in bench.words.kernels:
        return None
    _, tokens, dim = codes.shape
    shape, out, slots = Shape(layout, dtype, 1, 1, dim, tokens), np.empty_like(q), np.arange(tokens)
    planes = Planes.filled(shape, 0x7F)
    for number, (side, plane) in enumerate(zip(shape.sides, (planes.k, planes.v), strict=True)):
        rows = codes[number].astype(np.int8)
        if dtype in PACKED:
            rows = packed(dtype, rows, scales[number]).reshape(tokens, -1)
        places, _ = oracle.places(shape, side, None, 0, slots)
        plane[oracle.row_spans(side, places, slots, side.payload)[0]] = rows.view(np.uint8)
    for plane, own in zip(planes.all()[2:], scales, strict=True):
        if dtype == "i8":
            plane.view(np.float32)[:tokens] = own
    with Bound(bench.raw, shape, [tokens], guard=1) as bound:
        bound.put(planes)
        bench.team(2).do(
            "decode", decode_args(bench.raw, bound, q, out, isa, "dot", deterministic=1)
        )
    return out[0]


def packed(dtype, codes, scales):
    """Pack codes [T, D] in blocks, each after its scale [T, blocks]."""
    codes = codes.reshape(len(codes), -1, BLOCK)
    if dtype == "q4_0":
        codes = (codes + 8).astype(np.uint8)
        codes = codes[..., : BLOCK // 2] | codes[..., BLOCK // 2 :] << 4
    return np.concatenate(
        [scales.astype(np.float16)[..., None].view(np.uint8), codes.view(np.uint8)], axis=-1
    )


@pytest.mark.parametrize(("dtype", "layout"), ROWS + FLOATS)
@pytest.mark.parametrize("dim", [64, 96, 128, 200, 256])
def test_rows_one_after_another(bench, dtype, layout, dim):
    """The schedule reads rows whole if possible, else in runs: whole blocks, and shorter ones after
    them. If the CPU lacks an instruction of the half, the decode is refused.
    """
    for group in (1, 2, 4, 8):
        shape = shape_of(layout, dtype, batch=3, head_dim=dim)
        how = {"variant": "dot", "q_heads": 2 * group, "schedule": "stream"}
        passes(bench, case_of(bench, shape, [700, 257, 41], table_of(shape), **how))


def stated(dtype, q, codes, scales):
    """Compute attention on the decoded rows, and the bound of dot.h around it; q [G, D]."""
    dim = q.shape[1]
    block = BLOCK if dtype in PACKED else dim
    k, v = (
        rows * own.reshape(len(own), -1).repeat(block, axis=1)
        for rows, own in zip(codes, scales, strict=True)
    )
    scale = 1 / np.sqrt(dim)
    out, floats = oracle.attend(q[None], k[None], v[None], scale)
    weights = softmax(scale * (q @ k.T))
    largest = np.abs(q).reshape(len(q), -1, block).max(axis=2)
    off = (
        scale
        * (largest @ np.abs(k).reshape(len(k), -1, block).sum(axis=2).T).max(axis=1, keepdims=True)
        / (2 * narrow.LARGEST)
    )
    grown = np.expm1(np.minimum(2 * off, 700))
    own = scales[1].astype(float).reshape(1, len(v), -1)
    rounded = narrow.steps_off(weights[None], v[None], own, plain=False)[0]
    return out[0], grown * (weights @ np.abs(v)) + (1 + grown) * rounded + floats[0]


def scales_of(rng, dtype, tokens, dim):
    size = (2, tokens, dim // BLOCK) if dtype in PACKED else (2, tokens)
    return rng.uniform(0.005, 0.02, size=size).astype(np.float16).astype(np.float32) * (
        16 if dtype == "q4_0" else 1
    )


@every
@pytest.mark.parametrize("kind", ["plain", "query", "scale", "steep"])
def test_the_stated_bound(bench, isa, dtype, layout, kind):
    """The answer is within the stated bound of exact attention, also if one element of q, or the
    scales of one token of V, are far above all others.
    """
    rng = np.random.default_rng(5)
    least, most = MOST[dtype]
    codes, scales = (
        rng.integers(least, most + 1, size=(2, 300, 128)),
        scales_of(rng, dtype, 300, 128),
    )
    q = rng.standard_normal((1, 6, 128)).astype(np.float32)
    if kind == "query":
        q[0, 1::2, 17] = 300
    if kind == "scale":
        scales[1, 100] = 1e4
    if kind == "steep":
        q *= 40
    out = decoded(bench, isa, dtype, codes, scales, q, layout)
    if out is not None:
        right, bound = stated(dtype, q[0].astype(float), codes, scales.astype(float))
        assert (np.abs(out - right) <= bound).all()
        assert kind != "plain" or np.abs(out - right).max() <= 2e-2


@every
@pytest.mark.parametrize("dim", [64, 96, 512, 1024])
def test_the_largest_sums_fit(bench, isa, dtype, layout, dim):
    """All codes are the least, or the largest of either sign, and all elements of q are equal: so
    every score is the same.
    """
    if dtype == "i8" and dim % 64:
        return
    ones = np.ones((2, 130, dim // BLOCK) if dtype in PACKED else (2, 130), np.float32)
    least, most = MOST[dtype]
    for code in (least, most):
        codes = np.full((2, 130, dim), code)
        out = decoded(
            bench, isa, dtype, codes, ones / 128, np.full((1, 9, dim), 3.0, np.float32), layout
        )
        assert out is None or np.allclose(out, code / 128, rtol=1e-5, atol=0)
        codes[0, 1:] = -code if code > 0 else most  # the first token takes all, or nothing
        out = decoded(
            bench,
            isa,
            dtype,
            codes,
            ones / 128,
            np.full((1, 9, dim), np.sign(code) * 60.0, np.float32),
            layout,
        )
        assert out is None or np.allclose(out, code / 128, rtol=1e-5, atol=0)


@every
def test_the_largest_sums_of_a_long_context_fit(bench, isa, dtype, layout):
    """131,072 tokens have the least code, and every weight is the largest whole number: so the sums
    are the least, too.
    """
    if layout != "head":
        return
    tokens, dim, least = 131072, 64, MOST[dtype][0]
    scales = np.full(
        (2, tokens, dim // BLOCK) if dtype in PACKED else (2, tokens), 1 / 128, np.float32
    )
    codes = np.full((2, tokens, dim), least, np.int8)
    out = decoded(bench, isa, dtype, codes, scales, np.full((1, 2, dim), 3.0, np.float32), layout)
    assert out is None or np.allclose(out, least / 128, rtol=1e-5, atol=0)


@every
def test_scores_of_extremes_are_exact(bench, isa, dtype, layout):
    """The scores of two tokens differ by one step of one code. Codes and q are at their largest,
    with different signs.
    """
    rng, dim = np.random.default_rng(7), 128
    ones = np.ones((2, 16, dim // BLOCK) if dtype in PACKED else (2, 16), np.float32)
    codes = rng.choice(MOST[dtype], size=(2, 16, dim))
    whole = rng.choice((-127, 127), size=(8, dim))
    step = np.float32(2.0**-14)  # scores from -1 to 1, so that every token counts
    q = (whole * step / np.log2(np.e) * np.sqrt(dim)).astype(np.float32)[None]
    codes[1] = np.eye(16, dim) * MOST[dtype][1]  # an output is a token's weight
    out = decoded(bench, isa, dtype, codes, ones / 128, q, layout)
    if out is not None:
        scores = whole @ codes[0].T * float(step) / 128
        weights = np.exp2(scores - scores.max(axis=1, keepdims=True))
        right = weights / weights.sum(axis=1, keepdims=True) * MOST[dtype][1] / 128
        half = right.max() / 254  # of the step of a weight
        assert np.abs(out[:, :16] - right).max() <= half + 1e-6


@every
def test_what_is_no_number_stays_none(bench, isa, dtype, layout):
    """A query row with a NaN or an infinity gives NaN; other rows of its group do not change."""
    codes, q = np.ones((2, 20, 64)), np.ones((1, 5, 64), np.float32)
    scales = np.ones((2, 20, 2) if dtype in PACKED else (2, 20), np.float32)
    q[0, 1, 9], q[0, 2], q[0, 3, 63], q[0, 4] = np.nan, 0, np.inf, 1e-42
    out = decoded(bench, isa, dtype, codes, scales, q, layout)
    if out is not None:
        assert np.isnan(out[[1, 3]]).all()
        assert np.allclose(out[[0, 2, 4]], 1, atol=1e-6)


def test_every_tier_has_it_for_its_dtypes(raw):
    """It exists in every layout that has the dtype, and states what it rounds. Floats need extra
    instructions, which not every tier has.
    """
    have = {
        (k["variant"], k["layout"], k["dtype"], k["isa"])
        for k in raw.kernels()
        if k["op"] == "decode"
    }
    flash, dot = ({own[1:] for own in have if own[0] == word} for word in ("flash", "dot"))
    assert {own for own in dot if own[1] in WHOLE} == {own for own in flash if own[1] in WHOLE}
    floats = {own[1] for own in dot} - {*WHOLE}
    assert {own for own in dot if own[2] == "scalar"} == {
        own for own in flash if own[1] in {*WHOLE, *floats} and own[2] == "scalar"
    }
    for dtype in raw.words("dtype"):
        asked = raw.word("variant", "dot"), raw.word("dtype", dtype)
        levels = [raw.lib.kvb_levels(*asked, which) for which in range(4)]
        whole = [narrow.LARGEST] * 2 * (dtype in WHOLE) or [0, 0]
        assert levels == [*whole, BLOCK * (dtype in PACKED), narrow.BITS * (dtype in floats)]
