"""A thread that will read a row touches it first, so that its page is on the thread's node."""

from pathlib import Path

import numpy as np
import pytest

from tests.oracle import Shape
from tests.raw import Bound, compiled, decode_args

HEADS, GROUP, CAPACITY, DIM = 3, 4, 2200, 16
WALK = ("walk/plan", "walk/queries", "walk/walk", "walk/schedule", "walk/requests")
SOURCES = (*WALK, "cache/layouts", "cache/transposed", "tier/variants", "base/task", "base/check")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    declared = "int32_t filled(const void *, int32_t, int64_t *, int64_t *);"
    path = tmp_path_factory.mktemp("fill") / "fill.so"
    return compiled(path, Path(__file__).with_name("fill.c"), SOURCES, declared)


@pytest.mark.parametrize("deterministic", [0, 1])
@pytest.mark.parametrize("variant", ["flash", "twopass", "perhead"])
@pytest.mark.parametrize("layout", ["head", "position"])
@pytest.mark.parametrize("threads", [1, 2, 3, 5, 8])
def test_a_row_is_written_once_by_a_thread_that_reads_it(
    raw, program, layout, variant, deterministic, threads
):
    ffi, lib = program
    shape = Shape(layout, "f32", 1, HEADS, DIM, CAPACITY, v_dim=2 * DIM)  # rows of V: two lines
    with Bound(raw, shape, [CAPACITY]) as bound:
        q = np.zeros((1, HEADS * GROUP, DIM), np.float32)
        args = decode_args(raw, bound, q, q.copy(), "scalar", variant, deterministic=deterministic)
        rows = bound.cache.k.bytes // bound.cache.k.row_bytes
        written, readers = np.zeros((2, rows), np.int64), np.zeros(rows, np.int64)
        places = (ffi.cast("int64_t *", array.ctypes.data) for array in (written, readers))
        assert lib.filled(ffi.cast("void *", args), threads, *places) == 0
        rows = readers > 0
        assert rows.sum() == HEADS * CAPACITY
        k, v = written[:, rows] - 1
        assert (k >= 0).all() and (k == v).all()
        assert (readers[rows] >> k & 1).all()
        assert set(k.tolist()) == {
            thread for thread in range(threads) if (readers >> thread & 1).any()
        }
