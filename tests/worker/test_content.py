"""What layers hold: the first one's values but for signs, and in no two pages the same bytes."""

import os
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from kvbench.model import Shape
from kvbench.native import default_library
from kvbench.worker.ground import Ground
from kvbench.worker.room import Room
from tests import made_run

PAGE = 4096
SHAPE = Shape(layers=4, batch=2, q_heads=4, kv_heads=2, head_dim=64, context=96, capacity=96, window=0)
FACTS = {"shape": SHAPE, "pages": "base", "cpus": (min(os.sched_getaffinity(0)),), "isa": default_library().isa()}
DECODE = replace(made_run.DECODE, **FACTS)
PLACED = sorted({(each.layout, each.dtype) for each in default_library().kernels() if each.op == "decode"})
ORDERS = [("paged", "head", 5), ("paged", "token", 5)]  # inner order and shuffle


@contextmanager
def room(point, place=0):
    with Ground(default_library()) as ground, Room(point, ground, place=place) as found:
        yield found


def of(layout, dtype, **facts):
    paged = {"inner": "token", "shuffle": 5} if layout == "paged" else {}
    return replace(DECODE, layout=layout, dtype=dtype, **paged, **facts)


@pytest.mark.parametrize(("layout", "dtype"), PLACED)
@pytest.mark.parametrize("place", [0, 3])
def test_layers_are_the_first_one_but_for_signs(layout, dtype, place):
    """Up to half of what a float32 scale rounds."""
    for dim, pad in ((64, None), (96, 0)):
        point = of(layout, dtype, pad=pad, shape=replace(SHAPE, head_dim=dim))
        with room(point, place) as found:
            decoded = [np.stack(cache.numpy()) for cache in found.caches]
            signs = found.signs[:, :, None, None, None]
            one = decoded[0] * signs[0]
            assert np.abs(one).min(axis=(1, 2, 3)).max() > 0 or np.count_nonzero(one) > 0.9 * one.size
            assert np.abs(found.signs).min() == 1 and len(np.unique(found.signs, axis=0)) == found.layers
            for own, layer in zip(signs, decoded, strict=True):
                assert np.allclose(layer * own, one, rtol=2e-7, atol=0)
