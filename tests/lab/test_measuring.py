"""Programs beside each other: ratios are formed within a round, answers are checked, nothing is computed twice."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.launches import enclosed
from kvbench.errors import BadArgument, Refused, WrongAnswer
from kvbench.lab.experiments import quant, window
from kvbench.lab.measuring import (
    Beside,
    Remembered,
    affordable,
    bench,
    beside,
    of_twin,
    point,
    refuse_impossible,
    refuse_wrong,
    whole_rounds,
)
from kvbench.model import Sample
from kvbench.native import Cache, default_library
from kvbench.plan import needs_here
from kvbench.plan.needs import PROCESS
from kvbench.worker import answers
from kvbench.worker.ground import Ground


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
        pytest.raises(WrongAnswer, match="off by"),
        bench(small, ground, Remembered()),
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


def test_what_is_held_at_once_is_added_up(asked, monkeypatch):
    """Two grounds with rooms; of what is beside them, and of points that take turns, the largest counts."""
    one, other = (point(asked, "gpt-2", context) for context in (1024, 2048))
    needed = needs_here([one, other], asked.machine)
    beside = max(each.beside for each in needed.values()) + PROCESS
    both, larger = sum(each.arena for each in needed.values()), needed[other].arena

    def refused(free, *grounds):
        monkeypatch.setattr("kvbench.lab.measuring.available_memory", lambda: free)
        try:
            refuse_impossible(asked, *grounds)
        except Refused:
            return True
        return False

    assert not refused(beside + both, [one], [one, other]) and refused(beside + both - 1, [one], [one, other])
    assert not refused(beside + larger, [one, other]) and refused(beside + larger - 1, [one, other])


@pytest.mark.parametrize(
    ("lab", "own", "others"),
    [
        (quant, {("f32", 4096, "head")}, {(dtype, 4096, "head") for dtype in default_library().words("dtype")}),
        (window, {("f16", 1024, "head")}, {("f16", 1 << n, "head") for n in range(9, 16)}),
    ],
)
def test_two_rooms_are_refused_together(asked, monkeypatch, lab, own, others):
    """Before anything is measured."""

    def refuse(_, *grounds):
        facts = [{(each.dtype, each.shape.context, each.layout) for each in ground} for ground in grounds]
        assert facts == [own, others]
        raise Refused("too much", "less")

    monkeypatch.setattr(lab, "refuse_impossible", refuse)
    with pytest.raises(Refused, match="too much"):
        lab.experiment(asked)


# ---- the time there is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "each", "left"), [(10, 0.1, 10), (10, 1.0, 10), (10, 2.0, 5), (10, 100.0, 1), (10, 0.0, 10), (1, 9.0, 1)]
)
def test_what_there_is_time_for(wanted, each, left):
    assert affordable(wanted, each, seconds=10.0) == left
    assert affordable(wanted, each, seconds=10.0, least=3) == min(wanted, max(left, 3))


@pytest.mark.parametrize(("each", "left"), [(0.1, 9), (4.0, 9), (4.5, 8), (30.0, 5)])
def test_rounds_end_where_time_does(monkeypatch, each, left):
    """By what the first has taken; the others take three times that, and change nothing."""
    now = [0.0]

    def rounds():
        for number in range(9):
            for name in ("a", "b"):
                now[0] += each / 2 * (3 if number else 1)
                yield Sample(name, number, 1, 1.0, (), 0.0, 0, 0)

    monkeypatch.setattr("kvbench.lab.measuring.perf_counter", lambda: now[0])
    found = [(sample.round, sample.program) for sample in whole_rounds(rounds(), 9)]
    assert found == [(number, name) for number in range(left) for name in ("a", "b")]
