"""The engines that are installed answer as float64 does, on 50 shapes, within what each states for
its format. KVBENCH_PYTHONS="vllm=/x/bin/python", as --python has it, tries those of another
interpreter too.
"""

import os
import random
from contextlib import contextmanager
from dataclasses import astuple, replace

import numpy as np
import pytest

from kvbench.native import Cache
from kvbench.oracle import attention, whole
from kvbench.peers.builds import Build, builds
from kvbench.peers.child import LayerRows
from kvbench.peers.interface import LONG, LayerShape
from kvbench.peers.known import entries, known
from kvbench.peers.process import Process

ENGINES = [name for name, entry in entries().items() if entry.value.startswith("kvbench.")]
PYTHONS = builds(ENGINES, (), os.environ.get("KVBENCH_PYTHONS", "").split())
_LAYERS, _SHAPES, _PATIENCE = 3, 50, 60.0
_BLOCKS = (32, 64, 96, 128)


def shapes():
    coin = random.Random(1)
    for _ in range(_SHAPES):
        kv, group = coin.choice((1, 2, 3, 8)), coin.choice((1, 2, 4, 7))
        tokens = coin.choice((1, 2, 17, 64, 100, 255, 1024, coin.randint(3, 2000)))
        queries = min(coin.choice((1, 1, 2, 4, 7, 32)), tokens)
        dim = coin.choice((64, 96, 128, 256))
        yield LayerShape(kv * group, kv, dim, tokens, q_len=queries)


class Here:
    """An engine of this interpreter, as a step asks it."""

    def begin(self, kind, dtype, layout):
        self._peer = kind(dtype, layout, 2, "")

    def setup(self, shape, values, signs, q):
        k, v = (LayerRows(values[side], signs[:, side]) for side in (0, 1))
        self._peer.setup(shape, k, v)
        self._peer.ask(q)
        return self._peer.bytes(), self._peer.flags()

    def answer(self, layer):
        self._peer.rest()
        self._peer.step(layer)
        return self._peer.output(layer)


class There:
    """An engine of another one, by its process."""

    def __init__(self, process, file):
        self._process, self._file = process, file

    def begin(self, kind, dtype, layout):
        self._process.ask("begin", self._process.where, dtype, layout, 2, "")

    def setup(self, shape, values, signs, q):
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, values.tobytes(), 0)
        count, _, flags = self._process.ask("setup", astuple(shape), self._file, signs, q)
        return count, flags

    def answer(self, layer):
        return self._process.ask("answer", layer)[1]


@contextmanager
def asked(engine):
    if not engine.python:
        yield Here()
        return
    file = os.memfd_create("values")
    how = engine.python, tuple(os.sched_getaffinity(0)), _PATIENCE, {"OMP_NUM_THREADS": "2"}
    try:
        with Process(engine.name, engine.kind, *how, (file,)) as process:
            yield There(process, file)
    finally:
        os.close(file)


@pytest.mark.parametrize("name", ENGINES)
def test_its_answers_are_those_of_float64(name):
    engine = known(name, python=PYTHONS.get(name, Build()).python)
    if engine.lacking:
        pytest.skip(engine.lacking)
    coin = np.random.default_rng(1)
    cases = [
        (dtype, layout) for dtype in engine.kind.formats for layout in engine.kind.layouts.split()
    ]
    with asked(engine) as peer:
        for place, shape in enumerate(shapes()):
            dtype, layout = cases[place % len(cases)]
            if not engine.kind.several:
                shape = replace(shape, q_len=1)
            if layout == "paged":
                shape = replace(shape, block_tokens=_BLOCKS[place % len(_BLOCKS)])
            values = coin.standard_normal(
                (2, shape.kv_heads, shape.context, shape.head_dim), dtype=np.float32
            )
            values = _held(values, dtype)
            signs = coin.choice(np.float32([1, -1]), (_LAYERS, 2, shape.head_dim))
            q = coin.standard_normal((_LAYERS, *shape.asked), dtype=np.float32)
            peer.begin(engine.kind, dtype, layout)
            count, flags = peer.setup(shape, values, signs, q)
            for layer in (0, 2, 1):
                right = answer(shape, q[layer], *(values[n] * signs[layer, n] for n in (0, 1)))
                share = engine.kind.formats[dtype] * max(1, shape.context / LONG)
                off = np.abs(peer.answer(layer) - right).max() / np.sqrt(np.mean(right**2))
                assert off <= share, (dtype, layout, shape, off)
            elements = 2 * shape.kv_heads * shape.context * shape.head_dim
            assert 0.5 * elements <= count <= 4 * elements
            assert engine.kind.function and 0 < len(flags) <= 120, flags


def answer(shape, q, k, v):
    """Each query by itself: as the only one, of a sequence that ends with its token."""
    rows = whole(*(side.transpose(1, 0, 2)[None] for side in (k, v)))
    first = shape.context - shape.q_len + 1
    out = [
        attention(one[None], rows, [first + n])[0]
        for n, one in enumerate(q.reshape(shape.q_len, shape.q_heads, shape.head_dim))
    ]
    return np.array(out).reshape(shape.asked)


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
