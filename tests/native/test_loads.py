"""Runs beside a load, from Python. check/beside.c and check/loads.c test the library's side."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import BadArgument, Unsupported
from kvbench.native import Arena, Library, Load, Series, Team, library_path, probe_task

SIZE = 1 << 16


@pytest.fixture(scope="module")
def arena():
    with Arena(SIZE) as arena:
        arena.view(np.uint16)[0] = 1
        yield arena


@pytest.fixture(scope="module")
def team():
    with Team(1) as team:
        yield team


@pytest.fixture(scope="module")
def load(arena):
    with Team(2) as other, read_of(other, arena) as task:
        yield Load(other, (task,), ahead=3, pause=0.25)


def read_of(team, arena):
    return probe_task(team.library, "read", team.threads, isa="scalar", to=arena, size=SIZE)


def test_a_load_beside_a_run(arena, team, load):
    """The task's sum counts its passes: one word is 1, all others are 0."""
    with read_of(team, arena) as task:
        before = load.tasks[0].sum()
        times = team.run(task, passes=2, load=load)
        passes = 3 + times.load_passes
        assert (load.tasks[0].sum() - before) % 65536 == passes % 65536
        assert times.load_passes >= 1 and len(times.pass_seconds) == 2
        by_hand = SIZE * times.load_passes / times.load_seconds / 1e9
        assert load.gbps(times) == pytest.approx(by_hand)
        alone = team.run(task)
        assert (alone.load_passes, alone.load_seconds) == (0, 0)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("team", None, "load: its team is None"),
        ("tasks", None, "load: tasks is None"),
        ("tasks", (), "load: count is 0"),
        ("tasks", (None,), "load: a task is None"),
        ("tasks", "x", "load: a task is 'x'"),
        ("ahead", 0, "load: ahead is 0; allowed is 1 to "),
        ("ahead", -1, "load: ahead is -1"),
        ("ahead", 1.5, "load: ahead is 1.5"),
        ("ahead", 1 << 40, "load: ahead is 1099511627776"),
        ("pause", -0.5, "load: pause is -0.5; allowed is 0 to 1000"),
        ("pause", 1001, "load: pause is 1001"),
        ("pause", float("nan"), "load: pause is -?nan"),
        ("pause", float("inf"), "load: pause is inf"),
        ("pause", "x", "load: pause is 'x'"),
        ("pause", 10**400, "load: pause is 1000"),
    ],
)
def test_things_that_are_not_a_load(arena, team, load, field, value, words):
    with read_of(team, arena) as task, pytest.raises(BadArgument, match=words) as raised:
        team.run(task, load=replace(load, **{field: value}))
    assert raised.value.hint and "\n" not in raised.value.args[0]


def test_loads_of_others(arena, team, load):
    """Loads of the run's own team or tasks, with another number of threads, closed, or of another
    library.
    """
    with read_of(team, arena) as task, read_of(team, arena) as more:
        for wrong, words in (
            (replace(load, team=team), "load: team is also that of the run"),
            (
                replace(load, tasks=(*load.tasks, task)),
                r"load: tasks\[1\] is planned for 1 threads",
            ),
        ):
            with pytest.raises(BadArgument, match=words):
                team.run(task, load=wrong)
        with Team(1) as other, pytest.raises(BadArgument, match="is also a task of the load"):
            team.run(more, task, load=Load(other, (task,)))
        series = Series(team.library, [read_of(load.team, arena)], [0], 2)
        series.tasks[0].close()
        with series, pytest.raises(BadArgument, match="task is closed"):
            team.run(task, load=replace(load, tasks=(series,)))
        with pytest.raises(BadArgument, match="team is closed"):
            team.run(task, load=replace(load, team=other))
        with Team(2, library=Library(library_path())) as foreign:
            with pytest.raises(BadArgument, match="load: its team belongs to another library"):
                team.run(task, load=replace(load, team=foreign))


def test_a_library_without_loads(monkeypatch, team):
    monkeypatch.setattr(team.library, "lib", object())
    with pytest.raises(Unsupported, match="too old to run a load beside a run"):
        team.library.refuse_no_loads()
