"""What an L3 can and cannot be."""

import pytest

from kvbench.machine.describe import doubts
from kvbench.model import Cpu, DataCache
from tests.made_run import MIB


def cpus(sockets, nodes):
    """CPUs by socket and node: "0011" is four CPUs, two in each."""
    pairs = enumerate(zip(sockets, nodes, strict=True))
    return tuple(Cpu(cpu, cpu, int(socket), int(node), 0) for cpu, (socket, node) in pairs)


def machine(sockets, nodes, *shared, size=8 * MIB):
    return cpus(sockets, nodes), tuple(DataCache(3, size, group) for group in shared)


SOUND = {
    "one socket": machine("0000", "0000", (0, 1, 2, 3)),
    "two sockets": machine("0011", "0011", (0, 1), (2, 3)),
    "clusters share the socket's": machine("00001111", "00112233", (0, 1, 2, 3), (4, 5, 6, 7)),
    "chiplets in a node": machine("0000", "0000", (0, 1), (2, 3)),
    "a chiplet of one core": machine("0000", "0000", (0,), (1,), (2,), (3,)),
    "one core": machine("0", "0", (0,)),
    "a node over two sockets": machine("0011", "0000", (0, 1), (2, 3)),
    "no L3": machine("0011", "0011"),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_ones(name):
    assert doubts(*SOUND[name], virtual=False) == ()


@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize(
    ("found", "words"),
    [
        (machine("0011", "0011", (0, 1, 2, 3)), ("CPUs 0-3 spans 2 sockets",)),
        (machine("0011", "0100", (0, 1)), ("CPUs 0-1 is shared by NUMA nodes of several sockets",)),
    ],
)
def test_impossible_ones(found, words, virtual):
    lines = doubts(*found, virtual)
    assert len(lines) == len(words)
    for line, word in zip(lines, words, strict=True):
        assert word in line


def test_one_for_each_core_of_a_guest():
    found = machine("0000", "0000", (0,), (1,), (2,), (3,))
    assert ["every core" in line for line in doubts(*found, virtual=True)] == [True]
    assert doubts(*machine("0", "0", (0,)), virtual=True) == ()


@pytest.mark.parametrize(("size", "sure"), [(24 * MIB, True), (24 * MIB + 1, False)])
def test_more_than_a_guest_can_own(size, sure):
    found = machine("00", "00", (0, 1), size=size)
    assert (doubts(*found, virtual=True) == ()) is sure
    assert doubts(*found, virtual=False) == ()
