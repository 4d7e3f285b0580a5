"""Answers about a chase beside a point: planted curves, computed by hand or by NumPy."""

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from kvbench.analysis.answers.answer import Basis, Held, Reason, State, Unit
from kvbench.analysis.answers.latency import Latency, latency
from kvbench.analysis.answers.pairs import pairs
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.limits import frames
from kvbench.analysis.limits.profile import profile
from kvbench.analysis.means.findings import findings
from kvbench.analysis.measured.ceilings import ceilings
from kvbench.model import Probe, Sample
from kvbench.model.chases import LOADS, OWN, SHARES
from tests.analysis.answers.chasing import (
    ALONE,
    CHASE,
    CHASED,
    FLAT,
    STEEP,
    TAIL,
    Host,
    changed,
    line,
    one,
    records,
    without,
)
from tests.analysis.answers.test_between import WEIGHED as MODEL
from tests.analysis.differs.compare.made_sides import compared
from tests.made_run import DECODE, KIB, MACHINE, MIB, READ, RUN, STORE, machine, probe, visit

NS = np.array([0.9, 0.95, 1.0, 1.02, 1.05, 1.1, 1.2])  # of launches: times as long
FASTER = np.array([1.0, 0.97, 1.02, 0.99, 0.96, 1.04, 0.98])


def told(found, host=MACHINE, models=(MODEL,)):
    return findings(RUN, found, host, models=models)


PAGE = Workload("small", 24, 1024, 1, 3, ())


def place(found, host=MACHINE):
    """The answer about one point, without the page."""
    own = ceilings(found, host)
    points = frames.points(found, host, own)
    nothing = points.iloc[:0]
    tables = Tables(found, host, own, (MODEL,), points, nothing, pairs(found, points), {})
    (only,) = latency(tables, PAGE).places
    return only


def planted(host, load, ns=1.0, own=1.0):
    """The curve of a launch: GB/s of load and chase together, and ns; idle latency first."""
    moved = [0.0, *(host.most[load] * share / 100 for share in SHARES)]
    waits = [host.idle * (1 + host.drift) / 2, *(host.latency[load](each) for each in moved[1:])]
    faster = own if load == OWN else 1.0
    waits = ns * np.array(waits)
    return faster * np.array(moved) + 64 / waits, waits


def middle(values):
    """The estimate of Hodges and Lehmann: the median of the means of every two logarithms."""
    logs = np.log(values)
    return np.exp(np.median([(a + b) / 2 for a, b in combinations_with_replacement(logs, 2)]))


def ends(figure):
    return figure.value, figure.low, figure.high


# ---- curves and answers --------------------------------------------------------------------------


def test_a_straight_line_is_read_off():
    """100 ns and 3 ns more per GB/s, beside all loads."""
    found = place(records())
    host = Host()
    idle, most = STEEP(0.0), 40.0 + 64 / STEEP(40.0)
    assert found.busy.figure.value == pytest.approx((100 + 3 * 0.9 * most) / idle)
    assert found.busy.facts["gbps"] == pytest.approx(0.9 * most)
    assert (found.busy.figure.unit, found.busy.held) == (Unit.LENGTH, Held.IDLE)
    assert found.alike.figure.value == pytest.approx(1.0)
    assert (found.alike.state, found.alike.held) == (State.LEVEL, Held.READS)
    assert found.alike.facts["gbps"] == pytest.approx(38.0 + 64 / STEEP(38.0))
    assert found.slowed.figure.value == pytest.approx(38.0 / ALONE)
    assert (found.slowed.figure.unit, found.slowed.held) == (Unit.SHARE, Held.UNCHASED)
    answers = found.busy, found.alike, found.slowed
    assert {each.basis for each in answers} == {Basis.ROUNDS}
    assert {each.launches for each in answers} == {10}
    assert (found.cpu, found.bytes, found.threads, found.few) == (3, 256 * MIB, 3, False)
    assert [curve.load for curve in found.curves] == ["read", "copy", "decode"]
    for load, curve in zip(LOADS, found.curves, strict=True):
        rates, waits = planted(host, load)
        assert [step.share for step in curve.steps] == [25, 50, 75, 100]
        assert [s.load.value for s in curve.steps] == pytest.approx(rates[1:] - 64 / waits[1:])
        assert [s.gbps.value for s in curve.steps] == pytest.approx(rates[1:])
        assert [s.ns.value for s in curve.steps] == pytest.approx(waits[1:])
        assert [s.tail.value for s in curve.steps] == pytest.approx(TAIL * waits[1:])
        assert [s.times.value for s in curve.steps] == pytest.approx(waits[1:] / idle)
        assert not curve.falls


def test_twice_as_steep():
    host = Host(latency={"read": STEEP, "copy": STEEP, OWN: line(100.0, 6.0)})
    both = 38.0 + 64 / line(100.0, 6.0)(38.0)
    found = place(records(host)).alike
    assert found.figure.value == pytest.approx((100 + 6 * both) / (100 + 3 * both))
    assert found.state is State.DECIDED


def test_where_the_point_moves_more_than_reads_these_say_how_much():
    """NumPy interpolates the latency beside the point there."""
    host = Host(
        latency={"read": STEEP, "copy": STEEP, OWN: line(90.0, 5.0)},
        most={"read": 33.0, "copy": 30.0, OWN: 39.0},
    )
    rates, waits = planted(host, "read")
    found = place(records(host)).alike
    own = np.interp(rates[-1], *planted(host, OWN))
    assert found.figure.value == pytest.approx(own / waits[-1])
    assert found.facts["gbps"] == pytest.approx(rates[-1])


def test_launches_that_differ():
    """Each launch is interpolated alone, as NumPy does from the planted values."""
    host = Host(latency={"read": STEEP, "copy": STEEP, OWN: line(95.0, 5.0)})
    found = place(records(host, launches=7, ns=NS, own=FASTER))
    busy, alike = [], []
    for ns, faster in zip(NS, FASTER, strict=True):
        reads, own = planted(host, "read", ns), planted(host, OWN, ns, faster)
        busy.append(np.interp(0.9 * reads[0][-1], *reads) / (ns * host.idle))
        both = min(reads[0][-1], own[0][-1])
        alike.append(np.interp(both, *own) / np.interp(both, *reads))
    slowed = 38.0 * FASTER / ALONE
    asked = {"busy": busy, "alike": alike, "slowed": slowed}
    for name, values in asked.items():
        figure = getattr(found, name).figure
        assert figure.value == pytest.approx(middle(values))
        # of seven launches the interval of 95 % leaves out two of 28 means at each end
        means = sorted(np.sqrt(a * b) for a, b in combinations_with_replacement(values, 2))
        assert (figure.low, figure.high) == pytest.approx((means[2], means[-3]))
    assert ends(found.idle) == pytest.approx(tuple(host.idle * np.array([1.02, 0.9, 1.2])))
    step = found.curves[0].steps[1]
    assert ends(step.ns) == pytest.approx(tuple(STEEP(20.0) * np.array([1.02, 0.9, 1.2])))
    assert ends(step.times) == pytest.approx((STEEP(20.0) / host.idle,) * 3)


def test_what_is_asked_twice_in_a_round_is_the_mean():
    found = place(records(Host(drift=1.04)))
    assert found.drift.value == pytest.approx(1.04)
    assert found.idle.value == pytest.approx(1.02 * STEEP(0.0))
    assert found.spin.value == pytest.approx(1.02 * 105.0)
    assert found.moved.value == pytest.approx(64 / found.idle.value)
    assert found.curves[0].steps[0].times.value == pytest.approx(STEEP(10.0) / found.idle.value)


@pytest.mark.parametrize("spin, differs", [(STEEP(0.0), False), (105.0, True), (95.0, True)])
def test_whether_a_load_takes_another_time_while_the_others_spin(spin, differs):
    """From the same rounds: a launch moves both latencies."""
    ns = np.linspace(0.9, 1.2, 10)
    assert place(records(Host(spin=spin), ns=ns)).spins is differs


def test_steps_out_of_order_are_joined_by_their_rate():
    """Reads without waits are slower than reads with waits, and their latency is the longest."""
    found = changed(records(), "loaded_read.100", load=25.0, latency=(400e-9, 500e-9))
    rates, waits = planted(Host(), "read")
    rates, waits = [*rates[:-1], 25.0 + 64 / 400.0], [*waits[:-1], 400.0]
    order = np.argsort(rates)
    most = max(rates)
    expected = np.interp(0.9 * most, np.array(rates)[order], np.array(waits)[order])
    own = place(found).busy
    assert own.facts["gbps"] == pytest.approx(0.9 * most)
    assert own.figure.value == pytest.approx(expected / STEEP(0.0))


def test_steps_of_one_rate_are_their_mean():
    """With the chase's 64 bytes in 128 or 256 ns, all three move 30.5 GB/s."""
    found = records()
    alike = {"loaded_read.50": 128.0, "loaded_read.75": 256.0, "loaded_point.100": 128.0}
    for program, ns in alike.items():
        waits = (ns * 1e-9, ns * 1e-9)
        found = changed(found, program, load=30.5 - 64 / ns, latency=waits)
    own = place(found).alike
    assert own.facts["gbps"] == 30.5
    assert own.figure.value == pytest.approx(128 / ((128 + 256) / 2))


# ---- few cores, drift, too few launches ----------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "cpus", "cpu", "few"),
    [
        (machine(2), (0,), 1, True),
        (machine(3), (0, 1), 2, True),
        (machine(4), (0, 1, 2), 3, False),
        (machine(2, smt=2), (0, 1), 2, True),
        (machine(2, smt=2), (0, 1, 2), 3, True),
        (machine(4, smt=2), (0, 1, 2, 3), 4, False),
    ],
)
def test_few_cores(host, cpus, cpu, few):
    """An SMT sibling does not count as a core of its own."""
    own = records(launches=1, rounds=1, point=replace(CHASED, cpus=cpus))
    own = [replace(each, chase=replace(CHASE, cpu=cpu)) for each in own]
    assert place(own, host).few is few


@pytest.mark.parametrize(("drift", "said"), [(1.2, True), (1.05, False), (0.8, True)])
def test_an_idle_latency_that_drifts_is_said(drift, said):
    found = place(records(Host(drift=drift), launches=6, rounds=1))
    assert (found.busy.reason is Reason.DRIFTS) is said
    assert found.busy.state is State.DECIDED and found.alike.reason is Reason.NONE


def test_of_few_launches_ratios_are_not_told():
    found = place(records(Host(drift=1.2), launches=3))
    for each in (found.busy, found.alike, found.slowed):
        assert (each.state, each.reason, each.figure) == (
            State.NOT_TESTED,
            Reason.TOO_FEW,
            None,
        )
    single = place(records(launches=1))
    assert ends(single.idle) == (STEEP(0.0),) * 3 and single.curves[0].steps[3].share == 100


def test_of_a_suspect_point_its_own_rate_is_not_told():
    """Probes read memory at a quarter of its rate."""
    reads = [probe(n, 10.0, replace(READ, cpus=CHASED.cpus)) for n in range(10)]
    found = place([*records(), *reads])
    assert found.busy.state is State.DECIDED
    assert found.alike.reason is found.slowed.reason is Reason.SUSPECT
    assert found.alike.figure is found.slowed.figure is None


def test_a_flat_curve_is_level():
    """As with the load of one core."""
    host = Host(latency=dict.fromkeys(LOADS, FLAT), idle=150.0)
    rng = np.random.default_rng(1)
    found = place(records(host, ns=np.exp(rng.normal(0, 0.02, 10))))
    assert (found.busy.state, found.alike.state) == (State.LEVEL, State.LEVEL)
    assert not any(curve.falls for curve in found.curves)


def test_without_a_whole_round_nothing_is_said():
    none = told([without(each, "idle") for each in records(launches=1)])
    assert none.answers.latency == Latency() and none.answers.workload.points
    bad = [replace(each, samples=(), traffic={}, error="no") for each in records(launches=1)]
    assert told(bad).answers.latency == Latency()


# ---- other answers -------------------------------------------------------------------------------

WHOLE = replace(DECODE, cpus=(0, 1, 2, 3))


def plain(launches=10):
    """A decode and a store on all cores, without a chase."""
    for launch in range(launches):
        yield visit(launch, {"point": [20.0], "twin": [21.0], "memory": [22.0]}, WHOLE, flops=1e9)
        yield visit(launch, {"point": [9.0], "copy": [10.0]}, replace(STORE, cpus=(0, 1, 2, 3)))


def test_no_other_answer_changes():
    sibling = replace(CHASED, cpus=WHOLE.cpus, chase="sibling")
    more = [*records(), *records(point=sibling), *records(point=replace(CHASED, dtype="i8"))]
    lean, rich = told(list(plain())), told([*plain(), *more])
    assert lean.answers.latency == Latency() and len(rich.answers.latency.places) == 3
    assert len(rich.points) == len(lean.points) + 3
    same = ("workload", "decodes", "reads", "factors", "storing", "prefetch", "serving", "mixed")
    for name in (*same, "steps", "speculation", "servers"):
        assert repr(getattr(rich.answers, name)) == repr(getattr(lean.answers, name))
    assert repr(rich.answers.l3.helps) == repr(lean.answers.l3.helps)
    assert rich.tokens.equals(lean.tokens) and rich.saturation.equals(lean.saturation)
    assert rich.placed == lean.placed and rich.open == lean.open


def test_a_run_of_chases_has_a_page_of_its_own():
    others = (
        replace(CHASED, dtype="i8"),
        replace(CHASED, cpus=WHOLE.cpus, chase="remote"),
        replace(CHASED, op="append", variant="-"),
        CHASED,
    )
    found = told([each for point in others for each in records(point=point)])
    page = found.answers.workload
    assert (page.model, page.threads) == ("small", 3)
    assert set(page.points) == {CHASED.name, others[0].name}
    assert {row.dtype for row in found.answers.decodes.rows} == {"f16", "i8"}
    assert found.answers.reads.memory.figure.value == pytest.approx(42.0)
    places = [(each.op, each.dtype, each.chase) for each in found.answers.latency.places]
    assert places == [
        ("decode", "f16", "node"),
        ("decode", "f16", "remote"),
        ("decode", "i8", "node"),
        ("append", "f16", "node"),
    ]
    asked = found.contrasts[found.contrasts["factor"] == "chase"]
    assert len(asked) == 4 * 3 and asked["corrected"].notna().all()


def test_programs_of_the_chase_have_no_rate():
    found = told(records(launches=2))
    own = found.samples[found.samples["program"].str.startswith(("idle", "spin", "loaded"))]
    assert len(own) == 2 * 3 * 16 and own["gbps"].isna().all() and own["gflops"].isna().all()
    row = found.points.iloc[0]
    assert (row["samples"], row["witness"], row["uneven"]) == (6, "twin", 0)
    facts = visit(0, {"point": [40.0], "twin": [41.0], "ceiling": [42.0], "core": [80.0]}, CHASED)
    made = one(Host(), 0, 2, CHASED)
    taken = [sample for sample in made.samples if sample.latency]
    facts = profile(
        replace(
            facts,
            samples=(*facts.samples, *taken),
            traffic=facts.traffic | {s.program: made.traffic[s.program] for s in taken},
            memory={"page_bytes": 1, "mapped": 1, "huge_bytes": 0, "resident_bytes": 1},
            chase=CHASE,
        )
    )
    assert set(facts.rates) == {"point", "twin", "ceiling", "core"}
    assert facts.latencies["loaded_point.50"].load == pytest.approx(19.0)
    assert facts.latencies["loaded_point.50"].ns == pytest.approx(STEEP(19.0))
    assert facts.latencies["spin_after"].tail == pytest.approx(TAIL * 105.0)


def test_points_are_compared_and_curves_are_not():
    found = compared(records(), records(Host(latency=dict.fromkeys(LOADS, FLAT))))
    assert [row.name for row in found.points] == [CHASED.name]
    said = "only their own time is compared, not the chase's latency"
    assert any(said in note for note in found.notes)
    others = compared(list(plain()), list(plain()))
    assert not any("latency" in note for note in others.notes)


# ---- idle latency by level -----------------------------------------------------------------------


def latencies(cpu, counts, ns):
    """Ceilings of latency probes of the given sizes, with ten loads per pass."""
    for count, each in zip(counts, ns, strict=True):
        of = Probe("latency", "scalar", (cpu,), "thp", count)
        for launch, lucky in enumerate((0.9, 1.0, 1.2)):
            seconds = 10 * each * lucky * 1e-9
            taken = (Sample("point", 0, 1, seconds, (), 0.0, 0, 0),)
            yield replace(probe(launch, 1.0, of), point=of, samples=taken, steps=10, run=RUN)


LEVELS = (256 * KIB, 512 * KIB, 8 * MIB, 12 * MIB, 16 * MIB, 256 * MIB)


def test_idle_latency_by_level():
    """On the CPU that chases, at the middle footprint; of two middle ones the smaller."""
    probes = [
        *latencies(0, LEVELS, (1, 1, 2, 2, 2, 3)),
        *latencies(3, LEVELS, (4.0, 5.0, 20.0, 25.0, 30.0, 100.0)),
    ]
    chases = records(launches=3)
    found = told([*chases, *probes]).answers.latency.idle
    assert [(each.level, each.bytes) for each in found] == [
        ("L2", 256 * KIB),
        ("L3", 12 * MIB),
        ("DRAM", 256 * MIB),
    ]
    assert [each.ns.value for each in found] == pytest.approx([4.0, 25.0, 100.0])
    assert {(each.cpu, each.ns.unit) for each in found} == {(3, Unit.NS)}
    others = told([*chases, *latencies(0, LEVELS, range(1, 7))]).answers.latency.idle
    assert {each.cpu for each in others} == {0}
    assert told(list(latencies(0, LEVELS, range(1, 7)))).answers.latency == Latency()
