"""dot8 and dot16: i8 rows times whole numbers, against the bound that they state and what NumPy rounds."""

import numpy as np
import pytest

from tests import cases, oracle, trial
from tests.kernels.test_decode import case_of, shape_of, table_of
from tests.oracle import Planes, Shape
from tests.raw import Bound, decode_args

DOTS = pytest.mark.parametrize("variant", ["dot8", "dot16"])


def passes(bench, isa, variant, shape, lengths, **more):
    """Where the tier lacks the variant, that it is refused."""
    assert trial.failures(bench, case_of(bench, shape, lengths, table_of(shape), variant=variant, **more), [isa]) == []


def decoded(bench, isa, variant, codes, scales, q, layout="head"):
    """Of one sequence and KV head: codes of K and V [T, D], D whole lines, scales [T]. None where a tier lacks it."""
    if (variant, layout, "i8", isa) not in bench.words.kernels:
        return None
    tokens, dim = codes[0].shape
    shape, out = Shape(layout, "i8", 1, 1, dim, tokens), np.empty_like(q)
    planes = Planes.filled(shape, 0x7F)
    if layout == "blockt":  # 16 tokens side by side, four codes of each
        rows = np.resize(codes[0], (-(-tokens // 16) * 16, dim))
        codes = rows.reshape(-1, 16, dim // 4, 4).transpose(0, 2, 1, 3), codes[1]
    for plane, scale_plane, rows, own in zip(planes.all()[:2], planes.all()[2:], codes, scales, strict=True):
        plane.view(np.int8)[: rows.size] = rows.ravel()
        scale_plane.view(np.float32)[:tokens] = own
    with Bound(bench.raw, shape, [tokens], guard=1) as bound:
        bound.put(planes)
        bench.team(2).do("decode", decode_args(bench.raw, bound, q, out, isa, variant, deterministic=1))
    return out[0]


@DOTS
@pytest.mark.parametrize("layout", ["head", "blockt"])
@pytest.mark.parametrize("dim", [64, 96, 128, 200, 256])
def test_rows_one_after_another(bench, isa, variant, dim, layout):
    """In the scheme that reads rows whole where it can, and by runs elsewhere: whole blocks, and shorter ones behind them."""
    for group in (1, 2, 4, 8):
        how = {"q_heads": 2 * group, "schedule": "stream"}
        passes(bench, isa, variant, shape_of(layout, "i8", batch=3, head_dim=dim), [700, 257, 41], **how)


def stated(q, codes, scales, levels):
    """Attention on the decoded rows, and the bound of dot.c around it: q [G, D]."""
    k, v = (rows * own[:, None].astype(float) for rows, own in zip(codes, scales, strict=True))
    scale = 1 / np.sqrt(q.shape[1])
    out, floats = oracle.attend(q[None], k[None], v[None], scale)
    weights = oracle.softmax(scale * (q @ k.T))
    off = scale * np.abs(q).max(axis=1, keepdims=True) * np.abs(k).sum(axis=1).max() / (2 * levels[0])
    grown = np.expm1(np.minimum(2 * off, 700))
    rounded = oracle.weights_off(weights[None], v[None], scales[1][None].astype(float), levels[1], plain=False)[0]
    return out[0], grown * (weights @ np.abs(v)) + (1 + grown) * rounded + floats[0]


@DOTS
@pytest.mark.parametrize("layout", ["head", "blockt"])
@pytest.mark.parametrize("kind", ["plain", "query", "scale", "steep"])
def test_the_stated_bound(bench, isa, variant, kind, layout):
    """Of what no step of theirs rounded; with one element of q, or one scale of V, far above all others, too."""
    rng = np.random.default_rng(5)
    codes = rng.integers(-127, 128, size=(2, 300, 128))
    scales = rng.uniform(0.005, 0.02, size=(2, 300)).astype(np.float32)
    q = rng.standard_normal((1, 6, 128)).astype(np.float32)
    if kind == "query":
        q[0, 1::2, 17] = 300
    if kind == "scale":
        scales[1, 100] = 1e4
    if kind == "steep":
        q *= 40
    out = decoded(bench, isa, variant, codes, scales, q, layout)
    if out is not None:
        right, bound = stated(q[0].astype(float), codes, scales, cases.levels(variant, 128))
        assert (np.abs(out - right) <= bound).all()
        assert kind != "plain" or np.abs(out - right).max() <= {"dot8": 2e-2, "dot16": 5e-5}[variant]


@DOTS
@pytest.mark.parametrize("layout", ["head", "blockt"])
@pytest.mark.parametrize("dim", [512, 1024])
def test_the_largest_sums_fit(bench, isa, variant, dim, layout):
    """All codes -128, or 127 of either sign, under a q whose elements are all alike: every score is the same."""
    for code in (-128, 127):
        codes = np.full((2, 130, dim), code)
        scales = np.full((2, 130), 0.01, np.float32)
        out = decoded(bench, isa, variant, codes, scales, np.full((1, 9, dim), 3.0, np.float32), layout)
        assert out is None or np.allclose(out, code * 0.01, rtol=1e-6, atol=0)
        codes[0, 1:] = -code if code > 0 else 127  # the first token takes all, or nothing
        out = decoded(bench, isa, variant, codes, scales, np.full((1, 9, dim), np.sign(code) * 3.0, np.float32), layout)
        assert out is None or np.allclose(out, code * 0.01, rtol=1e-6, atol=0)


@DOTS
def test_what_is_no_number_stays_none(bench, isa, variant):
    codes, scales = np.ones((2, 20, 64)), np.ones((2, 20), np.float32)
    q = np.ones((1, 3, 64), np.float32)
    q[0, 1, 9], q[0, 2] = np.nan, 0
    out = decoded(bench, isa, variant, codes, scales, q)
    assert out is None or (np.isnan(out[1]).all() and np.allclose(out[[0, 2]], 1, atol=1e-6))


@DOTS
def test_of_i8_alone(raw, variant):
    """Where a tier lists it, it does so for every layout."""
    kernels = [kernel for kernel in raw.kernels() if kernel["variant"] == variant]
    rows = [kernel for kernel in raw.kernels() if kernel["variant"] == "flash" and kernel["dtype"] == "i8"]
    tiers = {kernel["isa"] for kernel in kernels}
    assert "scalar" in tiers and {kernel["dtype"] for kernel in kernels} == {"i8"}
    assert {(k["layout"], k["isa"]) for k in kernels} == {(k["layout"], k["isa"]) for k in rows if k["isa"] in tiers}
    for dim in (1, 512, 513, 1024):
        word = raw.word("variant", variant)
        assert tuple(raw.lib.kvb_levels(word, dim, which) for which in (0, 1)) == cases.levels(variant, dim)
