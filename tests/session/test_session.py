"""The course of a sweep without measuring: a made-up executor replaces the worker processes."""

import json
import shutil
from contextlib import nullcontext
from fractions import Fraction

import pytest

import kvbench.runner
import kvbench.session.session
from kvbench.errors import BadArgument, NotComparable
from kvbench.history.reading import summarized
from kvbench.model import Contrast, Point, Record, Sample, Traffic
from kvbench.model.contrast import value
from kvbench.native import library_path
from kvbench.report.course import heading
from kvbench.session import Options, Session, planned
from kvbench.store import RunDirectory
from kvbench.store.summary import read_summary
from tests.cli.test_cli import CPU

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
    """Answers for every point at once. `swing`: by how much launches differ."""

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
            sizes = {"steps": 1, "slices": 1, "slice_bytes": 4096, "footprint": 1e6}
            yield Record(job.launch, point, samples, traffic, memory, part=job.part, **sizes)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Skip the preflight, which takes two seconds and has its own tests."""
    monkeypatch.setattr(kvbench.session.session, "preflight", lambda *_: ())


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
    """More launches, or fewer if they have not begun: the manifest follows."""
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
    """The next process refuses it. Earlier records stay, and the run continues once the library is
    back.
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
    """A path need not be valid text."""
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
    assert kvbench.sweep(out=tmp_path / "run", resume=True).records == found.records
    with pytest.raises(BadArgument, match="points, samples"):
        found.frame("nonsense")
