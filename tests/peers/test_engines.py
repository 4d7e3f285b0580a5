"""The engines that are installed answer as float64 does, on 50 shapes, within what each states for
its format.
"""

import random

import numpy as np
import pytest

from kvbench.model import Shape
from kvbench.native import Cache
from kvbench.oracle import attention, whole
from kvbench.peers.child import LayerRows
from kvbench.peers.interface import LONG
from kvbench.peers.known import entries, known

ENGINES = [name for name, entry in entries().items() if entry.value.startswith("kvbench.")]
_LAYERS, _SHAPES = 3, 50


def shapes():
    coin = random.Random(1)
    for _ in range(_SHAPES):
        kv, group = coin.choice((1, 2, 3, 8)), coin.choice((1, 2, 4, 7))
        tokens = coin.choice((1, 2, 17, 64, 100, 255, 1024, coin.randint(3, 2000)))
        facts = {"batch": 1, "window": 0, "layers": 0, "context": tokens, "capacity": tokens}
        yield Shape(
            q_heads=kv * group, kv_heads=kv, head_dim=coin.choice((64, 96, 128, 256)), **facts
        )


@pytest.mark.parametrize("name", ENGINES)
def test_its_answers_are_those_of_float64(name):
    engine = known(name)
    if engine.lacking:
        pytest.skip(engine.lacking)
    coin = np.random.default_rng(1)
    cases = [
        (dtype, layout) for dtype in engine.kind.formats for layout in engine.kind.layouts.split()
    ]
    for place, shape in enumerate(shapes()):
        dtype, layout = cases[place % len(cases)]
        values = coin.standard_normal(
            (2, shape.kv_heads, shape.context, shape.head_dim), dtype=np.float32
        )
        values = _held(values, dtype)
        signs = coin.choice(np.float32([1, -1]), (_LAYERS, 2, shape.head_dim))
        k, v = (LayerRows(values[side], signs[:, side]) for side in (0, 1))
        q = coin.standard_normal((_LAYERS, shape.q_heads, shape.head_dim), dtype=np.float32)
        peer = engine.kind(dtype, layout, 2, "")
        peer.setup(shape, k, v)
        peer.ask(q)
        for layer in (0, 2, 1):
            peer.rest()
            peer.step(layer)
            own = [side[layer].transpose(1, 0, 2)[None] for side in (k, v)]
            right = attention(q[layer][None], whole(*own), [shape.context])[0]
            share = engine.kind.formats[dtype] * max(1, shape.context / LONG)
            off = np.abs(peer.output(layer) - right).max() / np.sqrt(np.mean(right**2))
            assert off <= share, (dtype, layout, shape, off)
        elements = 2 * shape.kv_heads * shape.context * shape.head_dim
        assert 0.5 * elements <= peer.bytes() <= 4 * elements
    assert engine.kind.function and 0 < len(peer.flags()) <= 120, peer.flags()


def _held(values, dtype):
    """As a cache of ours has them, which peers get theirs from. Of 4 bits a layer has codes from -7
    to 7, so that each has its negative.
    """
    if dtype == "q4_0":
        blocks = values.reshape(-1, 32)
        scale = np.float16(np.abs(blocks).max(axis=1, keepdims=True) / 7).astype(np.float32)
        return (np.rint(blocks / scale) * scale).reshape(values.shape)
    heads, tokens, dim = values.shape[1:]
    with Cache(heads, dim, tokens, dtype=dtype) as cache:
        cache.bulk(*(np.ascontiguousarray(side.transpose(1, 0, 2)[None]) for side in values))
        return np.stack([np.array(side[0].transpose(1, 0, 2)) for side in cache.numpy()])
