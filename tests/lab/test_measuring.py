"""Programs beside each other: ratios are formed within a round, answers are checked, nothing is computed twice."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import BadArgument, Refused, WrongAnswer
from kvbench.lab.measuring import (
    Beside,
    Remembered,
    bench,
    beside,
    checked,
    enclosed,
    of_twin,
    point,
    refuse_impossible,
    refuse_wrong,
)
from kvbench.model import Sample
from kvbench.native import Cache
from kvbench.worker import answers
from kvbench.worker.ground import Ground
from kvbench.worker.room import Room


def taken(seconds, skew=0.0):
    return [Sample("x", number, 2, 2 * each, (), skew, 0, 0) for number, each in enumerate(seconds)]


FOUND = Beside(
    {"a": taken([1.0, 2.0, 30.0], 0.3), "b": taken([2.0, 4.0, 60.0]), "c": taken([4.0, 4.0, 240.0])},
    {"a": 1e9, "b": 2e9, "c": 4e9},
)


def test_ratios_are_of_one_round():
    assert FOUND.seconds("a").median == 2.0 and FOUND.rate("b").median == 0.5
    assert FOUND.times("b", "a").values == (2.0, 2.0, 2.0)
    assert FOUND.times("c", "a").values == (4.0, 2.0, 8.0)
    assert FOUND.share("a", "b").values == (1.0, 1.0, 1.0), "half of the bytes in half of the time"
    assert FOUND.skew("a") == 0.3
    assert enclosed("x", FOUND.times("c", "a")) == {"x": 4.0, "x_low": 2.0, "x_high": 8.0}


def test_efficiency_is_a_share_of_the_faster_twin(asked, plant):
    small = point(asked, "gpt-2", 64)
    for rates, share in (((10.0, 20.0, 40.0), 0.25), ((10.0, 20.0, 16.0), 0.5)):
        speed = dict(zip(("point", "twin", "twin_ahead"), rates, strict=True))
        plant(lambda name, cache, moved, number, speed=speed: moved / (speed[name] * 1e9))
        with Ground(asked.library, asked.machine) as ground, bench(small, ground, Remembered()) as found:
            assert of_twin(found, seed=1) == pytest.approx(share)


def test_a_point_is_the_usual_one_but_for_what_is_asked(asked):
    found = point(asked, "llama-3-8b", 512, dtype="i8", batch=3, pages="base")
    assert (found.shape.q_heads, found.shape.kv_heads, found.shape.head_dim) == (32, 8, 128)
    assert (found.shape.context, found.shape.capacity, found.shape.batch) == (512, 512, 3)
    assert (found.dtype, found.pages, found.cpus, found.isa) == ("i8", "base", asked.cpus, asked.isa)
    assert found == replace(point(asked, "llama-3-8b", 512, dtype="i8"), pages="base", shape=found.shape)


def test_what_is_really_measured(asked, monkeypatch):
    computed = []
    oracle = answers.attention
    monkeypatch.setattr(answers, "attention", lambda *given: computed.append(1) or oracle(*given))
    small, known = point(asked, "gpt-2", 128), Remembered()
    with Ground(asked.library, asked.machine) as ground, bench(small, ground, known) as found:
        programs = found.programs[:3]
        assert [program.name for program in programs] == ["point", "twin", "twin_ahead"]
        each = beside(found.team, programs, seed=1, count=3, seconds=0.0005)
    assert {name: [sample.round for sample in own] for name, own in each.samples.items()} == {
        program.name: [0, 1, 2] for program in programs
    }
    assert each.moved["point"] == 2 * 12 * 128 * 64 * 2 + 2 * 12 * 64 * 4
    assert len(computed) == 1, "before and after, from one answer"


def test_a_wrong_answer_is_no_time(asked, monkeypatch):
    monkeypatch.setattr(answers, "attention", lambda q, *_: q.astype(float) + 1)
    small = point(asked, "gpt-2", 64)
    with (
        Ground(asked.library, asked.machine) as ground,
        Room(small, ground) as room,
        pytest.raises(WrongAnswer, match="off by"),
        checked(small, room, Remembered()),
    ):
        pytest.fail("it was let through")


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


def test_what_is_impossible_is_refused_first(asked, monkeypatch):
    known = [point(asked, "gpt-2", context) for context in (64, 128)]
    refuse_impossible(asked, known)
    with pytest.raises(Refused, match="needs .* of memory, .* are free"):
        refuse_impossible(asked, [*known, point(asked, "gpt-2", 1 << 30)])
    monkeypatch.setattr("kvbench.regime.FAR_BYTES", 1 << 30)
    with pytest.raises(BadArgument, match="64 tokens: it takes .* such slices"):
        refuse_impossible(asked, known)
