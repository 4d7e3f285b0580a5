"""Points with two dtypes or two widths for K and V: what is stored and answered is right, in layers
of their own.
"""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import WrongAnswer
from tests.made_job import bench
from tests.worker.test_bench import DECODE, STORES

PAIRS = {"f16": "", "q8_0": "q4_0", "i8": "f16"}
POINTS = [DECODE, *STORES, replace(DECODE, op="repack", variant="-", cpus=DECODE.cpus[:1])]


def mixed(point, dtype, v_dim):
    shape = replace(point.shape, v_dim=v_dim, head_dim=64)
    return replace(point, dtype=dtype, v_dtype=PAIRS[dtype], shape=shape)


@pytest.mark.parametrize("dtype", PAIRS)
@pytest.mark.parametrize("v_dim", [32, 96])
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.op)
def test_rows_of_two_kinds(point, v_dim, dtype):
    with bench(mixed(point, dtype, v_dim)) as found:
        assert 0 <= found.verify() < 0.5
        assert found.room.caches[0].dims == (64, v_dim)
        k, v = found.room.rows[:2]
        assert not np.array_equal(k, v), "layers are alike"


def test_an_answer_is_as_wide_as_v():
    """All of it is checked: here the last element has another sign than in V."""
    with bench(mixed(DECODE, "f16", 96)) as found:
        found.verify()
        found.room.signs[-1, 1, 95] *= -1
        with pytest.raises(WrongAnswer):
            found.verify()
