"""kvbench lab quant: errors against an attention and formats of our own, and the sentence whichever way times fall."""

import numpy as np
import pytest

from kvbench.lab.experiments.quant import experiment
from tests.lab.conftest import noisy
from tests.oracle import PACKED, STORED, from_blocks, quantise, to_blocks

SMALL = {"model": "qwen3-0.6b", "context": 96}
HEADS, GROUP, DIM = 8, 2, 128
# bytes, with the scale
ROW = {"f32": 4 * DIM, "f16": 2 * DIM, "bf16": 2 * DIM, "i8": DIM + 4, "e4m3": DIM, "e5m2": DIM}
ROW |= {dtype: DIM // 32 * size for dtype, size in PACKED.items()}


def rounded(values, dtype):
    """As a cache would keep them."""
    if dtype == "i8":
        codes, scales = quantise(values, "f32")
        return codes.astype(np.float64) * scales.astype(np.float64)[..., None]
    if dtype in PACKED:
        return from_blocks(dtype, to_blocks(dtype, values))
    return values.astype(STORED[dtype]).astype(np.float64)


def attention(q, k, v):
    """q [Hq,D], k and v [T,Hkv,D] -> [Hq,D]"""
    out = []
    for head, query in enumerate(q.astype(np.float64)):
        scores = k[:, head // GROUP].astype(np.float64) @ query / np.sqrt(DIM)
        weights = np.exp(scores - scores.max())
        out.append(weights @ v[:, head // GROUP].astype(np.float64) / weights.sum())
    return np.array(out)


def off(values, right, of):
    return np.sqrt(((values - right) ** 2).mean() / (of**2).mean())


def by_bytes(name, cache, moved, number):
    return moved / 20e9


def test_bytes_and_errors(asked, plant):
    plant(by_bytes)
    found = experiment(asked, **SMALL).table.set_index("dtype")
    assert list(found.index) == list(asked.library.words("dtype")) == list(ROW)
    drawn = np.random.default_rng(asked.seed)
    k, v = drawn.standard_normal((2, 96, HEADS, DIM), dtype=np.float32)
    q = drawn.standard_normal((HEADS * GROUP, DIM), dtype=np.float32)
    exact = attention(q, k, v)
    for dtype, row in found.iterrows():
        assert row["token_bytes"] == 2 * HEADS * ROW[dtype]
        assert row["token_share"] == ROW[dtype] / ROW["f32"]
        kept = attention(q, rounded(k, dtype), rounded(v, dtype))
        assert row["format_error"] == pytest.approx(off(kept, exact, exact), rel=1e-6)
        assert row["format_error_max"] == pytest.approx(np.abs(kept - exact).max(), rel=1e-6)
        assert 0 < row["kernel_error"] < 1e-5 and row["kernel_error_max"] < 1e-5
    assert found.loc["f32", "format_error"] == 0


def test_what_is_read_in_its_bytes_is_said_to_keep_its_promise(asked, plant):
    plant(by_bytes)
    found = experiment(asked, **SMALL)
    base = found.table.set_index("dtype").loc["q4_0"]
    assert base["times"] == pytest.approx(base["token_share"], rel=0.15)
    assert found.sentence.startswith("q4_0 decodes fastest") and "the time of f32" in found.sentence
    assert "formats change the answer by up to" in found.sentence and "(q4_0), kernels by up to" in found.sentence
    assert "times less than the finest format that rounds does (f16)." in found.sentence


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (lambda number: 0.9, "f16 decodes fastest, in 0.90 times (0.90..0.90 over 24 rounds) the time of f32, though it"),
        (lambda number: 0.1, "even less than the 0.50 of the bytes that it moves"),
        (lambda number: 0.5 * noisy(number, 0.1), "within the noise what the 0.50 of the bytes that it moves promise"),
        (lambda number: 0.5 * noisy(number, 0.1),
         "f16 decodes fastest, not beyond the noise of bf16, i8, e4m3, e5m2, q8_0 and q4_0, in"),
        (lambda number: 1.2, "No number format decodes faster than f32 beyond the noise"),
        (noisy, "No number format decodes faster than f32 beyond the noise"),
    ],
)  # fmt: skip
def test_the_sentence_goes_by_the_data(asked, plant, time, said):
    """`time`: over that of f32, in a round; of all but f16, a little more."""

    def seconds(name, cache, moved, number):
        each = {"f32": 1.0, "f16": time(number)}
        return 1e-3 * each.get(cache.dtype, 1.01 * time(number))

    plant(seconds)
    assert said in experiment(asked, **SMALL).sentence


def test_a_machine_on_which_nothing_is_like_itself(asked, plant):
    plant(lambda name, cache, moved, number: 1e-3 if name == "base" else 2e-3)
    said = experiment(asked, **SMALL).sentence
    assert said.startswith("Times tell nothing here: f32 beside itself takes 2.00 times (2.00..2.00 over 24 rounds)")
    assert "formats change the answer" in said


def test_the_fastest_by_its_median_may_be_noise(asked, plant):
    """f16 takes 0.90 (0.75..1.05), i8 0.92 (0.90..0.94): i8 is faster than f32 beyond the noise, whatever f16 is."""
    each = {"f32": lambda number: 1.0, "f16": lambda n: noisy(n, 0.15) - 0.1, "i8": lambda n: noisy(n, 0.02) - 0.08}
    plant(lambda name, cache, moved, number: 1e-3 * each.get(cache.dtype, lambda number: 1.2)(number))
    assert experiment(asked, **SMALL).sentence.startswith(
        "i8 decodes fastest of those that are faster beyond the noise, which f16 (0.75..1.05) may be or not, in 0.92 times "
        "(0.90..0.94 over 24 rounds) the time of f32, though it"
    )


def test_the_widest_is_not_faster_than_itself(asked, plant):
    taken = {"f32": 0.97}
    plant(lambda name, cache, moved, number: 1e-3 * (1.0 if name == "base" else taken.get(cache.dtype, 1.2)))
    assert experiment(asked, **SMALL).sentence.startswith("No number format decodes faster than f32 beyond the noise")
