"""kvbench lab quant: bytes and errors against an attention and formats of our own, and what is said of them."""

import numpy as np
import pandas as pd
import pytest

from kvbench.lab.experiments import quant
from kvbench.lab.experiments.quant import experiment
from tests.native.test_cache_life import kept
from tests.oracle import PACKED, attend

SMALL = {"model": "qwen3-0.6b", "context": 96}
HEADS, GROUP, DIM = 8, 2, 128
# bytes, with the scale
ROW = {"f32": 4 * DIM, "f16": 2 * DIM, "bf16": 2 * DIM, "i8": DIM + 4, "e4m3": DIM, "e5m2": DIM}
ROW |= {dtype: DIM // 32 * size for dtype, size in PACKED.items()}


def off(values, right, of):
    return np.sqrt(((values - right) ** 2).mean() / (of**2).mean())


def test_bytes_and_errors(setup):
    outcome = experiment(setup, **SMALL)
    found = outcome.table.set_index("dtype")
    assert sorted(found.index) == sorted(setup.library.words("dtype")) == sorted(ROW)
    drawn = np.random.default_rng(setup.seed)
    k, v = drawn.standard_normal((2, 96, HEADS, DIM), dtype=np.float32)
    q = drawn.standard_normal((HEADS * GROUP, DIM), dtype=np.float32)
    grouped, sides = q.reshape(HEADS, GROUP, DIM), (k.swapaxes(0, 1), v.swapaxes(0, 1))
    exact = attend(grouped, *sides, 1 / np.sqrt(DIM))[0]
    for dtype, row in found.iterrows():
        assert row["token_bytes"] == 2 * HEADS * ROW[dtype]
        assert row["token_share"] == ROW[dtype] / ROW["f32"]
        found_of = attend(grouped, *(kept(side, dtype) for side in sides), 1 / np.sqrt(DIM))[0]
        assert row["format_error"] == pytest.approx(off(found_of, exact, exact), rel=1e-6)
        assert row["format_error_max"] == pytest.approx(np.abs(found_of - exact).max(), rel=1e-6)
        assert 0 < row["kernel_error"] < 1e-5 and row["kernel_error_max"] < 1e-5
    assert found.loc["f32", "format_error"] == 0
    said = outcome.sentence
    assert (
        said.startswith("Formats change the answer by up to") and "(q4_0, 14% of the bytes), kernels by up to" in said
    )
    assert said.endswith("times less than the finest format that rounds does (f16).")
    outcome.figure.canvas()


@pytest.mark.parametrize(
    ("coarse", "said"),
    [(0.0, "No format changes the answer, kernels by up to 1.0e-06 of it (f32)."), (1e-7, "which is no less than")],
)
def test_the_sentence_goes_by_the_data(coarse, said):
    rows = {
        "dtype": ["f32", "f16"],
        "format_error": [0.0, coarse],
        "kernel_error": [1e-6, 1e-7],
        "token_share": [1, 0.5],
    }
    assert said in quant._sentence(pd.DataFrame(rows))
