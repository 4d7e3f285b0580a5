"""Programs beside each other: ratios are of one round, answers are checked, what cannot be is refused first."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.measured.launches import enclosed
from kvbench.errors import BadArgument, Refused, WrongAnswer
from kvbench.lab.measuring import Beside, point, refuse_impossible, refuse_wrong
from kvbench.model import Sample
from kvbench.native import Cache


def taken(seconds, skew=0.0):
    return [Sample("x", number, 2, 2 * each, (), skew, 0, 0, asked=2 * each) for number, each in enumerate(seconds)]


FOUND = Beside(
    {"a": taken([1.0, 2.0, 30.0], 0.3), "b": taken([2.0, 4.0, 60.0]), "c": taken([4.0, 4.0, 240.0])},
    {"a": 1e9, "b": 2e9, "c": 4e9},
)


def test_ratios_are_of_one_round():
    assert FOUND.rate("b") == 0.5
    assert FOUND.times("b", "a").values == (2.0, 2.0, 2.0)
    assert FOUND.times("c", "a").values == (4.0, 2.0, 8.0)
    assert FOUND.share("a", "b").values == (1.0, 1.0, 1.0), "half of the bytes in half of the time"
    assert FOUND.skew("a") == 0.3
    assert enclosed("x", FOUND.times("c", "a")) == {"x": 4.0, "x_low": 2.0, "x_high": 8.0}


def test_a_point_is_the_usual_one_but_for_what_is_setup(setup):
    found = point(setup, "llama-3-8b", 512, dtype="i8", batch=3, pages="base")
    assert (found.shape.q_heads, found.shape.kv_heads, found.shape.head_dim) == (32, 8, 128)
    assert (found.shape.context, found.shape.capacity, found.shape.batch) == (512, 512, 3)
    assert (found.dtype, found.pages, found.cpus, found.isa) == ("i8", "base", setup.cpus, setup.isa)
    assert found == replace(point(setup, "llama-3-8b", 512, dtype="i8"), pages="base", shape=found.shape)


def test_a_cache_by_itself_is_checked_too():
    drawn = np.random.default_rng(1)
    k, v = drawn.standard_normal((2, 1, 40, 2, 16), dtype=np.float32)
    q = drawn.standard_normal((1, 4, 16), dtype=np.float32)
    with Cache(2, 16, 24, window=24) as cache:
        cache.bulk(k, v)
        out = cache.decode(q)
        refuse_wrong(cache, q, out)
        for wrong in (out + 1e-3, np.where(out == out.max(), np.nan, out)):
            with pytest.raises(WrongAnswer, match="head f32 cache is decoded off by"):
                refuse_wrong(cache, q, wrong)


def test_what_is_impossible_is_refused_first(setup, monkeypatch):
    refuse_impossible(setup, point(setup, "gpt-2", 64))
    with pytest.raises(Refused, match="needs .* of memory, .* are free"):
        refuse_impossible(setup, point(setup, "gpt-2", 1 << 30))
    monkeypatch.setattr("kvbench.regime.FAR_BYTES", 1 << 30)
    with pytest.raises(BadArgument, match="64 tokens: .* layers of that size"):
        refuse_impossible(setup, point(setup, "gpt-2", 64))
