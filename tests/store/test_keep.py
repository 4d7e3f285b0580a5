"""Replacing a run by another: other files stay, and a kill at any instant does no harm."""

import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from kvbench.errors import BadArgument, BadRun, Unwritable
from kvbench.store import RunDirectory, keep
from kvbench.store.run import is_vacant
from tests.store.made import manifest, refused, visits
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


def test_other_files_there_stay(filled, head, tmp_path, monkeypatch):
    """A note, a report and a link to the place stay; files that the new run lacks go."""
    (filled / "notes.txt").write_text("keep me")
    (filled / "report").mkdir()
    (filled / "report" / "index.html").write_text("mine")
    (tmp_path / "link").symlink_to(filled)
    shutil.copytree(filled, tmp_path / "old")
    for run, place in (
        (head, tmp_path / "link"),
        (tmp_path / "old", filled),
        (Path("../head"), Path()),
    ):
        monkeypatch.chdir(filled)
        keep(run, place)
        assert files(filled) == files(run) | {"notes.txt": b"keep me"}
    assert (tmp_path / "link").is_symlink() and (
        filled / "report" / "index.html"
    ).read_text() == "mine"


@pytest.mark.parametrize(
    ("run", "place"), [("head", "head/base"), ("head/base", "head"), ("head", "link")]
)
def test_two_folders_that_overlap_are_refused(filled, head, tmp_path, run, place):
    (tmp_path / "link").symlink_to(head)
    shutil.copytree(filled, head / "base")
    before = files(head), files(head / "base")
    with pytest.raises(BadArgument) as raised:
        keep(tmp_path / run, tmp_path / place)
    refused(raised.value, run, place, "apart")
    assert (files(head), files(head / "base")) == before


def test_only_a_run_that_nobody_writes_is_replaced(filled, head, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "journal.jsonl").write_text("dear diary")
    with pytest.raises(BadRun, match="is not a run directory"):
        keep(head, tmp_path / "mine")
    assert files(tmp_path / "mine") == {"journal.jsonl": b"dear diary"}
    before = files(filled)
    with RunDirectory.open(filled, write=True), pytest.raises(Unwritable, match="another process"):
        keep(head, filled)
    with monkeypatch.context() as patch, pytest.raises(Unwritable, match="then bless it again"):
        patch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        keep(head, filled)
    assert files(filled) == before


@pytest.mark.parametrize("first", [False, True])
def test_killed_at_any_instant(filled, head, first):
    """The old run, the new one, or one line that says what to do, which then works. `first`: no run
    was there before.
    """
    seen, copy = set(), filled.with_name("copy")
    shutil.copytree(filled, copy)
    if first:
        shutil.rmtree(filled)
    for _ in dying(lambda: keep(head, filled), filled):
        assert first or filled.exists()
        try:
            found = RunDirectory.open(filled)
            assert found.records and {record.run for record in found.records} == {
                found.manifest.run
            }
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
