"""kvbench sweep numa on this machine, on a made-up machine of two nodes, and the cells that it
draws.
"""

import pytest

from kvbench.analysis.means.numa import Placed
from kvbench.plan import Site, expand
from kvbench.report.figures.numa import numa
from kvbench.report.words.numa import lines
from kvbench.suite import find
from tests.cli.test_cli import call
from tests.cli.test_exit_codes import played
from tests.machine import trees


@pytest.fixture
def two_nodes(tmp_path):
    from kvbench.machine import describe

    return describe(trees.grow(tmp_path, sockets=2, cores=4))


@pytest.mark.parametrize(
    ("sockets", "line"),
    [
        (1, "NUMA this machine has one node, so all memory is local: nothing to compare"),
        (2, "threads interleave node0 node1 local"),
    ],
)
def test_a_sweep_ends_with_what_other_nodes_cost(sockets, line, tmp_path, monkeypatch, capsys):
    played(monkeypatch, tmp_path)
    trees.grow(tmp_path / "tree", sockets=sockets, cores=4)
    monkeypatch.setenv("KVBENCH_ROOT", str(tmp_path / "tree"))
    assert call("sweep", "numa", "--out", str(tmp_path / "run")) == 0
    assert line.split() in [each.split() for each in capsys.readouterr().out.splitlines()]


def test_every_node_with_every_memory_then_all_threads(two_nodes):
    found = expand(find("numa"), Site(two_nodes, 64 << 30, "scalar", pages=("thp",)))
    assert {(point.cpus, point.memory) for point in found.points} == {
        *(((0, 1, 2, 3), memory) for memory in ("node0", "node1", "interleave")),
        *(((4, 5, 6, 7), memory) for memory in ("node0", "node1", "interleave")),
        *((tuple(range(8)), memory) for memory in ("local", "interleave")),
    }
    sets = [each for each in found.contrasts if each.factor == "memory"]
    assert sets and all(
        len({point.memory for point in each.points}) == len(each.points) for each in sets
    )


def test_the_memory_of_a_point_is_part_of_its_name_where_it_is_not_local(two_nodes):
    names = [
        point.name
        for point in expand(
            find("numa"), Site(two_nodes, 64 << 30, "scalar", pages=("thp",))
        ).points
    ]
    assert sum(".memoryinterleave" in name for name in names) == 3
    assert sum(".memory" in name for name in names) == len(names) - 1


def test_what_the_table_and_the_figure_show():
    cells = [
        Placed("node0", "node0", 4, 30.0, 29.0, 31.0, 32.0),
        Placed("node0", "node1", 4, 9.5, 9.0, 10.0, None),
    ]
    assert lines(cells)[2:] == ["  threads    node0    node1", "    node0  30 (32)  9.5 (-)"]

    class Found:
        placed = tuple(cells)

    figure = numa(Found, None)
    drawn = [text.get_text() for axes in figure.canvas().axes for text in axes.texts]
    assert drawn == ["32", "30", "9.5"]
    assert list(figure.table.columns) == [
        "threads",
        "memory",
        "count",
        "gbps",
        "low",
        "high",
        "read",
    ]
