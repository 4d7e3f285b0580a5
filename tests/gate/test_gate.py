"""A gate from two libraries to its verdict. Most gates are played, so that nothing is really
measured.
"""

import csv
import shutil
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import pytest

from kvbench.errors import BadArgument, Exit
from kvbench.gate import Build, Request, missing
from kvbench.gate.kernels import rivals
from kvbench.gate.stages import Stages, pairs
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    IMPROVEMENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
)
from kvbench.native import Library, library_path
from tests.cli.test_cli import output_of
from tests.faulty import build_plugin
from tests.gate import made_duels
from tests.gate.made_duels import MACHINE, POINTS, SLOW, player, slower

INSTALLED = library_path()
SIDES = [Build(f"build {name}", INSTALLED, INSTALLED.with_name("abi.h"), name) for name in "ab"]


SAME = slower(0.0)


def played(ratio=SAME, seed=1, out=None, budget=240.0, sides=SIDES, execute=None, **asked):
    execute = execute or player(ratio)
    return made_duels.outcome(*sides, Request(seed=seed, **asked), budget, out, execute)[0]


def words(found, pattern=""):
    return {row.verdict for row in found.points if row.name.startswith(pattern)}


def test_one_build_against_itself_is_the_same():
    found = played()
    assert found.verdict == EQUIVALENT and words(found) == {EQUIVALENT}
    assert (found.base, found.head, found.command) == ("build a", "build b", "gate")
    assert not found.missing
    notes = " ".join(found.notes)
    assert "seed 1" in notes and "confirm" not in notes.replace("confirmed", "")


def test_a_slower_kernel_is_a_regression_and_no_other_is():
    found = played(slower(0.1))
    assert found.verdict == REGRESSION
    assert words(found, SLOW) == {REGRESSION}
    assert {row.verdict for row in found.points if not row.name.startswith(SLOW)} == {EQUIVALENT}
    row, *_ = found.points
    assert (
        row.effect == pytest.approx(0.1, abs=0.01) and 0.09 < row.low < row.effect < row.high < 0.11
    )
    assert row.head_gbps < row.base_gbps and "12 fresh launches" in row.note


def test_a_faster_kernel_is_an_improvement():
    found = played(slower(-0.1, "decode."))
    assert found.verdict == IMPROVEMENT and words(found, "decode.") == {IMPROVEMENT}


def test_a_slowdown_shared_by_the_witness_is_the_machine_s():
    found = played(execute=player(slower(0.1), beside=slower(0.1)))
    assert found.verdict == CONTAMINATED and words(found, SLOW) == {CONTAMINATED}


def test_short_names_are_given():
    found, names = made_duels.outcome(*SIDES, Request(seed=1), execute=player())
    assert names.keys() == {row.name for row in found.points}
    assert max(map(len, names.values())) < 46


def test_the_same_file_is_not_measured():
    def refuse(job):
        raise AssertionError("there is nothing to measure")

    one = [replace(side, digest="one") for side in SIDES]
    found = played(sides=one, execute=refuse)
    assert found.verdict == EQUIVALENT and not found.points
    (note,) = found.notes
    assert note.endswith("not measured: base and head are the same library, byte for byte")
    (note,) = played(sides=[replace(side, unbuilt=True) for side in one]).notes
    assert note.endswith("base and head are of the same code, comments aside")
    assert played(sides=one, every=True).points


def test_controls_are_base_on_both_sides():
    """Controls run in the candidates' launches and are drawn from them. If they also become slower,
    nothing is confirmed.
    """
    jobs = []
    found = played(execute=lambda job: (jobs.append(job), player(slower(0.1))(job))[1])
    assert found.verdict == REGRESSION and "control: 3 points in 12 launches" in " ".join(
        found.notes
    )
    confirming = [job for job in jobs if job.plan.controls]
    assert len(confirming) == 12
    for job in confirming:
        assert len(job.plan.controls) == 3 and {*job.plan.controls} < {
            point.name for point in job.points
        }
        assert all(name.startswith(SLOW) for name in job.plan.controls)
        assert not {*job.plan.controls} & {row.name for row in found.points}
    unlike = played(
        execute=lambda job: player(slower(0.1))(replace(job, plan=replace(job.plan, controls=())))
    )
    assert unlike.verdict == CONTAMINATED and "controls alarmed" in " ".join(unlike.notes)


def test_what_fails_is_told():
    def execute(job):
        for record in player()(job):
            broken = record.point.name.startswith(SLOW)
            yield (
                replace(record, samples=(), error="decode.flash is off by 7") if broken else record
            )

    found = played(execute=execute)
    assert words(found, SLOW) == {NOT_COMPARABLE} and found.verdict == INCONCLUSIVE
    assert found.missing and all("is off by 7" in line for line in found.missing)


@pytest.mark.parametrize("old", [(), ("base",), ("head",), ("base", "head")])
def test_points_that_an_older_build_cannot_measure_are_missing(old, tmp_path, monkeypatch):
    """Such a build cannot read memory between passes; all other points are measured."""
    grid = "q_heads = 4\nkv_heads = 2\nhead_dim = 32\ncontext = 96\nbetween = [0, 4096]\n"
    suite = tmp_path / "x.toml"
    suite.write_text(f'question = "?"\n[axes]\n{grid}')
    reads = property(lambda library: library.path.parent.name not in old)
    monkeypatch.setattr(Library, "reads_on", reads)
    asked = Request(suite=str(suite), seed=1)
    found = rivals(*SIDES, asked, tmp_path / "copies")
    assert {point.between for point in found.plan.points} == ({0} if old else {0, 4096})
    assert [line.partition(": ")[2] for line in found.missing] == (
        [f"{' and '.join(old)} cannot read memory between passes"] if old else []
    )


@pytest.mark.parametrize("side", ["base", "head"])
def test_points_of_new_kinds_are_missing_if_a_build_refuses_them(side, tmp_path, monkeypatch):
    """Here a build refuses sinks. Pairs need two kernels that both sides have."""
    suite, real = tmp_path / "x.toml", missing.decode_task
    grid = "q_heads = 4\nkv_heads = 2\nhead_dim = 32\ncontext = 96\n"
    grid += 'dtype = ["f16+q8_0", "f16"]\nsinks = "all"\nv_dim = [0, 64]'
    suite.write_text(f'question = "?"\n[axes]\n{grid}')

    def older(op, cache, *args, sinks=None, **how):
        if sinks is not None and cache.library.path.parent.name == side:
            raise BadArgument("kvb_decode.sink is not built yet", "leave it out")
        return real(op, cache, *args, **how)

    monkeypatch.setattr(missing, "decode_task", older)
    found = rivals(*SIDES, Request(suite=str(suite), seed=1), tmp_path / "copies")
    assert {(p.kv_dtype, p.shape.v_dim, p.shape.sinks) for p in found.plan.points} == set(
        product(("f16+q8_0", "f16"), (0, 64), ("none",))
    )
    assert [line.partition(": ")[2] for line in found.missing] == [
        f"{side} refuses it: kvb_decode.sink is not built yet"
    ] * 4


def test_every_pair_is_kept(tmp_path):
    played(slower(0.1), out=tmp_path / "new")
    with (tmp_path / "new" / "pairs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["stage"] for row in rows} == {"screen", "confirm", "control"}
    assert {int(row["launch"]) for row in rows if row["stage"] == "confirm"} == set(range(12, 24))
    for stage, ratio in (("screen", 1.1), ("control", 1.0)):
        own = [row for row in rows if row["stage"] == stage and row["point"].startswith(SLOW)]
        slow = [float(row["head_s"]) / float(row["base_s"]) for row in own]
        assert sum(slow) / len(slow) == pytest.approx(ratio, abs=0.01)


def test_more_time_is_more_pairs():
    plan = replace(_plan(), launches=12, samples=16, sample_time=0.002)
    few, many = pairs(plan, 60.0), pairs(plan, 240.0)
    assert 6 <= few < many == 16
    assert pairs(plan, 1.0) == 6
    assert pairs(replace(plan, points=()), 60.0) == 16


def _plan():
    from kvbench.model import Plan

    return Plan(POINTS, 12, 16, 0.002, 1)


def test_unclear_points_are_measured_again_while_there_is_time():
    calm, stormy = player(noise=0.001), player(noise=0.3)

    def execute(job):
        noisy = {point.name for point in POINTS[:3]}
        by_name = {r.point.name: r for r in calm(job)} | {
            r.point.name: r for r in stormy(job) if r.point.name in noisy
        }
        return iter(by_name.values())

    measured = Stages(_plan(), MACHINE, 240.0, execute)
    seen = list(measured.measure())
    assert list(dict.fromkeys(stage for stage, _ in seen)) == ["screen", "extend"]
    assert measured.visits == len(seen)
    again = {record.point.name for stage, record in seen if stage == "extend"}
    assert again >= {point.name for point in POINTS[:3]}


class Clocked:
    """Visits take `each` seconds of a clock of their own; a worker ends when its time is up."""

    def __init__(self, monkeypatch, execute, each):
        self.now, self.execute, self.each = 0.0, execute, each
        self.first = None
        monkeypatch.setattr("kvbench.runner.time.monotonic", lambda: self.now)

    def __call__(self, job):
        for record in self.execute(job):
            if job.until is not None and self.now + self.each > job.until:
                self.now = job.until
                return
            self.now += self.each
            yield record


@pytest.mark.parametrize("budget", [20.0, 240.0])
@pytest.mark.parametrize("each", [0.01, 0.5, 100.0])
@pytest.mark.parametrize("ratio", [SAME, slower(0.1, "decode.flash.head"), slower(0.1, "decode.")])
def test_a_budget_is_a_bound(monkeypatch, budget, each, ratio):
    """For visits of any length, and any number of candidates to confirm."""
    clocked = Clocked(monkeypatch, player(ratio), each)
    measured = Stages(_plan(), MACHINE, budget, clocked)
    seen = list(measured.measure())
    assert clocked.now <= 1.2 * budget + 1e-6
    if each <= 0.1 * budget / len(POINTS) / 12:
        assert (
            sum(stage == "screen" for stage, _ in seen) == 12 * len(POINTS)
            and not measured.budget.spent
        )


@pytest.mark.parametrize("each", [0.01, 0.05, 0.2, 0.5])
def test_slower_points_are_confirmed_within_the_budget(monkeypatch, each):
    """About ten points: even if a visit takes 0.5 s, there is time for seven launches of all points
    and seven of the candidates.
    """
    clocked = Clocked(monkeypatch, player(slower(0.1, "decode.flash.head.i8")), each)
    found = played(
        budget=150.0,
        execute=clocked,
        only=[f"decode.flash.head.{name}.*" for name in ("i8", "f16", "bf16")],
    )
    assert clocked.now <= 1.2 * 150
    assert found.verdict == REGRESSION and words(found, SLOW) == {REGRESSION}, found.notes


def test_a_budget_that_ends_it_is_told(monkeypatch):
    """Within the first launch: points that were not visited are missing, and no point is called the
    same.
    """
    clocked = Clocked(monkeypatch, player(), 2.0)
    found = played(budget=30.0, execute=clocked)
    assert clocked.now <= 36 and found.verdict == INCONCLUSIVE
    assert any(
        "the budget of 30 s ended it within the launches of stage screen" in note
        for note in found.notes
    )
    lost = [line for line in found.missing if line.endswith("not measured: the budget ended it")]
    assert len(lost) > 10


def test_candidates_without_time_left_are_told(monkeypatch):
    """Screening uses all of the budget: seven launches of that many visits."""
    points = len(POINTS)
    clocked = Clocked(monkeypatch, player(slower(0.1, "decode.")), 0.9 * 100 / 7 / points)
    measured = Stages(_plan(), MACHINE, 100.0, clocked)
    stages = [stage for stage, _ in measured.measure()]
    assert stages.count("screen") == 7 * points and clocked.now <= 120
    assert "confirm" not in stages or stages.count("confirm") < 7 * points
    assert any("no time was left to confirm" in note for note in measured.notes())


def test_launches_are_numbered_on_and_have_coins_of_their_own():
    jobs = []

    def execute(job):
        jobs.append(job)
        return player(slower(0.2, POINTS[0].name))(job)

    measured = Stages(_plan(), MACHINE, 240.0, execute)
    launches = [record.launch for stage, record in measured.measure() if stage == "confirm"]
    assert set(launches) == set(range(12, 24))
    assert len({(job.plan.seed, job.launch) for job in jobs}) == len(jobs)


def test_a_plug_in_can_be_a_side(tmp_path):
    """Two builds of the documented plug-in. The installed library's kernels are the same under
    both, and are not measured.
    """
    one = '-DLISTED={"decode", "right", "head", "f32", ISA, "for tests", 1, 0, right}'
    paths = [build_plugin(tmp_path / f"{name}.so", one) for name in "ab"]
    sides = [replace(side, library=path) for side, path in zip(SIDES, paths, strict=True)]
    found = played(slower(0.1, "decode.right"), sides=sides)
    assert words(found, "decode.right") == {REGRESSION}
    assert found.verdict == REGRESSION and not words(found, "decode.flash")


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def sides(tmp_path):
    """Options that name two different files of one library."""
    paths = []
    for name in "ab":
        (tmp_path / name).mkdir()
        shutil.copy(INSTALLED.with_name("abi.h"), tmp_path / name)
        paths.append(shutil.copy(INSTALLED, tmp_path / name / "libkvbench.so"))
        paths[-1].open("ab").write(name.encode())
    return ["--base", str(paths[0]), "--head", str(paths[1]), "--seed", "1"]


def test_text_says_what_would_have_been_seen(monkeypatch, capsys, sides):
    monkeypatch.setattr("kvbench.runner.launch", player(noise=0.5))
    said = output_of(capsys, "gate", *sides, code=Exit.UNCLEAR)
    assert said.startswith(INCONCLUSIVE) and "would have been seen" in said


@pytest.mark.parametrize(
    ("share", "pattern", "code", "line", "failed"),
    [
        (
            0.1,
            SLOW,
            Exit.FAILED,
            "all 3 decode.flash.head.i8 caches points are 9.9 % slower (9.7..10.1)",
            [f"{SLOW} caches"],
        ),
        (
            0.025,
            "decode.flash",
            Exit.FAILED,
            "all 40 decode.flash points are 2.5 % slower (2.4..2.5)",
            ["decode.flash.*"],
        ),
        (
            0.012,
            "decode.flash",
            Exit.FINE,
            "all 40 decode.flash points are 1.2 % slower (1.1..1.2): less than the 2%",
            [],
        ),
    ],
)
def test_one_cause_is_one_line_and_one_failure(
    monkeypatch, capsys, sides, tmp_path, share, pattern, code, line, failed
):
    """Even if no single point or narrow family is slower by enough."""
    monkeypatch.setattr("kvbench.runner.launch", player(slower(share, pattern)))
    out = output_of(capsys, "gate", *sides, "--export", f"junit={tmp_path}/gate.xml", code=code)
    assert f"  {line}" in out and "decode.flash.paged" not in out.partition("GB/s")[0]
    assert (f"REGRESSION: {line}" in out.splitlines()[0]) == bool(failed)
    cases = ElementTree.parse(tmp_path / "gate.xml").iter("testcase")
    assert [case.get("name") for case in cases if case.find("failure") is not None] == failed
