"""kvbench lab quant: bytes and errors against an attention and formats of our own, and what is said
of them.
"""

import numpy as np
import pandas as pd
import pytest

from kvbench.lab import quant
from kvbench.lab.quant import experiment
from tests.formats import PACKED
from tests.native.test_cache_life import kept
from tests.oracle import attend

SMALL = {"model": "qwen3-0.6b", "context": 96}
HEADS, GROUP, DIM = 8, 2, 128
# bytes, with the scale
ROW = {"f32": 4 * DIM, "f16": 2 * DIM, "bf16": 2 * DIM, "i8": DIM + 4, "e4m3": DIM, "e5m2": DIM}
ROW |= {dtype: DIM // 32 * size for dtype, size in PACKED.items()}


def off(values, right, of):
    return np.sqrt(((values - right) ** 2).mean() / (of**2).mean())


def test_bytes_and_errors(setup):
    outcome = experiment(setup, **SMALL)
    exact, rounds = (
        outcome.table[outcome.table["variant"] == variant] for variant in ("flash", "dot")
    )
    assert sorted(set(exact["dtype"])) == sorted(setup.library.words("dtype")) == sorted(ROW)
    assert set(rounds["dtype"]) <= {"i8", "q8_0", "q4_0"} and list(exact["keys"].unique()) == [
        "normal",
        "heavy",
    ]
    drawn = np.random.default_rng(setup.seed)
    k, v = drawn.standard_normal((2, 96, HEADS, DIM), dtype=np.float32)
    q = drawn.standard_normal((HEADS * GROUP, DIM), dtype=np.float32)
    grouped = q.reshape(HEADS, GROUP, DIM)
    large = k.copy()
    large[..., drawn.choice(DIM, 4, replace=False)] *= 20
    for keys, rows in (("normal", k), ("heavy", large)):
        _as_drawn(exact[exact["keys"] == keys], rows, v, grouped)
    for _, row in rounds.iterrows():
        assert 1e-4 < row["kernel_error"] < 0.05 and row["format_error"] > 0
    lines = outcome.sentence
    assert (
        lines.startswith("Formats change the answer by up to")
        and "(q4_0, 14% of the bytes) on heavy keys" in lines
    )


def _as_drawn(exact, k, v, grouped):
    """Of one kind of keys, by an attention and formats of our own."""
    sides = (k.swapaxes(0, 1), v.swapaxes(0, 1))
    right = attend(grouped, *sides, 1 / np.sqrt(DIM))[0]
    for dtype, row in exact.set_index("dtype").iterrows():
        assert row["token_bytes"] == 2 * HEADS * ROW[dtype]
        assert row["token_share"] == ROW[dtype] / ROW["f32"]
        stored = [kept(side, dtype) for side in sides]
        found = attend(grouped, *stored, 1 / np.sqrt(DIM))[0]
        assert row["format_error"] == pytest.approx(off(found, right, right), rel=1e-6)
        assert 0 < row["kernel_error"] < 1e-5
    assert exact.set_index("dtype").loc["f32", "format_error"] == 0


def test_the_sentence_goes_by_the_data():
    rows = {
        "keys": ["normal", "normal", "normal"],
        "dtype": ["f32", "q4_0", "q4_0"],
        "variant": ["flash", "flash", "dot"],
        "format_error": [0.0, 0.1, 0.1],
        "kernel_error": [1e-6, 1e-7, 2e-3],
        "token_share": [1, 0.14, 0.14],
    }
    assert (
        quant._sentence(pd.DataFrame(rows))
        == "Formats change the answer by up to 1.0e-01 of its size (q4_0, 14% of the bytes) on"
        " normal keys; flash kernels by up to 1.0e-06, dot by up to 2.0e-03 (q4_0, normal keys)."
    )
