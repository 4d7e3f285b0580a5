"""Which CPUs threads run on."""

from dataclasses import replace

import pytest

from kvbench.errors import BadArgument, Unsupported
from kvbench.machine import describe
from kvbench.machine.placement import place, powers
from tests.machine import trees
from tests.machine.trees import grow


@pytest.fixture
def two_domains(tmp_path):
    """CPUs 0-3 and 4-7 are the cores of two domains; 8-15 are their siblings."""
    return describe(grow(tmp_path, smt=2, caches=[*trees.SERVER[:3], (3, "Unified", "32M", 4)]))


@pytest.fixture
def two_sockets(tmp_path):
    """Two sockets, each of two nodes, each of two domains, each of two cores."""
    caches = [(2, "Unified", "1M", 1), (3, "Unified", "8M", 2)]
    return describe(
        grow(
            tmp_path,
            sockets=2,
            caches=caches,
            nodes=[list(range(n, n + 4)) for n in range(0, 16, 4)],
        )
    )


ORDERS = {
    None: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    "compact": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    "spread": [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15],
    "domain": [0, 1, 2, 3, 8, 9, 10, 11],
    "node": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    "socket": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    "9,1-2,0": [9, 1, 2, 0],
}


@pytest.mark.parametrize("word", ORDERS)
def test_order_with_siblings_last(word, two_domains):
    order = ORDERS[word]
    for count in range(1, 2 * len(order) + 1):
        assert place(two_domains, word, count) == tuple((order * 2)[:count])
        assert place(two_domains, word, str(count)) == tuple((order * 2)[:count])


@pytest.mark.parametrize("threads", [None, "all"])
@pytest.mark.parametrize(
    ("word", "count"),
    [
        (None, 8),
        ("compact", 8),
        ("spread", 8),
        ("domain", 4),
        ("node", 8),
        ("socket", 8),
        ("9,1-2,0", 4),
        ("0,8", 2),
    ],
)
def test_all_is_one_for_each_core_or_listed_cpu(word, count, threads, two_domains):
    assert len(place(two_domains, word, threads)) == count


def test_spread_deals_over_sockets_then_nodes_then_domains(two_sockets):
    assert place(two_sockets, "spread", None) == (
        0,
        8,
        4,
        12,
        2,
        10,
        6,
        14,
        1,
        9,
        5,
        13,
        3,
        11,
        7,
        15,
    )


@pytest.mark.parametrize(
    ("word", "cpus"), [("domain", (0, 1)), ("node", (0, 1, 2, 3)), ("socket", tuple(range(8)))]
)
def test_one_of_several(word, cpus, two_sockets):
    assert place(two_sockets, word, None) == cpus


def test_neighbouring_siblings_are_last_too(tmp_path):
    machine = describe(grow(tmp_path, caches=[(3, "Unified", "8M", 4)]))
    cpus = tuple(
        replace(cpu, core=cpu.cpu - cpu.cpu % 2, thread=cpu.cpu % 2) for cpu in machine.cpus
    )
    machine = replace(machine, cpus=cpus)
    assert place(machine, "compact", None) == (0, 2, 4, 6)
    assert place(machine, "compact", 6) == (0, 2, 4, 6, 1, 3)
    assert place(machine, "spread", 8) == (0, 4, 2, 6, 1, 5, 3, 7)


def test_a_mask_that_leaves_more_of_the_second_domain(tmp_path):
    caches = [(3, "Unified", "8M", 4)]
    machine = describe(grow(tmp_path, smt=2, caches=caches, allowed="3,4-7,11,12,13"))
    assert place(machine, "domain", None) == (4, 5, 6, 7)
    assert place(machine, None, None) == (3, 4, 5, 6, 7)
    assert place(machine, "compact", 8) == (3, 4, 5, 6, 7, 11, 12, 13)


def test_a_sibling_stands_for_a_core_that_is_not_allowed(tmp_path):
    machine = describe(grow(tmp_path, cores=4, smt=2, allowed="1,4-7"))
    assert place(machine, None, None) == (1, 4, 6, 7)
    assert place(machine, None, 5) == (1, 4, 6, 7, 5)


def test_strong_cores_first(tmp_path):
    assert place(describe(trees.apple(tmp_path)), None, None) == (4, 5, 6, 7, 0, 1, 2, 3)


def test_one_cpu_that_is_not_the_first(tmp_path):
    machine = describe(trees.bare_guest(tmp_path, allowed="1"))
    for word in (None, "compact", "spread", "node", "socket", "1"):
        assert place(machine, word, None) == (1,)


QUOTAS = [
    ("50000 100000", 1),
    ("150000 100000", 1),
    ("200000 100000", 2),
    ("650000 100000", 6),
    ("max 100000", 8),
]


@pytest.mark.parametrize("word", [None, "spread", "0-7"])
@pytest.mark.parametrize(("limit", "count"), QUOTAS)
def test_a_quota_bounds_threads_not_given_by_number(word, limit, count, tmp_path):
    machine = describe(grow(tmp_path, more={"sys/fs/cgroup/cpu.max": limit}))
    assert len(place(machine, word, None)) == len(place(machine, word, "all")) == count
    assert len(place(machine, word, 8)) == 8


@pytest.mark.parametrize(
    "word",
    ["compct", "all", "0-", "-3", "3-1", "1.5", "0;1", "²", "0-x", "9" * 5000, f"0-{'9' * 5000}"]
    + ["", ",", " ", "0,,1", "0,", ",0", "0 1"],
)
def test_unknown_words(word, two_domains):
    with pytest.raises(BadArgument, match=r"--cpus: .* is not known") as caught:
        place(two_domains, word, None)
    assert (
        caught.value.hint
        == "a list such as 0-3,8, or one of: compact, spread, domain, node, socket, node0"
    )


@pytest.mark.parametrize("word", ["0,0", "0-2,2", "0-1,1-2"])
def test_no_cpu_is_named_twice(word, two_domains):
    with pytest.raises(BadArgument, match="--cpus names CPU . twice"):
        place(two_domains, word, None)


def test_cpus_that_cannot_be_had(tmp_path):
    machine = describe(grow(tmp_path, allowed="1-3", offline={6}))
    with pytest.raises(BadArgument, match="CPU 0 is not allowed to this process") as caught:
        place(machine, "0-3", 1)
    assert caught.value.hint == "allowed: 1-3"
    with pytest.raises(BadArgument, match="CPU 6 is not online"):
        place(machine, "1,6", 1)
    with pytest.raises(BadArgument, match="CPU 4 is not allowed"):
        place(machine, "2-99999999999", 1)


@pytest.mark.parametrize(
    "threads", ["0", 0, -1, "two", "1.5", "", "²", "1025", "99999999999", "9" * 5000]
)
def test_threads_are_a_number(threads, two_domains):
    with pytest.raises(BadArgument, match="--threads is") as caught:
        place(two_domains, None, threads)
    assert (
        caught.value.hint
        == "a number from 1 to 1024, or one of: domain, node, socket, all, all+smt"
    )


def test_domains_need_caches(tmp_path):
    machine = describe(trees.bare_guest(tmp_path))
    with pytest.raises(Unsupported, match="no cache is declared") as caught:
        place(machine, "domain", None)
    assert caught.value.hint == "use node or socket"


@pytest.mark.parametrize(
    ("tree", "cpus", "counts"),
    [
        (
            {"sockets": 2, "cores": 64, "caches": [*trees.SERVER[:3], (3, "Unified", "32M", 8)]},
            "spread",
            (1, 2, 4, 8, 16, 32, 64, 128),
        ),
        (
            {"cores": 12, "caches": [*trees.SERVER[:3], (3, "Unified", "16M", 6)]},
            "0-4",
            (1, 2, 4, 5),
        ),
    ],
)
def test_powers_of_other_sets(tree, cpus, counts, tmp_path):
    assert powers(describe(grow(tmp_path, **tree)), cpus) == counts


def test_powers_of_a_hybrid_are_of_strong_cores_then_of_all(tmp_path):
    machine = describe(trees.hybrid(tmp_path))
    assert powers(machine, None) == (1, 2, 4, 8)
    assert powers(machine, "atom") == (1, 2, 4) and place(machine, "atom", "all") == (4, 5, 6, 7)


@pytest.mark.parametrize(
    ("threads", "cpus", "found"),
    [
        ("node", None, (0, 1, 2, 3)),
        ("socket", "compact", tuple(range(8))),
        ("ccx", None, (0, 1)),
        ("domain", "spread", (0, 8)),
        ("all", "node2", (8, 9, 10, 11)),
    ],
)
def test_as_many_as_a_domain_node_or_socket_has(threads, cpus, found, two_sockets):
    assert place(two_sockets, cpus, threads) == found


def test_siblings_too(two_domains):
    assert place(two_domains, None, "all+smt") == tuple(range(16))
    with pytest.raises(BadArgument, match="threads = node already says which CPUs"):
        place(two_domains, "domain", "node")
