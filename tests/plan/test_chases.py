"""Points with a chase: which ones exist, what they need, and the probes beside them."""

from dataclasses import replace

import pytest

from kvbench.errors import BadArgument
from kvbench.gate.rivals import refuse_chases
from kvbench.model import Fact
from kvbench.plan import forecast, needs_here
from kvbench.plan.chases import NO_SIBLING
from kvbench.plan.expansion import MEMORY
from kvbench.plan.shapes import CPUS, INVALID, NO_NODE
from kvbench.regime import classify
from kvbench.session.line import expected
from tests.plan.test_expansion import why
from tests.plan.test_plan import DIES, MIB, TWO, made

ALL = 'chase = ["none", "node", "remote", "sibling"]'
# two sockets of four cores with two threads each, and 96 MiB of L3
SERVER = made(8, smt=2, nodes=2, per_l3=4, l3=96 * MIB)
ONE = replace(TWO, allowed=(1,))
PAID = replace(TWO, facts=TWO.facts | {"quota": Fact(1.5, "", "high")})


def test_the_axis_is_of_points_and_their_names(sweep):
    plain, *chased = sweep(ALL, SERVER).points
    assert [(point.chase, point.cpus) for point in chased] == [
        ("node", (0, 1, 2)),
        ("remote", (0, 1, 2, 3)),
        ("sibling", (0, 1, 2, 3)),
    ]
    assert plain.cpus == tuple(range(8)) and ".chase" not in plain.name
    assert [point.name.rpartition(".")[2] for point in chased] == [
        f"chase{point.chase}" for point in chased
    ]


def test_threads_are_as_asked(sweep):
    found = sweep('chase = "node"\nthreads = [1, 3, 4]', SERVER)
    assert [point.cpus for point in found.points] == [(0,), (0, 1, 2)]
    assert why(found) == (CPUS, "with 4 threads, no core of their NUMA node is free for a chase")


@pytest.mark.parametrize(
    ("machine", "chase", "reason"),
    [
        (ONE, "node", (CPUS, "a chase takes a CPU of its own, but 1 CPU is allowed")),
        (ONE, "remote", (CPUS, "a chase takes a CPU of its own, but 1 CPU is allowed")),
        (
            TWO,
            "remote",
            (NO_NODE, "a chase on another NUMA node needs two nodes, but all CPUs belong to one"),
        ),
        (
            TWO,
            "sibling",
            (NO_SIBLING, "a chase on an SMT sibling needs SMT, but each CPU is a core of its own"),
        ),
        (
            PAID,
            "node",
            (CPUS, "a chase beside 1 thread takes 2 CPUs, but the quota allows 1"),
        ),
    ],
)
def test_no_cpu_is_left(sweep, machine, chase, reason):
    assert why(sweep(f'chase = "{chase}"', machine)) == reason


@pytest.mark.parametrize(
    ("axes", "detail"),
    [
        ('op = "bulk"', "a chase runs beside decode or append, not beside bulk"),
        ('op = "step"\nlayers = 2', "a chase runs beside decode or append, not beside step"),
        ('residency = "hot"', "a chase needs residency rotate, not hot"),
        ('residency = "evicted"', "a chase needs residency rotate, not evicted"),
        (
            "layers = 2",
            "a chase runs beside reads from memory, but 2 layers in turn may stay in caches",
        ),
        ('between = "64m"', "a chase allows no reads between passes: ask for between=0"),
        ('engine = "numpy"\ndtype = "f32"', "a chase runs beside our kernels, not beside a peer's"),
    ],
)
def test_what_nobody_chases_beside(sweep, axes, detail):
    assert why(sweep(f'chase = "node"\n{axes}')) == (INVALID, detail)


def test_its_memory_is_beyond_all_caches(sweep):
    """Its cycle exceeds the caches of the point's CPUs and of its own. It counts as memory, and is
    refused if there is too little.
    """
    plain, *chased = (found := sweep(ALL, SERVER)).points
    for point in chased:
        own, alone = found.needs[point], needs_here([replace(point, chase="none")], SERVER)
        (without,) = alone.values()
        assert own.chain >= 4 * 96 * MIB and own.memory == without.memory + own.chain
        assert needs_here([point], SERVER) == {point: own}
    assert found.needs[plain].chain == 0
    few = sweep('chase = "node"', SERVER, memory=found.needs[chased[0]].memory)
    assert not few.points and why(few)[0] == MEMORY


def test_caches_of_the_one_that_chases_count_too(sweep):
    """The CPUs of the load have small caches, that of the chase has large ones."""
    caches = tuple(
        replace(cache, size=8 * MIB) if cache.level == 3 and 0 in cache.cpus else cache
        for cache in SERVER.caches
    )
    (point,) = (found := sweep('chase = "remote"', replace(SERVER, caches=caches))).points
    assert found.needs[point].chain >= 4 * 96 * MIB > found.needs[point].far


def test_loads_of_each_level_are_ceilings(sweep):
    """Probes of latency on the CPU that chases; the probe of memory is as large as the cycle."""
    found = sweep('chase = "node"\ndtype = ["f16", "i8"]', SERVER)
    probes = [each for each in found.plan.points if each.op == "latency"]
    levels = [classify(SERVER, (3,), probe.bytes).word for probe in probes]
    assert levels == ["L2", "L3", "DRAM"] and {probe.cpus for probe in probes} == {(3,)}
    chain = found.needs[found.points[0]].chain
    assert chain <= probes[-1].bytes < chain + 1024 and {probe.pages for probe in probes} == {
        "base"
    }
    assert not [each for each in sweep("", SERVER).plan.points if each.op == "latency"]


def test_nothing_is_timed_side_by_side_with_a_chase(sweep):
    axes = 'dtype = ["f16", "i8"]\nlayout = ["head", "position"]\nchase = ["none", "node"]'
    found = sweep(axes, DIES)
    assert found.contrasts
    own = {point for each in found.contrasts for point in each.points}
    assert {point.chase for point in own | {*expected(found, DIES)}} == {"none"}
    assert not sweep(axes.replace('"none", ', ""), DIES).contrasts


def test_a_chase_takes_longer(sweep):
    """16 samples of 20 ms per round, and linking its memory once per launch."""
    plain, chased = (sweep(f'chase = "{chase}"\nthreads = 1') for chase in ("none", "node"))
    one, other, plan = forecast(plain), forecast(chased), plain.plan
    timed = plan.launches * plan.samples * 16 * 0.02
    assert other.timed - one.timed >= timed
    assert other.seconds - one.seconds >= timed + plan.launches * 256 * MIB / 0.5e9


def test_a_gate_has_none(sweep):
    refuse_chases(sweep(""))
    with pytest.raises(BadArgument, match="x.toml has points with a chase"):
        refuse_chases(sweep('chase = "node"'))
