"""Plans of ceilings for made-up machines: their footprints, CPUs and tiers."""

from dataclasses import replace
from functools import partial

import pytest

from kvbench.model import Fact
from kvbench.plan import Scope, cpu_sets, probes
from kvbench.plan.needs import tokens_in
from kvbench.regime import classify
from tests.made_run import KIB, MIB, machine
from tests.sizing.made import GIB

FACTS = {"quota": Fact("unlimited", "", "high"), "core_kinds": Fact({}, "", "high")}


made = partial(machine, **FACTS)
TWO = made(2, l2=512 * KIB)
DIES = made(16, per_l3=8, nodes=2)
BARE = replace(TWO, caches=())


def scope(machine, **facts):
    return Scope(
        **{
            "cpus": machine.allowed,
            "isas": ("scalar", "best"),
            "memory": 64 * GIB,
            "pages": ("base",),
            "quick": True,
        }
        | facts
    )


def footprints(plan, op, threads):
    return sorted({p.bytes for p in plan.points if p.op == op and len(p.cpus) == threads})


@pytest.mark.parametrize("machine", [TWO, DIES, made(8, l1=48 * KIB, l2=2 * MIB, l3=96 * MIB)])
@pytest.mark.parametrize("quick", [True, False])
def test_two_footprints_in_every_regime(machine, quick):
    plan = probes(machine, scope(machine, quick=quick))
    main = cpu_sets(machine, machine.allowed, quick=True)
    for cpus in cpu_sets(machine, machine.allowed, quick):
        if cpus not in main:
            assert {p.op for p in plan.points if p.cpus == cpus} <= {"read", "flops", "clock"}
            continue
        for op in ("read", "write", "write_nt", "copy", "copy_nt", "triad"):
            words = [
                classify(machine, cpus, count).word for count in footprints(plan, op, len(cpus))
            ]
            for word in ("L1", "L2", "L3"):
                assert words.count(word) >= 2, (op, len(cpus), words)
            assert words.count("DRAM") >= (1 if quick and op != "read" else 2)


def test_reads_climb_in_small_steps():
    for quick, factor in ((True, 2.4), (False, 1.7)):
        steps = footprints(probes(TWO, scope(TWO, quick=quick)), "read", 2)
        assert steps[0] <= 32 * KIB and steps[-1] >= 4 * 32 * MIB
        assert all(
            after <= factor * before for before, after in zip(steps, steps[1:], strict=False)
        )


def test_every_buffer_is_whole_lines_for_every_thread():
    for probe in probes(DIES, scope(DIES, quick=False)).points:
        streams = {"copy": 2, "copy_nt": 2, "triad": 3}.get(probe.op, 1)
        assert probe.bytes % (64 * streams * len(probe.cpus)) == 0


def test_memory_caps_footprints():
    plan = probes(TWO, scope(TWO, memory=100 * MIB))
    assert max(p.bytes for p in plan.points) <= 50 * MIB
    assert max(footprints(plan, "read", 2)) > 49 * MIB, "what fits is measured"


def test_unknown_caches_get_a_plain_staircase():
    steps = footprints(probes(BARE, scope(BARE)), "read", 2)
    assert steps[0] <= 2 * 16 * KIB and steps[-1] > 255 * MIB
    assert len(steps) >= 8


def test_many_threads_walk_past_their_private_caches():
    many = replace(made(128, per_l3=8), caches=())
    assert max(footprints(probes(many, scope(many)), "read", 128)) >= 128 * 4 * MIB


def test_quick_latency_has_every_regime_even_with_a_tiny_l1():
    tiny = made(2, l1=16 * KIB)
    words = {
        classify(tiny, (0,), p.bytes).word
        for p in probes(tiny, scope(tiny)).points
        if p.op == "latency"
    }
    assert words >= {"L1", "L2", "L3", "DRAM"}


def test_a_server_is_measured_in_reasonable_time():
    """Two sockets, 16 domains: all of them are read, but only the main ones are stored to."""
    server = made(128, per_l3=8, nodes=8)
    plan = probes(server, scope(server, quick=False, pages=("base", "thp")))
    assert len({p.cpus for p in plan.points}) >= 16 + 8
    assert len(plan.points) < 2000


def test_caches_of_other_cpus_are_no_help():
    caches = tuple(cache for cache in DIES.caches if max(cache.cpus) < 8)
    half = replace(DIES, caches=caches)
    assert cpu_sets(half, (8, 9), quick=False) == [(8,), (8, 9)]
    assert probes(half, scope(half, cpus=(8, 9))).points


def test_cpu_sets():
    everything = DIES.allowed
    assert cpu_sets(DIES, everything, quick=True) == [(0,), tuple(range(8)), everything]
    full = cpu_sets(DIES, everything, quick=False)
    assert [len(cpus) for cpus in full] == [1, 2, 4, 8, 8, 16]
    assert tuple(range(8, 16)) in full, "the second domain by itself"
    assert cpu_sets(BARE, (1,), quick=False) == [(1,)]


def test_arithmetic_on_every_tier_and_latency_on_one_thread():
    plan = probes(TWO, scope(TWO, products=("dot8", "dot16")))
    found = {(p.op, p.isa, len(p.cpus)) for p in plan.points if p.op[:3] == "dot"}
    assert found == {(op, "best", count) for op in ("dot8", "dot16") for count in (1, 2)}
    flops = {(p.isa, len(p.cpus)) for p in plan.points if p.op == "flops"}
    assert flops == {("scalar", 1), ("best", 1), ("scalar", 2), ("best", 2)}
    assert {len(p.cpus) for p in plan.points if p.op == "clock"} == {1, 2}
    assert {len(p.cpus) for p in plan.points if p.op == "latency"} == {1}
    words = {classify(TWO, (0,), p.bytes).word for p in plan.points if p.op == "latency"}
    assert words >= {"L1", "L2", "L3", "DRAM"}
    assert {p.isa for p in plan.points if p.op == "read"} == {"best"}


@pytest.mark.parametrize(
    ("beside", "most", "fewest"), [(-1, 255, 256), (0, 256, 256), (1, 256, 257)]
)
def test_tokens_in_so_many_bytes(beside, most, fewest):
    """A token with 8 heads of 128 f16 elements has 4 KiB of K and V: 256 tokens are a MiB."""
    facts = {
        "layout": "position",
        "dtype": "f16",
        "block_tokens": 1,
        "inner": "head",
        "scale": "f32",
        "pad": 0,
    }
    assert [tokens_in(MIB + beside, up, 8, 128, 1, **facts) for up in (False, True)] == [
        most,
        fewest,
    ]
