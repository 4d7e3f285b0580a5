"""What launches say about a chase: which rounds count, and where latency surely falls."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from kvbench.analysis.measured.chases import chased, latencies
from kvbench.analysis.measured.rates import by_point
from kvbench.model.chases import LOADS
from tests.analysis.answers.chasing import (
    ALONE,
    CHASED,
    FLAT,
    STEEP,
    Host,
    changed,
    one,
    records,
    without,
)


def measured(found):
    """The result for the only point."""
    (own,) = chased(by_point(found))
    return own


@pytest.mark.parametrize(("ns", "falls"), [(120.0, (75,)), (186.0, ()), (260.0, (100,))])
def test_shares_whose_latency_falls(ns, falls):
    """The true value at 75 % is 191 ns, between 161 and 221: 120 is below the share before, 260 is
    above the next one.
    """
    found = changed(records(), "loaded_read.75", latency=(ns * 1e-9, 1.0))
    own = measured(found)
    assert [own.falls(load) for load in LOADS] == [falls, (), ()]
    assert not measured([each for each in found if each.launch < 3]).falls("read")


def test_a_load_may_take_less_than_the_idle_one():
    """As on machines that slow down caches and memory while idle."""
    found = changed(records(), "loaded_copy.25", latency=(80e-9, 1.0))
    assert measured(found).falls("copy") == (25,)


def noisy(rng):
    """Latency is 150 ns beside all loads; each program of a launch scatters by 20 %."""
    flat = Host(latency=dict.fromkeys(LOADS, FLAT), idle=150.0)
    for record in records(flat, rounds=1):
        times = np.exp(rng.normal(0, 0.2, len(record.samples)))
        taken = zip(record.samples, times, strict=True)
        yield replace(
            record,
            samples=tuple(
                replace(sample, latency=tuple(float(each) * ns for ns in sample.latency))
                for sample, each in taken
            ),
        )


def test_noise_falls_in_one_curve_of_twenty():
    rng, runs = np.random.default_rng(3), 40
    own = [measured(list(noisy(rng))) for _ in range(runs)]
    falls = sum(bool(each.falls(load)) for each in own for load in LOADS)
    assert falls <= binom.ppf(0.99, runs * len(LOADS), 0.05)


@pytest.mark.parametrize("program", ["loaded_copy.50", "idle_after", "point", "spin"])
def test_only_whole_rounds_count(program):
    """Round 1 is far off, but lacks a program, so it does not count."""
    off = [replace(each, samples=tuple(map(_off, each.samples))) for each in records(rounds=2)]
    found, loud = measured([without(each, program, 1) for each in off]), measured(off)
    assert (found.rounds, loud.rounds) == (10, 20)
    assert found.loads["read", 75].ns.median == pytest.approx(STEEP(30.0))
    assert loud.loads["read", 75].ns.median == pytest.approx(5 * STEEP(30.0))


def _off(sample):
    """Nine times as long in round 1."""
    far = tuple((9 if sample.round == 1 else 1) * each for each in sample.latency)
    return replace(sample, latency=far)


def test_a_load_that_moved_nothing_is_no_round():
    assert not list(chased(by_point(changed(records(), "loaded_point.100", load=0.0))))


def test_parts_of_a_launch_are_one():
    parts = [replace(one(Host(), 0, 2, CHASED, ns), part=n) for n, ns in enumerate((1.0, 1.1))]
    found = measured([*parts, *records()[1:]])
    assert found.idle.ns.launches == 10 and found.rounds == 4 + 9 * 3
    assert max(found.idle.ns.values) == pytest.approx(1.05 * STEEP(0.0))


def test_a_launch_without_a_whole_round_is_none():
    found = [without(each, "idle") if each.launch < 4 else each for each in records()]
    assert measured(found).idle.ns.launches == 6


def test_visits_that_failed_count_for_nothing():
    bad = [replace(each, samples=(), traffic={}, error="no") for each in records()[:3]]
    assert measured([*bad, *records()[3:]]).idle.ns.launches == 7


def test_an_append_moves_what_it_stores():
    """Of 12 bytes in a pass, 8 belong to the sources, which stay in caches."""
    point = replace(CHASED, op="append", variant="-")
    found = [
        replace(each, traffic=each.traffic | {"point": replace(of, bytes_kv=of.bytes_kv / 3)})
        for each in records(point=point)
        for of in (each.traffic["point"],)
    ]
    own = measured(found)
    assert own.loads["point", 50].load.median == pytest.approx(19.0 / 3)
    assert own.loads["point", 50].gbps.median == pytest.approx(19.0 / 3 + 64 / STEEP(19.0))
    assert own.loads["read", 50].load.median == pytest.approx(20.0)
    assert own.alike.gbps.median == pytest.approx(38.0 / 3 + 64 / STEEP(38.0))
    assert own.slowed.median == pytest.approx(38.0 / ALONE)
    once = latencies(found[0])
    assert once["loaded_point.50"].load == pytest.approx(19.0 / 3)
    assert once["loaded_copy.50"].load == pytest.approx(18.0)
