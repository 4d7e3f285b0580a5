"""Memory lies where it was asked for, according to the system."""

import re
import subprocess
import sys

import pytest

from kvbench.errors import Unsupported
from kvbench.native import Arena, numa
from tests.made_run import MIB

SCRIPT = """
from kvbench.native import Arena, numa
arena = Arena(8 << 20, "base")
numa.bind(arena, [0])
arena.view()[:] = 1
print(*open("/proc/self/numa_maps"), sep="")
"""


def _filled(pages, nodes):
    arena = Arena(8 * MIB, pages)
    try:
        numa.bind(arena, nodes)
    except Unsupported as error:
        pytest.skip(str(error))
    arena.view()[:] = 1
    return arena


@pytest.mark.parametrize("pages", ["base", "thp"])
def test_pages_lie_on_the_node(pages):
    with _filled(pages, [0]) as arena:
        found = numa.placed(arena, arena.size)
        assert set(found) == {0} and found[0] >= 500


def test_pages_that_nobody_touched_lie_nowhere():
    with Arena(8 * MIB, "base") as arena:
        assert not numa.placed(arena, arena.size)


def test_the_kernel_says_so_too():
    """According to /proc/self/numa_maps: 2,048 pages of 4 KiB under the policy, all on node 0."""
    _filled("base", [0]).close()
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    ).stdout
    if not said.strip():
        pytest.skip("this kernel shows no numa_maps")
    assert any(re.search(r"bind[^\n]*:0 .*N0=2048", line) for line in said.splitlines()), said


def test_a_node_that_does_not_exist():
    with Arena(MIB, "base") as arena, pytest.raises(Unsupported, match="the system refused mbind"):
        numa.bind(arena, [63])
