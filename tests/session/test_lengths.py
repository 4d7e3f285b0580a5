"""A sweep with lengths from a file: they are stored with the run, which can be resumed only with
the same ones.
"""

import shutil

import pytest

from kvbench.errors import BadArgument, NotComparable
from kvbench.session import Options, Session
from kvbench.store import RunDirectory
from tests.session.test_session import AXES, CPU, Played, quick  # noqa: F401

HELD = (7, 64, 30)


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """An interrupted run and its file of lengths, given by a relative name."""
    (tmp_path / "users").write_text("7\n64\n30\n")
    monkeypatch.chdir(tmp_path)
    axes = *AXES, "batch=3", "lengths=even,ragged:1,users"
    options = Options("smoke", axes, launches=1, cpus=CPU)
    with (
        pytest.raises(KeyboardInterrupt),
        Session.begin(options, "run", execute=Played(stop_after=2)) as session,
    ):
        list(session.records())
    return tmp_path


def lengths_of(points):
    return {point.shape.held for point in points if hasattr(point, "shape")}


def test_a_run_says_which_lengths_it_measured(begun):
    manifest = RunDirectory.open(begun / "run").manifest
    (begun / "users").unlink()
    found = lengths_of(manifest.plan.points)
    assert HELD in found and (64, 64, 64) in found and len(found) == 5
    assert Options.kept(manifest.options, "run").axes[-1].endswith(f",{begun / 'users'}")


def test_it_goes_on_from_another_folder(begun, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("other"))
    with Session.resume(begun / "run", execute=Played()) as session:
        list(session.records())
        assert session.finish()
    assert HELD in lengths_of(record.point for record in RunDirectory.open(begun / "run").records)


def test_it_does_not_go_on_with_other_lengths(begun):
    shutil.copy(begun / "users", begun / "kept")
    (begun / "users").write_text("7\n64\n31\n")
    with pytest.raises(NotComparable, match="the suite changed since the run began"):
        Session.resume("run")
    (begun / "users").unlink()
    with pytest.raises(BadArgument, match="lengths: cannot read .*users: No such file"):
        Session.resume("run")
    (begun / "kept").rename(begun / "users")
    Session.resume("run").close()
