"""Kept answers: one for each set of data, and for each way in which variants read it."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.model import Shape
from kvbench.native import Cache
from kvbench.worker.answers import Answers
from tests import oracle
from tests.made_run import DECODE

SHAPE = Shape(
    layers=1, batch=1, q_heads=6, kv_heads=2, head_dim=16, context=50, capacity=50, window=0
)


def test_a_variant_that_rounds_has_its_own(tmp_path):
    rng = np.random.default_rng(2)
    k, v = rng.standard_normal((2, 1, 50, 2, 16), dtype=np.float32)
    q = rng.standard_normal((1, 6, 16), dtype=np.float32)
    right = {
        "flash": (k, v),
        "twopass": (k, v),
        "round16": (k.astype(np.float16), v.astype(np.float16)),
    }
    with Cache(2, 16, 50) as cache:
        cache.bulk(k, v)
        for _ in range(2):  # computed, and then kept
            for variant, rows in right.items():
                point = replace(DECODE, variant=variant, dtype="f32", shape=SHAPE)
                found = Answers(str(tmp_path)).of(point, cache, q)
                rows = (x[0].swapaxes(0, 1).astype(np.float64) for x in rows)
                out, _ = oracle.attend(q.reshape(2, 3, 16), *rows, 0.25)
                assert np.allclose(found.out, out.reshape(1, 6, 16), rtol=0, atol=1e-12), variant
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "dtype",
    ["i8", "q8_0", "q4_0", "q8_0+q4_0", "i8+q8_0", "q4_0+i8", "bf16", "e4m3+e5m2", "q8_0+bf16"],
)
def test_one_of_narrow_numbers_too(tmp_path, dtype):
    """If the kernel rounds weights, each number has its own limit. It allows for the rounding,
    which is little, and for no other answer.
    """
    rng = np.random.default_rng(3)
    k, v = rng.standard_normal((2, 1, 50, 2, 16), dtype=np.float32)
    q = rng.standard_normal((1, 6, 16), dtype=np.float32)
    k_dtype, _, v_dtype = dtype.partition("+")
    point = replace(DECODE, variant="dot", dtype=k_dtype, v_dtype=v_dtype, shape=SHAPE)
    with Cache(2, 16, 50, dtype=dtype) as cache:
        cache.bulk(k, v)
        found = [Answers(str(tmp_path)).of(point, cache, q) for _ in range(2)]
        out = cache.decode(q, "dot", "scalar")
    for answer in found:
        assert (np.abs(out - answer.out) <= answer.limit).all()
        assert answer.limit.shape == out.shape
        assert not (np.abs(out * 1.2 - answer.out) <= answer.limit).all()
