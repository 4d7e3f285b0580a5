"""Big made-up machines: `machine`, the words for threads and the plan of quick, compared with what
an expert wrote by hand.
"""

from typing import Any, NamedTuple

import pytest

from kvbench.machine import describe
from kvbench.machine.placement import place, powers
from kvbench.plan import Site, expand
from kvbench.suite import find
from kvbench.units import cpu_text
from tests.machine.trees import CPU, NEOVERSE, SERVER, grow

ALL = ("domain", "node", "socket", "all", "all+smt")


class Expert(NamedTuple):
    tree: dict[str, Any]
    # sockets, cores, CPUs of a core, nodes, nodes of a socket, last-level caches
    facts: tuple[int, ...]
    cpus: tuple[str, ...]  # of a domain, a node, a socket, all cores, all CPUs
    domain_over_all: str  # a domain's number of threads, spread
    powers: tuple[int, ...]
    quick: tuple[int, ...]  # numbers of threads


def caches(l2: str, l2_cores: int, l3: str, l3_cores: int) -> list[tuple]:
    return [*SERVER[:2], (2, "Unified", l2, l2_cores), (3, "Unified", l3, l3_cores)]


def parts(cores: int, each: int) -> list[list[int]]:
    return [list(range(first, first + each)) for first in range(0, cores, each)]


def clusters() -> dict[str, object]:
    """CPUs 8 to 23 share 4 MiB of L2 in groups of four."""
    own: dict[str, object] = {
        "sys/devices/cpu_core/cpus": "0-7",
        "sys/devices/cpu_atom/cpus": "8-23",
    }
    for cpu in range(8, 24):
        first = cpu - cpu % 4
        own[f"{CPU}/cpu{cpu}/cache/index2/size"] = "4096K"
        own[f"{CPU}/cpu{cpu}/cache/index2/shared_cpu_list"] = f"{first}-{first + 3}"
    return own


EXPERTS = {
    "2 x 64, 16 domains, two threads a core": Expert(
        {"sockets": 2, "cores": 64, "smt": 2, "caches": caches("512K", 1, "32M", 8)},
        (2, 128, 2, 2, 1, 16),
        ("0-7", "0-63", "0-63", "0-127", "0-255"),
        "0,8,16,24,64,72,80,88",
        (1, 2, 4, 8, 16, 32, 64, 128),
        (1, 8, 64, 128),
    ),
    "1 x 288, SNC3": Expert(
        {"cores": 288, "caches": caches("4M", 4, "108M", 96), "nodes": parts(288, 96)},
        (1, 288, 1, 3, 3, 3),
        ("0-95", "0-95", "0-287", "0-287", "0-287"),
        "0-31,96-127,192-223",
        (1, 2, 4, 8, 16, 32, 64, 96, 192, 288),
        (1, 96, 288),
    ),
    "2 x 96, NPS4": Expert(
        {"sockets": 2, "cores": 96, "caches": caches("1M", 1, "32M", 8), "nodes": parts(192, 24)},
        (2, 192, 1, 8, 4, 24),
        ("0-7", "0-23", "0-95", "0-191", "0-191"),
        "0,24,48,72,96,120,144,168",
        (1, 2, 4, 8, 16, 24, 48, 96, 192),
        (1, 8, 96, 192),
    ),
    "Altra, 128 cores, no L3 declared": Expert(
        {"cores": 128, "caches": SERVER[:3], "arm": NEOVERSE},
        (1, 128, 1, 1, 1, 128),
        ("0", "0-127", "0-127", "0-127", "0-127"),
        "0",
        (1, 2, 4, 8, 16, 32, 64, 128),
        (1, 128),
    ),
    "8 strong and 16 weak cores": Expert(
        {"cores": 24, "caches": caches("3M", 1, "36M", 24), "more": clusters()},
        (1, 24, 1, 1, 1, 1),
        ("0-23", "0-23", "0-23", "0-23", "0-23"),
        "0-23",
        (1, 2, 4, 8, 24),
        (1, 24),
    ),
    "one CPU of 128": Expert(
        {"cores": 128, "caches": caches("1M", 1, "32M", 8), "allowed": "77"},
        (1, 128, 1, 1, 1, 16),
        ("77", "77", "77", "77", "77"),
        "77",
        (1,),
        (1,),
    ),
}


@pytest.mark.parametrize("expert", EXPERTS.values(), ids=EXPERTS)
def test_as_an_expert_writes_it(expert, tmp_path):
    machine = describe(grow(tmp_path, **expert.tree))
    known = {name: fact.value for name, fact in machine.facts.items()}
    named = ("sockets", "cores", "smt", "nodes", "snc")
    assert (*(known[name] for name in named), len(known["domains"])) == expert.facts
    assert tuple(cpu_text(place(machine, None, word)) for word in ALL) == expert.cpus
    assert cpu_text(place(machine, "spread", "domain")) == expert.domain_over_all
    assert powers(machine, None) == expert.powers
    planned = expand(find("quick"), Site(machine, 256 << 30, "scalar", pages=("thp",))).points
    assert tuple(sorted({len(point.cpus) for point in planned})) == expert.quick


def test_kinds_of_cores_are_words_of_a_hybrid(tmp_path):
    machine = describe(grow(tmp_path, **EXPERTS["8 strong and 16 weak cores"].tree))
    assert machine.facts["core_kinds"].value == {"core": "0-7", "atom": "8-23"}
    assert (
        cpu_text(place(machine, "core", "all")) == "0-7"
        and cpu_text(place(machine, "atom", "all")) == "8-23"
    )
    assert powers(machine, "atom") == (1, 2, 4, 8, 16)
    assert machine.warnings[-1].startswith("cores of 2 kinds (core, atom)")
