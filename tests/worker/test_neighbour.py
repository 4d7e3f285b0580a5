"""A neighbour streams while a sample is taken, and stops when it ends or fails."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from kvbench.worker.neighbour import PIECES, Neighbour

from kvbench.machine.placement import neighbours
from kvbench.model import Fact
from tests.made_run import machine


class Played:
    """A team whose every task takes a second and moves 2 GB."""

    def __init__(self):
        self.ran = []

    def run(self, task):
        self.ran.append(task)
        return SimpleNamespace(seconds=1.0)


def played(team):
    moved = SimpleNamespace(bytes_compulsory=2e9)
    return Neighbour(
        team, [0], [SimpleNamespace(number=n, traffic=lambda: moved) for n in range(PIECES)]
    )


def test_caches_are_full_of_it_before_a_sample_begins_and_its_rate_is_told():
    team = Played()
    neighbour = played(team)
    with neighbour.streaming():
        assert [task.number for task in team.ran[:4]] == [0, 1, 2, 3]
    count, threads = len(team.ran), threading.active_count()
    assert neighbour.gbps == pytest.approx(2.0)
    with pytest.raises(ValueError, match="broken"), neighbour.streaming():
        raise ValueError("broken")
    assert len(team.ran) > count and threading.active_count() == threads


def test_a_neighbour_that_fails_is_the_samples_failure():
    team = SimpleNamespace(run=lambda task: 1 / 0)
    with pytest.raises(ZeroDivisionError), played(team).streaming():
        pass


def test_neighbours_are_cores_of_the_same_nodes_that_are_free():
    """Of two threads a core and two nodes, one thread each; as many as the quota pays for."""
    known = {"core_kinds": Fact({}, "", "high"), "quota": Fact(None, "", "high")}
    large = machine(8, smt=2, nodes=2, **known)
    assert neighbours(large, (0,)) == (1, 2, 3)
    assert neighbours(large, (0, 9)) == (2, 3)
    assert neighbours(large, (1, 6)) == (0, 2, 3, 4, 5, 7)
    assert neighbours(machine(4, **known), range(4)) == ()
    assert neighbours(replace(large, allowed=(0, 1)), (0,)) == (1,)
