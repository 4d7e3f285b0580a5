"""Installed engines answer as float64 does, on 50 shapes, within what each states for its format.
KVBENCH_PYTHONS="vllm=/x/bin/python", as in --python, also tries engines of another interpreter.
"""

import os
import random
from contextlib import contextmanager
from dataclasses import astuple, fields, replace

import numpy as np
import pytest

from kvbench.model.scores import slopes
from kvbench.native import Cache
from kvbench.oracle import Scores, attention, whole
from kvbench.peers.builds import Build, builds
from kvbench.peers.child import LayerRows
from kvbench.peers.interface import LONG, LayerShape
from kvbench.peers.known import entries, known
from kvbench.peers.process import Process

FEATURES = ("q_len", "window", "kept", "v_dim", "sinks", "softcap", "alibi", "v_dtype")
ENGINES = [name for name, entry in entries().items() if entry.value.startswith("kvbench.")]
PYTHONS = builds(ENGINES, (), os.environ.get("KVBENCH_PYTHONS", "").split())
_LAYERS, _SHAPES, _PATIENCE = 3, int(os.environ.get("KVBENCH_SHAPES", "50")), 60.0
_BLOCKS = (32, 64, 96, 128)


def shapes():
    coin = random.Random(1)
    for _ in range(_SHAPES):
        kv, group = coin.choice((1, 2, 3, 8)), coin.choice((1, 2, 4, 7))
        tokens = coin.choice((1, 2, 17, 64, 100, 255, 1024, coin.randint(3, 2000)))
        queries = min(coin.choice((1, 1, 2, 4, 7, 32)), tokens)
        dim = coin.choice((64, 96, 128, 256))
        yield LayerShape(kv * group, kv, dim, tokens, q_len=queries, **features(coin, kv * group))


def features(coin, heads):
    """Features of layers; each is used in one layer of three."""
    sinks = tuple(coin.gauss(3.0, 2.0) for _ in range(heads))
    bias = coin.choice((4.0, 8.0))
    drawn = {
        "window": coin.choice((1, 16, 100, 512)),
        "kept": coin.choice((1, 4, 40)),
        "v_dim": coin.choice((64, 128, 192)),
        "sinks": sinks,
        "softcap": coin.choice((1.0, 5.0, 50.0)),
        "alibi": bias,
        "v_dtype": coin.choice(("f32", "f16", "bf16", "i8", "q8_0", "q4_0")),
    }
    found = {name: value for name, value in drawn.items() if coin.random() < 1 / 3}
    return found | ({"slopes": slopes(bias, heads)} if "alibi" in found else {})


def taken(shape, kind, dtype):
    """The part of such a shape that an engine takes."""
    usual = {field.name: field.default for field in fields(shape)}
    words = kind.takes.split()
    found = shape
    for name in FEATURES:
        if name not in words:
            found = replace(found, **{name: usual[name]})
    if not found.alibi:
        found = replace(found, slopes=())
    if not found.window:
        found = replace(found, kept=0)
    if found.v_dtype == dtype or found.v_dtype not in kind.formats:
        found = replace(found, v_dtype="")
    return found


class Here:
    """An engine in this interpreter, asked as a step does."""

    def begin(self, kind, dtype, layout):
        self._peer = kind(dtype, layout, 2, "")

    def setup(self, shape, values, signs, q):
        self._peer.setup(shape, *map(LayerRows, values, apart(shape, signs)))
        self._peer.ask(q)
        return self._peer.bytes() * shape.read / shape.context, self._peer.flags()

    def answer(self, layer):
        self._peer.rest()
        self._peer.step(layer)
        return self._peer.output(layer)


class There:
    """An engine in another interpreter, in its process."""

    def __init__(self, process, file):
        self._process, self._file = process, file

    def begin(self, kind, dtype, layout):
        self._process.ask("begin", self._process.where, dtype, layout, 2, "")

    def setup(self, shape, values, signs, q):
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, b"".join(side.tobytes() for side in values), 0)
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
            shape = taken(shape, engine.kind, dtype)
            if layout == "paged":
                shape = replace(shape, block_tokens=_BLOCKS[place % len(_BLOCKS)])
            if engine.kind.lacking(dtype, shape):
                continue
            check(peer, engine.kind, dtype, layout, shape, coin)


def check(peer, kind, dtype, layout, shape, coin):
    dtypes, dims = (dtype, shape.v_dtype or dtype), (shape.head_dim, shape.width_of_v)
    values = [
        _held(coin.standard_normal((shape.kv_heads, shape.context, dim), np.float32), each)
        for each, dim in zip(dtypes, dims, strict=True)
    ]
    signs = coin.choice(np.float32([1, -1]), (_LAYERS, 2, max(dims)))
    q = coin.standard_normal((_LAYERS, *shape.asked), dtype=np.float32)
    peer.begin(kind, dtype, layout)
    count, flags = peer.setup(shape, values, signs, q)
    share = max(kind.formats[each] for each in dtypes) * max(1, shape.context / LONG)
    for layer in (0, 2, 1):
        own = (side * sign[layer] for side, sign in zip(values, apart(shape, signs), strict=True))
        right = answer(shape, q[layer], *own)
        off = np.abs(peer.answer(layer) - right).max() / np.sqrt(np.mean(right**2))
        assert off <= share, (dtype, layout, shape, off)
    elements = shape.kv_heads * shape.read * sum(dims)
    assert 0.5 * elements <= count <= 4 * elements
    assert kind.function and 0 < len(flags) <= 140, flags


def apart(shape, signs):
    """The dtypes of K and V."""
    return signs[:, 0, : shape.head_dim], signs[:, 1, : shape.width_of_v]


def answer(shape, q, k, v):
    """Each query alone, of a sequence that ends with its token."""
    rows = whole(*(side.transpose(1, 0, 2)[None] for side in (k, v)))
    first = shape.context - shape.q_len + 1
    how = Scores(shape.softcap, shape.slopes or None, shape.sinks or None, shape.kept)
    out = [
        attention(one[None], rows, [first + n], shape.window or None, scores=how)[0]
        for n, one in enumerate(q.reshape(shape.q_len, shape.q_heads, shape.head_dim))
    ]
    return np.array(out).reshape(shape.answered)


def _held(values, dtype):
    """Values as our caches hold them, from which peers get theirs. With 4 bits, codes go from -7 to
    7, so that each has its negative.
    """
    if dtype == "q4_0":
        blocks = values.reshape(-1, 32)
        scale = np.float16(np.abs(blocks).max(axis=1, keepdims=True) / 7).astype(np.float32)
        return (np.rint(blocks / scale) * scale).reshape(values.shape)
    heads, tokens, dim = values.shape
    rows = np.ascontiguousarray(values.transpose(1, 0, 2)[None])
    with Cache(heads, dim, tokens, dtype=dtype) as cache:
        cache.bulk(rows, rows)
        return np.array(cache.numpy()[0][0].transpose(1, 0, 2))
