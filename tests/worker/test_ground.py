"""Memory is used again only on the right node."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.machine import describe
from kvbench.model import Cpu
from kvbench.native import Team, default_library
from kvbench.worker.ground import Ground
from tests.made_job import CPU, room
from tests.made_run import DECODE, MIB


@pytest.fixture
def ground():
    """Four made-up CPUs on two nodes; the threads that touch memory run on a real one."""
    machine = replace(
        describe(), cpus=tuple(Cpu(cpu, cpu, cpu // 2, cpu // 2, 0) for cpu in range(4))
    )
    with Ground(default_library(), machine) as found:
        yield found


@pytest.fixture
def team():
    with Team(1, [CPU]) as found:
        yield found


def test_nodes(ground):
    assert ground.node((0, 1)) == 0 and ground.node((3,)) == 1 and ground.node((1, 2)) is None


def test_cpus_of_a_node_share(ground):
    first = ground.arena((0,), "base", 2 * MIB)
    assert ground.arena((0, 1), "base", MIB) is first


@pytest.mark.parametrize(
    ("cpus", "pages", "size"),
    [((2,), "base", MIB), ((0, 2), "base", MIB), ((0,), "thp", MIB), ((0,), "base", 2 * MIB)],
)
def test_others_get_their_own(ground, cpus, pages, size):
    first = ground.arena((0,), "base", MIB)
    other = ground.arena(cpus, pages, size)
    assert other is not first and other.size >= size
    with pytest.raises(ValueError, match="closed"):
        first.base  # noqa: B018


def test_of_several_nodes_nothing_is_used_again(ground):
    assert ground.arena((0, 2), "base", MIB) is not ground.arena((0, 2), "base", MIB)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_far_memory_is_there_and_no_pattern(ground, team, parts):
    far = ground.far(team, (0, 2), "base", 3 * MIB, parts)
    assert far.inspect()["resident_bytes"] >= 3 * MIB
    pages = far.view().reshape(-1, 4096)
    assert len(np.unique(pages, axis=0)) == len(pages) and len(np.unique(pages[0])) > 200
    assert ground.held() == 0, "that counts rooms alone"


def test_a_cycle_goes_through_every_line_and_is_linked_once(ground, team, monkeypatch):
    whole, given = ground.cycle(team, 0, "base", 64 << 10)
    assert given["resident_bytes"] >= whole.size == 64 << 10
    start = int(default_library().ffi.cast("uintptr_t", whole.base))
    words = np.frombuffer(default_library().ffi.buffer(whole.base, whole.size), np.uint64)
    at, seen = start, set()
    while at not in seen:
        seen.add(at)
        at = int(words[(at - start) // 8])
    assert at == start and seen == set(range(start, start + whole.size, 64))
    monkeypatch.setattr("kvbench.worker.ground.chain", lambda *_: pytest.fail("linked again"))
    assert ground.cycle(team, 1, "base", 32 << 10)[0].base == whole.base


def test_a_room_that_lacks_memory_gets_that_of_a_cycle(team, monkeypatch):
    with Ground(default_library()) as own:
        own.cycle(team, CPU, "base", MIB)
        left = iter([0, 1 << 40])
        monkeypatch.setattr("kvbench.worker.room.available_memory", lambda: next(left))
        with room(replace(DECODE, cpus=(CPU,), pages="base", residency="hot"), own):
            assert "cycle" not in own._held and not list(left)
