"""The timed loop, with a team that only writes down what it is asked to run."""

import pytest

from kvbench.machine.disturbances import Disturbed
from kvbench.model import Times
from kvbench.worker.loop import Program, rounds


class Team:
    """One pass takes a second, and the second of three threads works half as long again as the others."""

    def __init__(self):
        self.ran = []

    def run(self, *tasks, passes=1, between=None):
        self.ran.append(("".join(tasks[turn % len(tasks)] for turn in range(passes)), between))
        return Times(float(passes), (1.0,) * passes, (2.0, 3.0, 2.0), (), 5, 7)


def ran(*programs, samples=1, seed=0, **passes):
    """What the team ran, and the samples."""
    team = Team()
    return team, list(rounds(team, programs, samples, 1.0, seed, passes))


def test_an_untimed_pass_over_the_task_before_comes_first():
    """Where `between` is, it is part of the timed run alone."""
    team, found = ran(Program("point", tuple("abcde"), between="sweep"), point=2)
    assert team.ran == [("e", None), ("ab", "sweep")]
    assert [(sample.passes, sample.seconds) for sample in found] == [(2, 2.0)]


def test_without_warmth_there_is_none():
    team, _ = ran(Program("point", tuple("abcde"), between="sweep", warm=False), point=2)
    assert team.ran == [("ab", "sweep")]


def test_samples_walk_on_from_where_the_last_of_any_ended():
    """Three passes over five slices each time; who has one slice alone takes no part."""
    programs = Program("point", tuple("abcde")), Program("twin", tuple("abcde")), Program("core", ("x",))
    team, found = ran(*programs, samples=3, point=3, twin=3, core=2)
    assert sorted(tasks for tasks, _ in team.ran if "x" in tasks) == ["x"] * 3 + ["xx"] * 3
    walked = [tasks for tasks, _ in team.ran if "x" not in tasks]
    assert walked == ["e", "abc", "c", "dea", "a", "bcd", "d", "eab", "b", "cde", "e", "abc"]
    assert len(found) == 9


def test_a_round_has_each_program_once_in_an_order_of_its_own():
    """Of 24 orders that four programs can have, twenty rounds show many; the seed decides which."""
    names = ("point", "twin", "ahead", "core")
    programs, passes = [Program(name, ("x",)) for name in names], dict.fromkeys(names, 1)

    def orders(seed):
        _, found = ran(*programs, samples=20, seed=seed, **passes)
        assert [sample.round for sample in found] == [number for number in range(20) for _ in names]
        return [tuple(sample.program for sample in found[at : at + 4]) for at in range(0, 80, 4)]

    assert all(sorted(order) == sorted(names) for order in orders(1))
    assert len(set(orders(1))) > 10 and len({order[0] for order in orders(1)}) == 4
    assert orders(1) == orders(1) != orders(2)


def test_a_sample_has_what_the_team_and_the_watch_saw():
    """Threads of 2, 3 and 2 seconds: 3 over a mean of 7/3. Counters are as far as they went since the last sample."""
    seen = iter([Disturbed(1.0, 4), Disturbed(1.25, 4), Disturbed(1.25, 9)])
    found = list(rounds(Team(), [Program("point", ("x",))], 2, 1.0, 0, {"point": 1}, lambda: next(seen)))
    assert [sample.skew for sample in found] == pytest.approx([3 / (7 / 3) - 1] * 2)
    assert [(sample.switches, sample.faults) for sample in found] == [(5, 7)] * 2
    assert [(sample.steal, sample.throttled) for sample in found] == [(0.25, 0), (0.0, 5)]
