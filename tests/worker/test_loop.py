"""The timed loop, with a team that only records what it runs."""

import pytest

from kvbench.machine.allowance import Disturbed
from kvbench.model import Times
from kvbench.worker import loop
from kvbench.worker.loop import COLD, Program, rounds


class Team:
    """A pass takes a second; the second of three threads works half as long again as the others."""

    def __init__(self):
        self.ran = []

    def run(self, *tasks, passes=1, between=None):
        self.ran.append(("".join(tasks[turn % len(tasks)] for turn in range(passes)), between))
        return Times(float(passes), (1.0,) * passes, (2.0, 3.0, 2.0), (), 5, 7)


def ran(*programs, samples=1, seed=0, **passes):
    """What a team ran, and the samples. Programs: name, tasks and other fields."""
    team = Team()
    own = [Program(name, team, tuple(tasks), **more) for name, tasks, more in programs]
    return team, list(rounds(own, samples, 1.0, seed, passes))


def test_an_untimed_pass_over_the_task_before_comes_first():
    """`between` runs only in the timed run."""
    team, found = ran(("point", "abcde", {"between": "sweep"}), point=2)
    assert team.ran == [("e", None), ("ab", "sweep")]
    assert [(sample.passes, sample.seconds) for sample in found] == [(2, 2.0)]


def test_without_warmth_there_is_none():
    team, _ = ran(("point", "abcde", {"between": "sweep", "warm": False}), point=2)
    assert team.ran == [("ab", "sweep")]


def test_samples_walk_on_from_where_the_last_of_any_ended():
    """Three passes over five slices each time; a program with one slice takes no part."""
    programs = ("point", "abcde", {}), ("twin", "abcde", {}), ("core", "x", {})
    team, found = ran(*programs, samples=3, point=3, twin=3, core=2)
    assert sorted(tasks for tasks, _ in team.ran if "x" in tasks) == ["x"] * 3 + ["xx"] * 3
    walked = [tasks for tasks, _ in team.ran if "x" not in tasks]
    assert walked == ["e", "abc", "c", "dea", "a", "bcd", "d", "eab", "b", "cde", "e", "abc"]
    assert len(found) == 9


def test_each_memory_is_walked_by_itself():
    """And by its own team, if a round has programs of several teams."""
    teams = Team(), Team()
    programs = [
        Program(f"{place}", team, tuple("abc"), memory=place) for place, team in enumerate(teams)
    ]
    list(rounds(programs, 3, 1.0, 0, {"0": 2, "1": 1}))
    assert [[tasks for tasks, _ in team.ran] for team in teams] == [
        ["c", "ab", "b", "ca", "a", "bc"], ["c", "a", "a", "b", "b", "c"],
    ]  # fmt: skip


def test_a_round_has_each_program_once_in_an_order_of_its_own():
    """Twenty rounds show many of the 24 orders of four programs; the seed decides which."""
    names = ("point", "twin", "ahead", "core")
    programs, passes = [(name, "x", {}) for name in names], dict.fromkeys(names, 1)

    def orders(seed):
        _, found = ran(*programs, samples=20, seed=seed, **passes)
        assert [sample.round for sample in found] == [number for number in range(20) for _ in names]
        return [tuple(sample.program for sample in found[at : at + 4]) for at in range(0, 80, 4)]

    assert all(sorted(order) == sorted(names) for order in orders(1))
    assert len(set(orders(1))) > 10 and len({order[0] for order in orders(1)}) == 4
    assert orders(1) == orders(1) != orders(2)


def test_a_sample_has_what_the_team_and_the_watch_saw():
    """Threads of 2, 3 and 2 seconds: 3 over a mean of 7/3. Counters grow since the last sample."""
    seen = iter([Disturbed(1.0, 4), Disturbed(1.25, 4), Disturbed(1.25, 9)])
    found = list(
        rounds([Program("point", Team(), ("x",))], 2, 1.0, 0, {"point": 1}, lambda: next(seen))
    )
    assert [sample.skew for sample in found] == pytest.approx([3 / (7 / 3) - 1] * 2)
    assert [(sample.switches, sample.faults) for sample in found] == [(5, 7)] * 2
    assert [(sample.steal, sample.throttled) for sample in found] == [(0.25, 0), (0.0, 5)]


def test_others_follow_a_program_wherever_it_is():
    """It is sampled as often as the other."""
    then = Program("beside", Team(), ("y",)), Program("after", Team(), ("z",))
    programs = [
        Program("base", Team(), ("x",), then=then),
        Program("head", Team(), ("x",), every=2),
    ]
    found = [
        sample.program
        for sample in rounds(programs, 20, 1.0, 0, {"base": 1, "head": 1, "beside": 1, "after": 1})
    ]
    assert found.count("base") == 20 and found.count("head") == 10
    assert all(
        found[at + 1 : at + 3] == ["beside", "after"]
        for at, name in enumerate(found)
        if name == "base"
    )


def test_steps_of_a_chase_are_as_many_beside_a_load_however_long_they_take():
    clock = Clock(idle=6e-4, loaded=4e-3)
    programs = [
        Program("loaded", clock, ("loaded",), loads=4, like="idle", sample_time=0.02),
        Program("idle", clock, ("idle",), loads=4, sample_time=0.02),
    ]
    found = list(rounds(programs, 3, 0.005))
    assert {sample.passes for sample in found} == {33}
    assert not any(sample.off for sample in found)
    assert {sample.latency for sample in found} == {(1.5e-4, 1.5e-4), (1e-3, 1e-3)}


def test_first_steps_of_a_chase_do_not_count():
    """Others used the caches meanwhile."""

    class Cold:
        def run(self, *tasks, passes, between):
            steps = (9.0, 8.0, *range(1, passes - COLD + 1))
            return Times(sum(steps), steps, (1.0,), (), 0, 0)

    (found,) = rounds([Program("idle", Cold(), ("x",), loads=2)], 1, 1.0, 0, {"idle": 20})
    assert (found.passes, found.seconds) == (20, 210.0)
    assert found.pass_seconds == tuple(range(1, 21)) and found.latency == (5.5, 10.0)


def test_a_quiet_program_is_worth_its_lower_quartile():
    """A quarter of the passes is faster; the first pass does not count."""

    class Uneven:
        def run(self, *tasks, passes, between):
            return Times(19.0, (9.0, 4.0, 1.0, 3.0, 2.0), (1.0, 3.0), (), 7, 0)

    (found,) = rounds([Program("head", Uneven(), ("x",), quiet=True)], 1, 1.0, 0, {"head": 4})
    assert (found.program, found.round, found.passes, found.seconds) == ("head", 0, 4, 10.0)
    assert found.pass_seconds == (2.0,)
    assert found.switches == 7 and found.skew == pytest.approx(0.5)


def test_quiet_programs_walk_the_slices_on():
    """Slice by slice, whichever program walks; the uncounted pass is over the slice before."""
    one = ("one", "x", {"quiet": True})
    programs = ("two", "abcde", {"quiet": True}), ("seven", "abcde", {"quiet": True}), one
    team, found = ran(*programs, samples=2, two=2, seven=7, one=3)
    walked = [tasks for tasks, _ in team.ran if "x" not in tasks]
    at = 0
    for tasks in walked:
        assert tasks == "".join("abcde"[(at - 1 + turn) % 5] for turn in range(len(tasks)))
        at += len(tasks) - 1
    assert sorted(map(len, walked)) == [3, 3, 8, 8] and at == 18
    assert [tasks for tasks, _ in team.ran if "x" in tasks] == ["xxxx"] * 2
    assert {sample.pass_seconds for sample in found} == {(1.0,)}


# ---- how many passes make a sample ---------------------------------------------------------------


class Clock:
    """A team with a clock: a pass takes the given seconds, times `slow(now)` at its start. A read
    between passes takes `between`.
    """

    def __init__(self, slow=lambda now: 1.0, between=0.0, **seconds):
        self.now, self.slow, self.between, self.seconds = 0.0, slow, between, seconds

    def run(self, *tasks, passes=1, between=None):
        one = self.seconds[tasks[0]] * self.slow(self.now)
        self.now += passes * (one + (self.between if between else 0.0))
        return Times(passes * one, (one,) * passes, (1.0,), (), 0, 0)


def timed(clock, *names, samples=20, between=None):
    programs = [Program(name, clock, (name,) * 3, between) for name in names]
    return list(rounds(programs, samples, 0.005))


@pytest.mark.parametrize("seconds", [1e-6, 3e-6, 0.0008, 0.0033, 0.0049])
def test_samples_of_a_round_are_equally_long(seconds):
    """About as long as was asked for; the shortest pass is a 37th of the longest."""
    found = timed(
        Clock(point=seconds, twin=seconds / 1.4, core=seconds / 37), "point", "twin", "core"
    )
    assert (
        len({sample.sample_time for sample in found}) == 1
        and 2 / 3 <= found[0].sample_time / 0.005 <= 4 / 3
    )
    assert all(
        2 / 3 <= sample.seconds / sample.sample_time <= 4 / 3 and not sample.off for sample in found
    )


def test_if_a_pass_is_long_all_samples_are_long():
    found = timed(Clock(point=0.03, twin=0.02, core=0.0011), "point", "twin", "core")
    assert {sample.program: sample.passes for sample in found} == {
        "point": 1,
        "twin": 2,
        "core": 27,
    }
    assert [sample.sample_time for sample in found] == pytest.approx([0.03] * len(found))


def test_a_busy_moment_spoils_no_count():
    """While passes are counted, one timing in three takes fifty times as long."""
    stalls = iter([50.0, 1.0, 1.0] * 3)
    found = timed(Clock(lambda now: next(stalls, 1.0), point=1e-5), "point")
    assert all(not sample.off for sample in found) and {sample.passes for sample in found} == {500}


@pytest.mark.parametrize("until", [0.002, 0.01, 0.03])
def test_counts_of_a_busy_machine_are_set_again(until):
    """Cores run at a tenth while passes are counted, and for some samples."""
    clock = Clock(lambda now: 10.0 if now < until else 1.0, point=1e-5, twin=7e-6, core=3e-7)
    found = timed(clock, "point", "twin", "core")
    for sample in found:
        assert sample.off or 0.5 <= sample.seconds / sample.sample_time <= 2
    assert all(
        not sample.off and 2 / 3 <= sample.sample_time / 0.005 <= 4 / 3
        for sample in found
        if sample.round >= 3
    )
    assert found[-1].passes * clock.seconds[found[-1].program] == pytest.approx(0.005, rel=0.01)


def test_cores_that_get_slower_have_fewer_passes():
    found = timed(
        Clock(lambda now: 1.0 if now < 0.04 else 10.0, point=1e-5, twin=7e-6), "point", "twin"
    )
    assert any(sample.off for sample in found) and not any(sample.off for sample in found[-10:])


def test_reads_between_passes_count_by_the_wall_clock(monkeypatch):
    """A pass of 1 ms after 19 ms: half of 20 ms is twice the intended time, so a sample is one
    pass.
    """
    clock = Clock(between=0.019, point=0.001, twin=0.0008, core=0.0001)
    monkeypatch.setattr(loop, "perf_counter", lambda: clock.now)
    programs = [Program(name, clock, (name,), "sweep") for name in ("point", "twin")]
    programs += [Program("core", clock, ("core",))]
    found = list(rounds(programs, 3, 0.005))
    told = {sample.program: (sample.passes, pytest.approx(sample.sample_time)) for sample in found}
    assert told == {"point": (1, 0.001), "twin": (1, 0.0008), "core": (50, 0.005)}
    assert not any(sample.off for sample in found)


def test_programs_not_due_in_a_round_are_left_out():
    _, found = ran(("point", "a", {}), ("ahead", "a", {"every": 3}), samples=7, point=1, ahead=1)
    rounds_of = {name: [s.round for s in found if s.program == name] for name in ("point", "ahead")}
    assert rounds_of == {"point": [0, 1, 2, 3, 4, 5, 6], "ahead": [0, 3, 6]}


def test_a_program_may_have_shorter_samples():
    """Passes take 100, 10 and 1 ms: no other program's samples change."""
    clock = Clock(point=0.1, twin=0.01, fma=0.001)
    programs = [Program("point", clock, ("point",)), Program("twin", clock, ("twin",))]
    programs.append(Program("fma", clock, ("fma",), sample_time=0.02))
    found = {sample.program: sample for sample in rounds(programs, 1, 0.4)}
    assert {name: sample.passes for name, sample in found.items()} == {
        "point": 4,
        "twin": 40,
        "fma": 20,
    }
    assert {name: round(sample.sample_time, 9) for name, sample in found.items()} == {
        "point": 0.4,
        "twin": 0.4,
        "fma": 0.02,
    }


def test_longer_samples_are_counted_by_several_passes():
    """The first pass of each run takes twice as long as others."""

    class Waking(Clock):
        def run(self, *tasks, passes=1, between=None):
            return super().run(*tasks, passes=passes + 1, between=between)

    programs = [Program("chase", Waking(chase=6e-4), ("chase",), warm=False, sample_time=0.02)]
    (sample,) = rounds(programs, 1, 0.005)
    assert 25 <= sample.passes <= 33


def test_brief_samples_are_as_long_as_asked_for_where_others_must_be_longer():
    """Passes take 500, 300 and 1 ms; 10 ms are asked for."""
    clock = Clock(point=0.5, decodes=0.3, appends=0.001)
    brief = [Program(name, clock, (name,), brief=True) for name in ("decodes", "appends")]
    found = rounds([Program("point", clock, ("point",)), *brief], 3, 0.01)
    for sample in found:
        passes, meant = {"point": (1, 0.5), "decodes": (1, 0.3), "appends": (10, 0.01)}[
            sample.program
        ]
        assert sample.passes == passes and round(sample.sample_time, 9) == meant
        assert not sample.off


def test_a_program_may_have_as_many_passes_as_another():
    """However long they take; both counts change together, between rounds."""
    slow = {"x": 1.0}
    clock = Clock(lambda now: slow["x"], base=1e-5, head=5e-5)
    programs = [Program("head", clock, ("head",), like="base"), Program("base", clock, ("base",))]
    passes = {}
    for sample in rounds(programs, 20, 0.005):
        passes.setdefault(sample.round, set()).add(sample.passes)
        slow["x"] = 10.0 if sample.round > 8 else 1.0
    assert all(len(counts) == 1 for counts in passes.values())
    assert passes[0] == {500} and passes[19] == {50}
