"""A run in the place of another: nothing else there is touched, and no instant to die is a bad one."""

import os
import shutil

import pytest

from kvbench.errors import BadArgument, BadRun, Unwritable
from kvbench.store import RunDirectory, is_vacant, keep
from tests.store.made import failed, manifest, refused, visits
from tests.store.test_survival import dying


@pytest.fixture
def head(tmp_path):
    with RunDirectory.create(tmp_path / "head", manifest(run="head")) as run:
        for record in visits(2):
            run.append(record)
        run.write_machine({"of": "head"})
        run.export()
    return tmp_path / "head"


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_what_else_lies_there_stays(filled, head):
    (filled / "notes.txt").write_text("keep me")
    (filled / "report").mkdir()
    (filled / "report" / "index.html").write_text("mine")
    keep(head, filled)
    assert files(filled) == files(head) | {"notes.txt": b"keep me"}
    assert (filled / "report" / "index.html").read_text() == "mine"
    assert RunDirectory.open(filled).manifest.run == "head"


def test_a_file_that_the_new_run_lacks_goes(filled, head):
    keep(filled, head)
    assert files(head) == files(filled)


def test_a_link_stays_a_link(filled, head, tmp_path):
    (tmp_path / "link").symlink_to(filled)
    keep(head, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and files(filled) == files(head)


def test_here_is_a_place(filled, head, monkeypatch):
    monkeypatch.chdir(filled)
    keep(head, filled.relative_to(filled))
    assert files(filled) == files(head)


@pytest.mark.parametrize("way", ["inside", "around", "same", "link"])
def test_two_that_are_not_apart_are_refused(filled, head, tmp_path, way):
    place = filled
    if way == "inside":
        shutil.move(head, filled / "head")
        head = filled / "head"
    elif way == "around":
        place = head / "base"
        shutil.copytree(filled, place)
    elif way == "same":
        place = head
    else:
        place = tmp_path / "link"
        place.symlink_to(head)
    before = files(place), files(head)
    with pytest.raises(BadArgument) as raised:
        keep(head, place)
    refused(raised.value, str(place), str(head), "apart")
    assert (files(place), files(head)) == before


def test_what_is_no_run_is_not_replaced(head, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "journal.jsonl").write_text("dear diary")
    with pytest.raises(BadRun, match="is no run directory"):
        keep(head, mine)
    assert files(mine) == {"journal.jsonl": b"dear diary"}


def test_what_is_being_written_is_not_replaced(filled, head):
    with RunDirectory.open(filled, write=True) as run:
        with pytest.raises(Unwritable, match="another process"):
            keep(head, filled)
        run.append(failed(9, run.records[0].point))
    keep(head, filled)


@pytest.mark.parametrize("first", [False, True])
def test_killed_at_any_instant(filled, head, first):
    """The old run, the new one, or one line that says what to do; and doing it helps. `first`: there is none before."""
    seen, copy = set(), filled.with_name("copy")
    shutil.copytree(filled, copy)
    if first:
        shutil.rmtree(filled)
    for _ in dying(lambda: keep(head, filled), filled):
        assert first or filled.exists()
        try:
            found = RunDirectory.open(filled)
            assert found.records and {record.run for record in found.records} == {found.manifest.run}
            seen.add(found.manifest.run)
        except BadRun as error:
            seen.add("half" if "bless it once more" in str(error) else "none")
            assert is_vacant(filled)
            refused(error, str(filled))
        keep(head, filled)
        assert files(filled) == files(head)
        shutil.rmtree(filled)
        if not first:
            shutil.copytree(copy, filled)
    old = RunDirectory.open(copy).manifest.run
    assert seen == {"head", "half", "none" if first else old}


def test_a_disk_that_fills_up_leaves_the_old_run(filled, head, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = files(filled)
    with monkeypatch.context() as patch, pytest.raises(Unwritable, match="then bless it again"):
        patch.setattr(os, "fsync", full)
        keep(head, filled)
    assert files(filled) == before
