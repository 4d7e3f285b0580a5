"""Reads of memory and L3 from made-up records with planted rates and states."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.answers.answer import Basis, Reason, State
from kvbench.analysis.answers.memory import states
from kvbench.analysis.means.findings import findings
from kvbench.model import Probe
from kvbench.model.geometry import Geometry
from tests.made_run import DECODE, MACHINE, MIB, READ, RUN, failed, probe, visit

MODEL = Geometry("small", 24, 8, 2, 64, 4096)
HOT = replace(DECODE, residency="hot", shape=replace(DECODE.shape, context=12288, capacity=12288))


def around(rate, count, seed, scatter=0.05):
    return list(rate * np.exp(scatter * np.random.default_rng(seed).normal(size=count)))


@pytest.mark.parametrize("count", [7, 47])
def test_one_state(count):
    told = [len(states(around(31, count, seed))) for seed in range(400)]
    assert told.count(2) <= 400 * (0.08 if count == 7 else 0.01)


@pytest.mark.parametrize(
    ("few", "many", "least"), [(2, 45, 50), (6, 38, 50), (23, 24, 50), (3, 4, 45)]
)
def test_two_states_are_told_apart(few, many, least):
    """49 and 30 GB/s are ten deviations apart."""
    right = 0
    for seed in range(50):
        fast, slow = around(49, few, seed), around(30, many, seed + 100)
        found = states([*fast, *slow])
        right += [sorted(each) for each in found] == [sorted(slow), sorted(fast)]
    assert right >= least


def test_the_usual_state_is_first_and_of_two_alike_the_slower():
    fast, slow = around(49, 9, 0), around(30, 5, 1)
    assert set(states([*fast, *slow])[0]) == set(fast)
    assert set(states([*fast[:5], *slow])[0]) == set(slow)


def test_one_visit_is_no_state():
    for seed in range(100):
        assert len(states([*around(31, 46, seed), 60.0])) == 1


def test_what_lies_near_is_one_state():
    """4 %, however small the scatter of visits is."""
    assert len(states([*around(31, 20, 0, 1e-4), *around(31 * 1.04, 20, 1, 1e-4)])) == 1
    assert len(states([*around(31, 20, 0, 1e-4), *around(31 * 1.08, 20, 1, 1e-4)])) == 2


def test_states_are_told_though_memory_changed_within_a_visit():
    """A few visits met both states."""
    between = [37.0, 40.0, 43.0, 46.0]
    for seed in range(20):
        slow, fast = around(34, 280, seed, 0.03), around(56, 16, seed + 100, 0.06)
        usual, other = states([*slow, *between, *fast])
        assert set(slow) <= set(usual) and set(fast) <= set(other)


def test_few_visits_are_one_state():
    assert states([30.0, 60.0, 61.0]) == ((30.0, 60.0, 61.0),)


# ---- of a run ------------------------------------------------------------------------------------


def reads(records):
    return findings(RUN, records, MACHINE, models=[MODEL]).answers.reads


def beside(launch, memory):
    """A point in memory with plain reads beside it."""
    return visit(launch, {"point": [15.0], "twin": [20.0], "memory": memory})


def test_every_visit_that_reads_memory_counts_once():
    """The median of its rounds counts, for probes and for reads beside points. Reads by other CPUs,
    reads of a cache and failed visits do not count.
    """
    alone = Probe("read", "scalar", (0,), "thp", 256 * MIB)
    records = [
        *(probe(launch, 20.0 + launch) for launch in range(5)),
        *(beside(launch, [18.0, 99.0, 19.0 + launch]) for launch in range(5)),
        probe(0, 55.0, alone),
        probe(0, 66.0, replace(READ, bytes=12 * MIB)),
        failed(5),
    ]
    found = reads(records)
    assert found.visits == 10 and len(found.states) == 1
    # 20 21 22 23 24 of probes, 19 20 21 22 23 beside points
    assert found.memory.figure.value == pytest.approx(21.5)
    assert found.memory.launches == 5 and set(found.memory.subject) == {READ.name, DECODE.name}
    low, high = found.states[0].low, found.states[0].high
    assert 19 <= low < 20 and 23 < high <= 24


def test_two_states_of_a_run():
    rates = [31.0, 30.0, 32.0, 29.0, 33.0, 30.5, 31.5, 50.0, 52.0]
    found = reads([visit(0, {"point": [15.0]}), *(probe(n, rate) for n, rate in enumerate(rates))])
    usual, other = found.states
    assert (usual.visits, usual.gbps, other.visits, other.gbps) == pytest.approx((7, 31, 2, 51))
    assert found.memory.figure.value == usual.gbps and found.visits == 9


def test_nothing_read():
    found = reads([visit(0, {"point": [15.0]})])
    assert found.memory.state == State.NOT_TESTED and found.states == ()
    assert found.l3.reason == Reason.NO_L3


def inside(launch, slice_, memory, point=HOT):
    rates = {"point": [50.0], "core": [90.0], "slice": [slice_], "memory": [memory]}
    return visit(launch, rates, point, walked=12 * MIB, layers=1)


def test_l3_over_memory_is_of_the_same_rounds():
    """100 over 20, whatever a probe of L3 gives."""
    records = [inside(n, 100.0 * k, 20.0 * k) for n, k in enumerate((1.0, 1.1, 0.9))]
    found = reads([*records, *(probe(n, 170.0, replace(READ, bytes=12 * MIB)) for n in range(3))])
    assert found.l3.figure.value == pytest.approx(5) and found.l3.basis == Basis.ROUNDS
    assert found.l3_rate.figure.value == pytest.approx(100)
    assert found.beside.figure.value == pytest.approx(20)


def test_of_several_points_the_middle_one_counts():
    """The ratios are 3, 5 and 6."""
    points = [replace(HOT, layout=layout) for layout in ("head", "position", "blockt")]
    records = [
        inside(n, 20.0 * times, 20.0, point)
        for point, times in zip(points, (5, 3, 6), strict=True)
        for n in range(3)
    ]
    found = reads(records)
    assert found.l3.figure.value == pytest.approx(5) and found.l3.subject == (points[0].name,)


def test_rates_that_contradict_the_ratio_are_not_told():
    """Ratios 2, 4, 5 come from rates 100, 40 and 100 over 50, 10 and 20. The medians, 100 over 20,
    would give 5, but the middle ratio is 4.
    """
    rates = ((100.0, 50.0), (40.0, 10.0), (100.0, 20.0))
    found = reads([inside(n, *pair) for n, pair in enumerate(rates)])
    assert found.l3.figure.value == pytest.approx(4)
    assert found.l3_rate.figure.value == pytest.approx(100) and not found.beside.tested


def test_without_reads_beside_it_l3_has_a_rate_alone():
    records = [visit(n, {"point": [50.0]}, HOT, walked=12 * MIB, layers=1) for n in range(3)]
    records += [probe(n, 170.0, replace(READ, bytes=12 * MIB)) for n in range(3)]
    found = reads(records)
    assert found.l3.reason == Reason.NOT_MEASURED and not found.beside.tested
    assert found.l3_rate.figure.value == pytest.approx(170)
    assert found.l3_rate.basis == Basis.APART
