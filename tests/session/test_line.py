"""The line: the fastest kernel of each dtype, timed side by side after the planned launches. All
times are planted: the fastest kernels are written here.
"""

from dataclasses import replace

import pytest

import kvbench.runner
import kvbench.session.session
from kvbench.errors import BadArgument
from kvbench.model import Contrast, Member, Point, Record, Sample, Traffic
from kvbench.model.contrast import KERNEL, NoLine, value
from kvbench.session import Options, Session, planned
from kvbench.store import RunDirectory
from tests.cli.test_cli import CPU
from tests.session.test_session import quick  # noqa: F401  (a fixture for all tests)
from tests.session.test_stopping import Clock

AXES = (
    *("context=256,512", "threads=1", "op=decode", "model=falcon-7b", "residency=rotate"),
    *("dtype=f16,i8,q4_0", "layout=head,blockt"),
)
# microseconds of a pass. The workload is that of 512 tokens, which are nearer to 4,096.
TIMES = {
    ("f16", "head"): 40.0,
    ("f16", "blockt"): 44.0,
    ("i8", "head"): 30.0,
    ("i8", "blockt"): 25.0,
    ("q4_0", "head"): 22.0,
    ("q4_0", "blockt"): 29.0,
}
FASTEST = [("f16", "head"), ("i8", "blockt"), ("q4_0", "head")]
MOVED = Traffic(1e6, 1e6, 1e6, 1e6, 1e6, 0, 0, 1)
MEMBER = Member(1, 4096, 1e9, "DRAM", {"huge_bytes": 0, "resident_bytes": 1}, "off", "L2", 0.0)


@pytest.fixture
def ticking(monkeypatch):
    found = Clock()
    monkeypatch.setattr(kvbench.runner.time, "monotonic", found.monotonic)
    return found


def seconds(point):
    if not isinstance(point, Point):
        return 1e-3
    # at 256 tokens another kernel is the fastest, which must not matter
    order = 1 if point.shape.context == 512 else -1
    return TIMES[point.dtype, point.layout] ** order * 1e-6


class Planted:
    """Answers at once, or after `each` seconds of the clock. `cut`: interrupt after that many
    visits. `fail`: kernels whose visits fail. `torn`: layouts stay an open question.
    """

    def __init__(self, cut=None, fail=lambda *_: False, torn=False, clock=None, each=10):
        self.cut, self.fail, self.torn, self.clock, self.each = cut, fail, torn, clock, each

    def __call__(self, job):
        for point in job.points:
            if self.clock:
                self.clock.now += self.each
            if self.cut is not None:
                if not self.cut:
                    raise KeyboardInterrupt
                self.cut -= 1
            yield self.record(job, point)

    def record(self, job, point):
        if self.fail(job.launch, point):
            return Record(job.launch, point, (), {}, {}, error="it is off by 9")
        programs, members = {"point": seconds(point)}, {}
        if isinstance(point, Contrast):
            programs = {value(each, point.factor): seconds(each) for each in point.points}
            members = {each.dtype: MEMBER for each in point.points}
        elif isinstance(point, Point):
            programs |= {"twin": 2e-5, "twin_ahead": 2e-5, "core": 1e-5, "memory": 1e-5}
        noise = 1 + 0.001 * job.launch
        if self.torn and isinstance(point, Contrast) and point.factor == "layout":
            # the second layout is now faster, now slower
            one, other = programs
            programs[other] = programs[one] * (1 + 0.06 * (-1) ** job.launch)
        samples = tuple(
            Sample(name, n, 1, each * noise, (), 0.0, 0, 0)
            for n in range(job.plan.samples)
            for name, each in programs.items()
        )
        memory = {"huge_bytes": 0, "resident_bytes": 1}
        far = getattr(point, "residency", "rotate") == "rotate"
        sizes = {"slices": 1, "slice_bytes": 4096, "footprint": 1e9 if far else 4096}
        facts = {"steps": 1, "part": job.part, **sizes}
        traffic = dict.fromkeys(programs, MOVED)
        return Record(job.launch, point, samples, traffic, memory, members=members, **facts)


def options(launches=3, suite="smoke", axes=AXES, **facts):
    return Options(suite, axes, launches=launches, cpus=CPU, pages="base", **facts)


def measured(path, executor=None, **facts):
    with Session.begin(options(**facts), path, execute=executor or Planted()) as session:
        list(session.records())
        session.finish()
    return RunDirectory.open(path)


def resumed(path, executor=None, **asked):
    with Session.resume(path, asked, execute=executor or Planted()) as session:
        list(session.records())
    return RunDirectory.open(path)


def visits(run):
    """Launches of the line, and launches of other points by number of visits."""
    line = [record.launch for record in run.records if record.point == run.manifest.line]
    others = [record.launch for record in run.records if record.point != run.manifest.line]
    return line, {launch: others.count(launch) for launch in others}


def test_the_fastest_of_each_dtype_follow_in_as_many_launches(tmp_path):
    run = measured(tmp_path / "run")
    line = run.manifest.line
    assert line.factor == KERNEL and not run.manifest.no_line
    assert sorted((point.dtype, point.layout) for point in line.points) == FASTEST
    assert {point.shape.context for point in line.points} == {512}
    of_line, others = visits(run)
    assert of_line == [3, 4, 5]
    assert others == dict.fromkeys(range(3), len(run.manifest.plan.points))
    assert run.manifest.most_launches == 6
    assert run.manifest.named()[line.name] == line


def test_the_plan_does_not_repeat_its_questions(tmp_path):
    """The same points have their contrasts if there is no line; one dtype is no question."""
    sweep, seen, _ = planned(options(), options().kernels)
    assert {point.dtype for point in sweep.line} == {"f16", "i8", "q4_0"} and seen.line > 0
    assert {each.factor for each in sweep.contrasts} == {"layout"}
    # on data that stays in L2 there is no line, and the dtypes are asked for as ever
    hot = tuple(axis.replace("rotate", "hot") for axis in AXES)
    sweep, seen, _ = planned(options(axes=hot), options().kernels)
    assert not sweep.line and seen.line == 0
    assert "dtype" in {each.factor for each in sweep.contrasts}


@pytest.mark.parametrize("only", ["*.i8.*", "*hot*"])
def test_one_dtype_has_no_line(tmp_path, only):
    axes = AXES if only == "*.i8.*" else tuple(axis.replace("rotate", "hot") for axis in AXES)
    run = measured(tmp_path / "run", only=(only,), axes=axes)
    assert run.manifest.line is None and run.manifest.no_line == NoLine.FEW
    assert visits(run)[0] == [] and run.manifest.most_launches == 3


def test_a_suite_without_contrasts_has_none(tmp_path):
    (tmp_path / "x.toml").write_text('question = "?"\ncontrasts = false\nsamples = 2')
    run = measured(tmp_path / "run", suite=str(tmp_path / "x.toml"))
    assert run.manifest.no_line == NoLine.ALONE and set(visits(run)[1]) == {0, 1, 2}


def test_it_must_fit_memory(tmp_path, monkeypatch):
    with Session.begin(options(), tmp_path / "run", execute=Planted()) as session:
        points = session.directory.manifest.plan.points
        needed = sum(
            session.needs[p].arena
            for p in points
            if isinstance(p, Point) and p.shape.context == 512 and (p.dtype, p.layout) in FASTEST
        )
        monkeypatch.setattr(kvbench.session.session, "available_memory", lambda: 4 * needed - 1)
        list(session.records())
        assert session.directory.manifest.no_line == NoLine.LARGE


def test_killed_anywhere_it_loses_nothing(tmp_path):
    """The line is chosen once: later records do not change it."""
    whole = measured(tmp_path / "whole")
    total = len(whole.records)
    planned = 3 * len(whole.manifest.plan.points)
    for cut in (0, 1, planned - 1, planned, planned + 1, total - 1):
        path = tmp_path / str(cut)
        with Session.begin(options(), path, execute=Planted(cut)) as session:
            with pytest.raises(KeyboardInterrupt):
                list(session.records())
        run = resumed(path)
        assert run.manifest.line.points == whole.manifest.line.points
        assert sorted((r.launch, r.point.name) for r in run.records) == sorted(
            (r.launch, r.point.name) for r in whole.records
        )


def test_the_choice_stays(tmp_path, monkeypatch):
    """Even if other kernels are the fastest after more launches."""
    before = measured(tmp_path / "run").manifest.line
    turned = {key: 100 - each for key, each in TIMES.items()}
    monkeypatch.setattr("tests.session.test_line.TIMES", turned)
    run = resumed(tmp_path / "run", launches=7)
    assert run.manifest.line == before
    of_line, others = visits(run)
    assert of_line == [3, 4, 5, 7, 8, 9, 10]
    assert others == dict.fromkeys(range(7), len(run.manifest.plan.points))


def test_no_fewer_launches_than_have_begun(tmp_path):
    run = measured(tmp_path / "run")
    assert max(visits(run)[0]) == 5
    with pytest.raises(BadArgument, match="already begun 3"):
        Session.resume(tmp_path / "run", {"launches": 2})
    assert visits(resumed(tmp_path / "run", launches=4))[0] == [3, 4, 5, 6]


def test_a_kernel_that_fails_is_not_chosen(tmp_path):
    """A kernel that is wrong in every launch has no time; the next one of its dtype replaces it."""
    wrong = Planted(
        fail=lambda launch, p: isinstance(p, Point) and (p.dtype, p.layout) == FASTEST[1]
    )
    run = measured(tmp_path / "run", wrong)
    assert ("i8", "head") in [(point.dtype, point.layout) for point in run.manifest.line.points]


def test_a_line_that_fails_ends_the_run_as_planned(tmp_path):
    failing = Planted(fail=lambda launch, point: getattr(point, "factor", "") == KERNEL)
    run = measured(tmp_path / "run", failing)
    assert visits(run)[0] == [3, 4, 5]
    assert all(record.error for record in run.records if record.launch > 2)


def test_the_remaining_work_counts_it(tmp_path):
    """The weights of all visits add up to what is left at the beginning, and to nothing at the
    end.
    """
    with Session.begin(options(), tmp_path / "run", execute=Planted()) as session:
        whole = session.left()
        done = sum(session.weight(record.point) for record in session.records())
        assert done == pytest.approx(whole)
        assert session.added == 0
    with Session.resume(tmp_path / "run", execute=Planted()) as session:
        assert session.left() == pytest.approx(0, abs=1e-9 * whole)
        assert not list(session.records())


def test_a_manifest_has_its_line_and_names_its_own_points_alone(tmp_path):
    run = measured(tmp_path / "run")
    other = replace(run.manifest.line.points[0], dtype="f32")
    strange = replace(run.manifest, line=Contrast(KERNEL, (other,)))
    with pytest.raises(BadArgument, match="is not in plan.points"):
        RunDirectory.create(tmp_path / "other", strange)


def test_open_questions_are_visited_beside_it(tmp_path):
    """In launches that have the line anyway; and the same after any visit."""
    asked = {"launches": 7, "until_decided": True}
    whole = measured(tmp_path / "whole", Planted(torn=True), **asked)
    line, others = visits(whole)
    assert line == list(range(7, 14)) and set(others) == set(range(14))
    assert {others[launch] for launch in range(7, 14)} == {1}
    (added,) = {
        record.point.factor
        for record in whole.records
        if record.launch > 6 and record.point != whole.manifest.line
    }
    assert added == "layout"
    total = len(whole.records)
    for cut in (total - 14, total - 13, total - 1):
        path = tmp_path / str(cut)
        with Session.begin(options(**asked), path, execute=Planted(cut, torn=True)) as session:
            with pytest.raises(KeyboardInterrupt):
                list(session.records())
        run = resumed(path, Planted(torn=True))
        assert {(r.launch, r.point.name) for r in run.records} == {
            (r.launch, r.point.name) for r in whole.records
        }


@pytest.mark.parametrize(("limit", "some"), [(100, False), (100_000, True)])
def test_open_questions_take_no_time_of_it(tmp_path, ticking, limit, some):
    """All its launches are made, however long they take; the suite's seconds are for open
    questions.
    """
    (tmp_path / "x.toml").write_text(f'question = "?"\nuntil_decided = {limit}\nsamples = 2')
    asked = {"launches": 7, "until_decided": True, "suite": str(tmp_path / "x.toml")}
    run = measured(tmp_path / "run", Planted(torn=True, clock=ticking), **asked)
    line, others = visits(run)
    assert line == list(range(7, 14))
    assert (len(others) > 7) == some


def test_a_budget_ends_it_too(tmp_path, ticking):
    """There is time for all planned visits and two more; the third would be the line's."""
    with Session.begin(options(), tmp_path / "first", execute=Planted()) as session:
        count = 3 * len(session.directory.manifest.plan.points)
    budget = 10.0 * (count + 2)
    run = measured(tmp_path / "run", Planted(clock=ticking), budget=budget)
    line, others = visits(run)
    assert sum(others.values()) == count
    assert line == [] or ticking.now <= budget + 10
    assert len(line) < 3
