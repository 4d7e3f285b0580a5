"""A sweep's course without measuring: a made-up executor stands for the worker processes."""

import json
import os
import shutil
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from statistics import median

import pytest

import kvbench.runner
import kvbench.session.session
from kvbench.analysis.differs.questions import open_questions
from kvbench.errors import BadArgument, NotComparable
from kvbench.history.reading import summarized
from kvbench.model import Contrast, Point, Record, Sample, Traffic
from kvbench.model.contrast import value
from kvbench.native import library_path
from kvbench.report.course import ending, heading
from kvbench.report.words.sentences import gaps
from kvbench.session import Options, Session, planned
from kvbench.store import RunDirectory
from kvbench.store.summary import read_summary

CPU = str(min(os.sched_getaffinity(0)))
AXES = (
    "context=64,128",
    "threads=1",
    "dtype=f16",
    "layout=head",
    "op=decode",
    "model=falcon-7b",
    "residency=hot",
)
MOVED = Traffic(1e6, 1e6, 1e6, 1e6, 1e6, 0, 0, 1)


class Played:
    """Answers for every point at once. `swing`: by how much the launches differ."""

    def __init__(self, swing=0.0, seconds=0.0, clock=None, stop_after=None):
        self.swing, self.seconds, self.clock, self.left = swing, seconds, clock, stop_after
        self.launches = []

    def __call__(self, job):
        self.launches.append(job.launch)
        for point in job.points:
            if self.left is not None:
                if not self.left:
                    raise KeyboardInterrupt
                self.left -= 1
            if self.clock:
                self.clock.now += Fraction(self.seconds) / len(job.points)
            programs = ("point",)
            if isinstance(point, Point):
                programs = (
                    "point",
                    *(
                        ("twin", "twin_ahead", "core")
                        if point.op == "decode"
                        else ("copy", "copy_nt")
                    ),
                )
            if isinstance(point, Contrast):
                programs = tuple(value(each, point.factor) for each in point.points)
            taken = 1e-3 * (1 + self.swing * (-1) ** job.launch)
            samples = tuple(
                Sample(name, n, 1, taken, (), 0.0, 0, 0)
                for n in range(job.plan.samples)
                for name in programs
            )
            traffic = dict.fromkeys(programs, MOVED)
            memory = {"huge_bytes": 0, "resident_bytes": 1}
            yield Record(job.launch, point, samples, traffic, memory, 1, 1, 4096, part=job.part)


class Clock:
    now = Fraction(0)

    def monotonic(self):
        return float(self.now)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The preflight looks at the machine for two seconds; it has tests of its own."""
    monkeypatch.setattr(kvbench.session.session, "preflight", lambda *_: ())


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(kvbench.runner.time, "monotonic", found.monotonic)
    return found


def options(**facts):
    return Options("smoke", AXES, launches=2, cpus=CPU, **facts)


def begun(path, played, **facts):
    return Session.begin(options(**facts), path / "run", execute=played)


def test_every_point_once_in_every_launch(tmp_path):
    with begun(tmp_path, Played()) as session:
        seen = list(session.records())
        assert session.finish()
    points = session.directory.manifest.plan.points
    assert sorted((r.launch, r.point.name) for r in seen) == sorted(
        (n, p.name) for n in (0, 1) for p in points
    )
    assert {r.run for r in seen} == {session.directory.manifest.run}
    with RunDirectory.open(tmp_path / "run") as kept:
        assert kept.records == seen
        assert kept.machine()["ceilings"] and kept.machine()["run"] == kept.manifest.run
    assert read_summary(tmp_path / "run") == summarized(tmp_path / "run")


def test_each_record_is_kept_before_the_next_is_asked_for(tmp_path):
    with begun(tmp_path, Played()) as session:
        for number, _ in enumerate(session.records(), 1):
            assert (tmp_path / "run" / "journal.jsonl").read_text().count("\n") == number


def test_interrupted_and_resumed(tmp_path):
    """After any number of visits."""
    with begun(tmp_path, Played()) as whole:
        total = sum(1 for _ in whole.records())
    for cut in range(total):
        path = tmp_path / str(cut)
        with Session.begin(options(), path, execute=Played(stop_after=cut)) as session:
            with pytest.raises(KeyboardInterrupt):
                list(session.records())
            session.finish()
        with Session.resume(path, execute=Played()) as session:
            assert len(session.done) == cut
            assert len(list(session.records())) == total - cut
            assert session.finish()


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"samples": 5}, "samples"), ({"seed": 9}, "seed"), ({"suite": "quick"}, "suite")],
)
def test_a_run_is_resumed_as_it_was_begun(tmp_path, asked, said):
    with begun(tmp_path, Played(stop_after=0)):
        pass
    with pytest.raises(BadArgument, match=f"begun with {said}"):
        Session.resume(tmp_path / "run", asked)
    with Session.resume(tmp_path / "run", {"launches": 2, "budget": 60.0}) as session:
        assert session.options.budget == 60.0


def test_launches_may_be_asked_for_anew(tmp_path):
    """More of them, or fewer of those that have not begun: the manifest then says so."""
    with begun(tmp_path, Played()) as session:
        points, seconds = (
            len(list(session.records())) // 2,
            session.directory.manifest.forecast["seconds"],
        )
    with Session.resume(tmp_path / "run", {"launches": 4}, execute=Played()) as session:
        assert {record.launch for record in session.records()} == {2, 3}
    kept = RunDirectory.open(tmp_path / "run")
    assert (
        len(kept.records) == 4 * points
        and kept.manifest.plan.launches == kept.manifest.options["launches"] == 4
    )
    assert kept.manifest.forecast["seconds"] == pytest.approx(2 * seconds)
    with pytest.raises(BadArgument, match="launches is 3, but .* has already begun 4"):
        Session.resume(tmp_path / "run", {"launches": 3})
    assert RunDirectory.open(tmp_path / "run").manifest == kept.manifest


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("machine", "the machine changed"),
        ("build", "kvbench, its library, its plug-in or a peer"),
        ("suite", "the suite"),
        ("environment", "set-up"),
    ],
)
def test_what_has_changed_is_not_continued(tmp_path, name, said):
    with begun(tmp_path, Played()):
        pass
    path = tmp_path / "run" / "manifest.json"
    facts = json.loads(path.read_text())
    facts["identity"][name] = "another"
    path.write_text(json.dumps(facts))
    with pytest.raises(NotComparable, match=said) as caught:
        Session.resume(tmp_path / "run")
    assert caught.value.exit_code == 6


@pytest.mark.parametrize("when", [0, 1])
def test_a_library_that_is_replaced_is_not_measured(tmp_path, when):
    """By the next process that would: what was measured before stays, and is gone on with once the
    library is back.
    """
    folder = tmp_path / "library"
    folder.mkdir()
    for file in (library_path(), library_path().with_name("abi.h")):
        shutil.copy(file, folder)
    library = folder / library_path().name

    def replaced(job):
        yield from Played()(job)
        if job.launch == when:
            library.rename(folder / "old.so")  # what is mapped must not change
            library.write_bytes((folder / "old.so").read_bytes() + b"another")

    with begun(tmp_path, replaced, library=str(library)) as session:
        with pytest.raises(NotComparable, match="its library") if when == 0 else nullcontext():
            list(session.records())
        assert session.finish()
        assert {found.launch for found in session.directory.records} == set(range(when + 1))
    with pytest.raises(NotComparable, match="its library"):
        Session.resume(tmp_path / "run")
    (folder / "old.so").replace(library)
    with Session.resume(tmp_path / "run", execute=Played()) as session:
        list(session.records())
        assert {found.launch for found in session.directory.records} == {0, 1}


@pytest.mark.parametrize("suite", ["quick", "smoke"])
def test_a_sweep_begins_with_the_forecast_of_its_plan(tmp_path, suite):
    asked = Options(suite, cpus=CPU)
    seen = planned(asked, asked.kernels)[1]
    with Session.begin(asked, tmp_path / "run", execute=Played()) as session:
        said = list(heading(session.directory.manifest, "run", (), (), session.forecast, None))
    assert f": {seen.text} from start to end and " in said[1]
    assert seen.text.startswith("up to" if suite == "quick" else "about")


# ---- when to stop --------------------------------------------------------------------------------


class Timed(Played):
    """Visits take what is written here, in turn, and a worker is ended where its time is up, as a
    real one.
    """

    def __init__(self, clock, takes):
        super().__init__(clock=clock)
        self.takes = takes

    def __call__(self, job):
        self.launches.append(job.launch)
        for point in job.points:
            end = self.clock.now + Fraction(self.takes(job.launch))
            if job.until is not None and end > job.until:
                self.clock.now = Fraction(job.until)
                return
            self.clock.now = end
            yield next(Played()(replace(job, points=(point,))))


@pytest.mark.parametrize(("budget", "launches"), [(10, 1), (19, 1), (20, 2), (29, 2), (100, 2)])
def test_no_launch_begins_that_would_not_end_in_time(tmp_path, clock, budget, launches):
    """A launch takes 10 s."""
    played = Played(seconds=10.0, clock=clock)
    with begun(tmp_path, played, budget=float(budget)) as session:
        list(session.records())
        assert not session.budget.spent
    assert played.launches == list(range(launches))


@pytest.mark.parametrize(
    ("budget", "each", "made", "ended"),
    [
        (5.0, 2.0, 3, 6.0),  # the third visit begins at 4 s and may end
        (5.0, 2.5, 2, 5.0),  # none begins behind the budget
        (4.0, 3.0, 1, 4.8),  # the second would end at 6 s: it is cut off at 1.2 times the budget
        (1.0, 2.0, 0, 1.2),  # and so is a first one
    ],
)
def test_a_budget_is_a_bound(tmp_path, clock, budget, each, made, ended):
    """Times of visits are exact. What was finished counts, and the run can be gone on with."""
    played = Timed(clock, lambda launch: each)
    with begun(tmp_path, played, budget=budget) as session:
        assert len(list(session.records())) == made
        assert session.budget.spent
        assert clock.now == pytest.approx(ended)
        assert clock.now <= 1.2 * budget + 1e-9
        session.finish()
        assert not any(record.error for record in session.directory.records)
        plan = session.directory.manifest.plan
    assert len(RunDirectory.open(tmp_path / "run").records) == made
    with Session.resume(tmp_path / "run", {"budget": 1e6}, execute=Played()) as session:
        list(session.records())
        assert not session.budget.spent
        assert len(session.directory.records) == 2 * len(plan.points)


def test_a_launch_that_is_slower_than_those_before_is_cut_off(tmp_path, clock):
    """Of the second launch, ten times as slow, some visits are made."""
    with begun(tmp_path, Timed(clock, lambda launch: (1.0, 10.0)[launch]), budget=60.0) as session:
        records = list(session.records())
        points = len(session.directory.manifest.plan.points)
    assert sum(record.launch == 0 for record in records) == points
    assert 0 < sum(record.launch == 1 for record in records) < points
    assert 60 <= clock.now <= 72


def test_added_launches_end_within_the_time_of_their_suite(tmp_path, clock):
    """360 s of quick are for launches that are added; those that are planned are made, whatever
    they take.
    """
    torn_one = torn()

    def executor(job):
        for record in torn_one(job):
            clock.now += 10 if job.launch < 7 else 100
            if job.until is not None and clock.now > job.until:
                clock.now = Fraction(job.until)
                return
            yield record

    with until(tmp_path, executor, suite="quick") as session:
        seen = [(record.launch, clock.now) for record in session.records()]
        assert session.budget.seconds == session.options.asked_suite.until_decided == 360
    planned = max(now for launch, now in seen if launch < 7)
    assert clock.now <= max(planned, 1.2 * 360)


def test_launches_are_added_until_the_points_are_sure(tmp_path, clock):
    """Launches alternate by 2 % around a middle, 1 % to each side: a target of 1.5 % is met as soon
    as there are the six launches whose range holds a median with 95 %; one of 0.5 % never.
    """
    for target, expected in ((0.015, 6), (0.005, 9)):
        played = Played(swing=0.01, seconds=10.0, clock=clock)
        with Session.begin(
            options(target_ci=target, budget=95.0), tmp_path / f"{target}", execute=played
        ) as session:
            list(session.records())
            values = [1.01e-3 if n % 2 == 0 else 0.99e-3 for n in range(expected)]
            far = max(max(values) - median(values), median(values) - min(values)) / median(values)
            assert session.reach() == pytest.approx(far)
        assert len(played.launches) == expected, target


def test_visits_that_failed_have_no_part_in_how_sure_points_are(tmp_path):
    """Those of the second launch took ten times as long, and their answers were wrong."""

    def failing(job):
        for record in Played()(job):
            slow = tuple(replace(sample, seconds=10 * sample.seconds) for sample in record.samples)
            yield (
                replace(record, samples=slow, error="a wrong answer") if job.launch == 1 else record
            )

    with begun(tmp_path, failing) as session:
        assert {bool(record.error) for record in session.records()} == {False, True}
        assert session.reach() == 0.0


def torn(stop_after=None):
    """Decodes of the paged layout are now slower than the other's, now faster; all else takes
    equally long.
    """
    played = Played(stop_after=stop_after)

    def found(job):
        for record in played(job):
            point = record.point
            own = (
                {value(each, point.factor): each for each in point.points}
                if isinstance(point, Contrast)
                else {}
            )
            differs = {
                s.program: own.get(s.program, point).kernel.startswith("decode.flash.paged")
                for s in record.samples
            }
            samples = (
                replace(s, seconds=s.seconds * (1 + differs[s.program] * 0.06 * (-1) ** job.launch))
                for s in record.samples
            )
            yield replace(record, samples=tuple(samples))

    return found


def until(path, executor, **facts):
    axes = (
        *(axis for axis in AXES if axis.split("=")[0] not in ("layout", "op", "context")),
        "layout=head,paged",
    )
    asked = {"launches": 7, "until_decided": True} | facts
    suite = asked.pop("suite", "smoke")
    return Session.begin(
        Options(suite, (*axes, "op=decode,append", "context=64"), cpus=CPU, **asked),
        path,
        execute=executor,
    )


def visits_by_launch(session):
    found = {}
    for record in session.directory.records:
        found.setdefault(record.launch, set()).add(record.point.kernel)
    return found


def test_launches_are_added_for_what_is_open_alone(tmp_path):
    """Between decodes of two layouts; and what is left open is said, with what it would take."""
    with until(tmp_path / "run", torn()) as session:
        list(session.records())
        seen = visits_by_launch(session)
        (left,) = open_questions(session.directory.records, session.machine, 14)
        run = session.run()
    found = run.findings()
    assert found.open == (left,)
    told = " ".join(" ".join(ending(run.manifest, "run", run.records, found.open)).split())
    texts = told, " ".join(gaps(found, run.manifest))
    assert all(left.question in text and f"about {left.needs} launches" in text for text in texts)
    assert sorted(seen) == list(range(14))
    assert all(len(seen[n]) > 4 for n in range(7))
    (visit,) = left.points
    assert {frozenset(seen[n]) for n in range(7, 14)} == {frozenset([visit.split("/")[0]])}
    assert visit.startswith("contrast.layout.") and "/2/decode.flash." in visit
    assert left.launches == 14 < left.needs and left.low < 1 < left.high


def test_no_launch_is_added_where_nothing_is_open(tmp_path):
    for name, executor, facts in (
        ("alike", Played(), {}),
        ("not asked", torn(), {"until_decided": False}),
    ):
        with until(tmp_path / name, executor, **facts) as session:
            list(session.records())
            assert sorted(visits_by_launch(session)) == list(range(7)), name
            assert (session.directory.manifest.most_launches == 14) == (name == "alike")


def test_added_launches_are_resumed(tmp_path):
    """After any number of their visits, with the points that the launch has begun with."""
    with until(tmp_path / "whole", torn()) as session:
        records = list(session.records())
        whole, planned = visits_by_launch(session), sum(record.launch < 7 for record in records)
    for cut in (planned, planned + 1, planned + 4, planned + 5):
        path = tmp_path / str(cut)
        with until(path, torn(stop_after=cut)) as session, pytest.raises(KeyboardInterrupt):
            list(session.records())
        with Session.resume(path, execute=torn()) as session:
            assert len(list(session.records())) == len(records) - cut
            assert visits_by_launch(session) == whole
    # by hand there are as many as somebody says
    with pytest.raises(BadArgument, match="has already begun 14"):
        Session.resume(path, {"launches": 7})


# ---- what is measured, and where -----------------------------------------------------------------


def test_options_reach_the_plan(tmp_path):
    asked = {
        "samples": 7,
        "sample_time": 0.5,
        "seed": 11,
        "pages": "base",
        "isa": "scalar",
        "only": ("*ctx128*",),
    }
    with begun(tmp_path, Played(), **asked) as session:
        plan = session.directory.manifest.plan
    assert [p.shape.context for p in plan.points if isinstance(p, Point)] == [128]
    assert (plan.samples, plan.sample_time, plan.seed) == (7, 0.5, 11)
    assert {p.pages for p in plan.points} == {"base"} and {p.isa for p in plan.points} == {"scalar"}
    assert {p.cpus for p in plan.points} == {(int(CPU),)}


def test_the_command_is_recorded_as_it_can_be_printed(tmp_path):
    """A path need not be text."""
    with Session.begin(options(), tmp_path / "run", "kvbench sweep --out '\udcff\x1b'", Played()):
        assert (
            RunDirectory.open(tmp_path / "run").manifest.command
            == r"kvbench sweep --out '\udcff\x1b'"
        )


def test_a_run_without_a_place_goes_below_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Session.begin(options(), execute=Played()) as session:
        assert (
            session.directory.path.parent.name == "runs"
            and session.directory.path.name.startswith("smoke-20")
        )


def test_the_library_function(tmp_path, monkeypatch):
    monkeypatch.setattr("kvbench.runner.launch", Played())
    seen = []
    facts = {"axes": AXES, "launches": 2, "cpus": CPU}
    found = kvbench.sweep("smoke", out=tmp_path / "run", progress=seen.append, **facts)
    assert len(found.records) == len(seen) > 0
    assert set(found.frame("points")["context"]) == {64, 128}
    assert len(found.frame("samples")) == sum(len(r.samples) for r in seen)
    again = kvbench.sweep(out=tmp_path / "run", resume=True)
    assert again.records == found.records
    with pytest.raises(BadArgument, match="points, samples"):
        found.frame("nonsense")
