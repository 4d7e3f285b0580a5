"""Which CPU chases pointers beside a point, and which CPUs are left for the point."""

from functools import partial
from itertools import combinations

import pytest

from kvbench.machine import describe
from kvbench.machine.placement import chaser, loading
from kvbench.model.chases import NODE, REMOTE, SIBLING
from tests.machine import trees
from tests.machine.trees import grow

# CPUs 0-3 and 4-7 are the cores of two sockets, 8-15 their siblings
SOCKETS = partial(grow, sockets=2, cores=4, smt=2)
# of one node, with an L3 each
DOMAINS = partial(grow, caches=[*trees.SERVER[:3], (3, "Unified", "32M", 4)])


def of_quota(limit):
    return partial(grow, more={"sys/fs/cgroup/cpu.max": limit})


CASES = [  # machine, CPUs that are asked for, chase, those of the point, the one that chases
    (partial(grow, cores=2), None, NODE, (0,), 1),
    (partial(grow, cores=1, smt=2), None, NODE, (), None),
    (partial(grow, cores=1, smt=2), None, SIBLING, (0,), 1),
    (partial(grow, cores=1), None, SIBLING, (0,), None),
    (SOCKETS, None, NODE, (0, 1, 2), 3),
    (SOCKETS, None, REMOTE, (0, 1, 2, 3), 7),
    (SOCKETS, None, SIBLING, (0, 1, 2, 3), 11),
    (SOCKETS, "spread", NODE, (0, 1, 2), 3),
    (SOCKETS, "node1", NODE, (4, 5, 6), 7),
    (SOCKETS, "node1", REMOTE, (4, 5, 6, 7), 3),
    (SOCKETS, "1,0", NODE, (1, 0), 3),
    (SOCKETS, "0-3", NODE, (0, 1, 2, 3), None),
    (SOCKETS, "0-3", REMOTE, (0, 1, 2, 3), 7),
    (SOCKETS, "0-4", REMOTE, (0, 1, 2, 3, 4), None),
    (partial(SOCKETS, offline={3}), None, NODE, (0, 1, 2), 11),
    (partial(SOCKETS, offline={3, 11}), None, NODE, (0, 1), 2),
    (partial(SOCKETS, allowed="2-4,10"), None, NODE, (2,), 3),
    (partial(SOCKETS, allowed="2-4,10"), None, SIBLING, (2, 3), 10),
    (partial(SOCKETS, allowed="4"), None, REMOTE, (4,), None),
    (partial(grow, cores=2), None, REMOTE, (0, 1), None),
    (partial(grow, cores=2), None, SIBLING, (0, 1), None),
    (DOMAINS, "domain", NODE, (0, 1, 2, 3), 7),
    (DOMAINS, None, NODE, (0, 1, 2, 3, 4, 5, 6), 7),
    (trees.hybrid, None, NODE, (0, 1, 2, 4, 5, 6, 7), 3),
    (trees.hybrid, "atom", NODE, (4, 5, 6, 7), 3),
    (trees.hybrid, "core", NODE, (0, 1, 2, 3), 7),
    (of_quota("300000 100000"), None, NODE, (0, 1), 7),
    (of_quota("250000 100000"), "0-3", NODE, (0, 1), None),
    (of_quota("200000 100000"), "4", NODE, (4,), 7),
    (of_quota("150000 100000"), None, NODE, (), None),
]


@pytest.mark.parametrize(("tree", "cpus", "where", "own", "cpu"), CASES)
def test_who_loads_and_who_chases(tree, cpus, where, own, cpu, tmp_path):
    machine = describe(tree(tmp_path))
    assert loading(machine, cpus, where) == own
    assert chaser(machine, own, where) == cpu if own else cpu is None


def test_no_chase_shares_a_core_or_leaves_its_node_unasked(tmp_path):
    """Beside any CPUs of a machine."""
    machine = describe(SOCKETS(tmp_path))
    core = {cpu: cpu % 8 for cpu in range(16)}
    node = {cpu: core[cpu] // 4 for cpu in core}
    for count in (1, 2, 3):
        for own in combinations(range(16), count):
            busy, nodes = {core[cpu] for cpu in own}, {node[cpu] for cpu in own}
            near, far, sibling = (chaser(machine, own, w) for w in (NODE, REMOTE, SIBLING))
            assert core[near] not in busy and node[near] in nodes
            assert (far is None) == (len(nodes) == 2)
            assert far is None or node[far] not in nodes
            assert (sibling is None) == (2 * len(busy) == count)
            assert sibling is None or core[sibling] in busy and sibling not in own
