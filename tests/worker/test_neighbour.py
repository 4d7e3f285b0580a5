"""A neighbour streams memory on cores that a point leaves free, while the point is sampled."""

from dataclasses import replace

import pytest

from kvbench.errors import Unsupported
from kvbench.machine.placement import neighbours
from kvbench.model import Fact, Times
from kvbench.native import default_library
from kvbench.peers.host import Host
from kvbench.worker.loop import rounds
from tests import made_run
from tests.made_job import CPU, bench
from tests.made_run import machine

DECODE = replace(
    made_run.DECODE, cpus=(CPU,), pages="base", residency="hot", isa=default_library().isa()
)
FAR = 1 << 20


@pytest.fixture
def beside(monkeypatch):
    """A bench and its neighbour, on the point's own CPU."""
    monkeypatch.setattr("kvbench.worker.bench.neighbours", lambda machine, cpus: cpus)
    monkeypatch.setattr("kvbench.regime.FAR_BYTES", FAR)
    with bench(DECODE) as found:
        yield found, found.neighbour()


def test_it_reads_all_of_memory_and_caches_are_full_of_that_before_a_sample(beside):
    own, load = beside
    far = own.far.whole.size
    moved = [task.traffic().bytes_compulsory for task in load.tasks]
    assert sum(moved) == pytest.approx(far, rel=0.01) and len(set(moved)) == 1
    assert load.ahead * moved[0] == pytest.approx(far / 4, rel=0.01)
    assert load.pause == 0 and load.team.threads == 1


def test_it_is_under_way_in_every_run_of_its_program_and_in_no_other(beside):
    own, load = beside
    asked = []

    class Played:
        def run(self, *tasks, passes=1, between=None, load=None):
            asked.append((passes, load))
            seconds = (1.0,) * passes
            return Times(1.0 * passes, seconds, (1.0,), (), 0, 0, load_passes=3, load_seconds=0.5)

    alone = replace(own.own, team=Played(), tasks=own.own.tasks[:1])
    near = replace(alone, name="neighbour", load=load)
    found = {s.program: s for s in rounds([alone, near], 1, 1.0, 0, {"point": 2, "neighbour": 2})}
    assert sorted(asked, key=lambda each: each[1] is None) == [
        (1, load),
        (2, load),
        (1, None),
        (2, None),
    ]
    rate = 3 * load.tasks[0].traffic().bytes_compulsory / 0.5 / 1e9
    assert found["neighbour"].load == pytest.approx(rate) and found["point"].load == 0


def test_without_a_free_core_there_is_none(monkeypatch):
    monkeypatch.setattr("kvbench.worker.bench.neighbours", lambda machine, cpus: ())
    with bench(DECODE) as found:
        assert found.neighbour() is None


def test_an_engine_has_none():
    with pytest.raises(Unsupported, match="no load runs beside an engine's step"):
        Host.run(None, load="any")


def test_neighbours_are_cores_of_the_same_nodes_that_are_free():
    """Two threads a core, two nodes, one thread each; as many as the quota pays for."""
    known = {"core_kinds": Fact({}, "", "high"), "quota": Fact(None, "", "high")}
    large = machine(8, smt=2, nodes=2, **known)
    assert neighbours(large, (0,)) == (1, 2, 3)
    assert neighbours(large, (0, 9)) == (2, 3)
    assert neighbours(large, (1, 6)) == (0, 2, 3, 4, 5, 7)
    assert neighbours(machine(4, **known), range(4)) == ()
    assert neighbours(replace(large, allowed=(0, 1)), (0,)) == (1,)
