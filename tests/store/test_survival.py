"""A run directory survives a kill at any instant, and a disk that fails at any time."""

import os
import random
import shutil
import sys
from unittest.mock import Mock

import pytest

from kvbench.errors import BadRun, Unwritable
from kvbench.store import RunDirectory
from kvbench.store.files import write_text
from kvbench.store.run import Journal
from tests.store.made import APPEND, DECODE, JOURNAL, READ, failed, manifest, named, refused, visit

# ---- killed --------------------------------------------------------------------------------------


def test_a_journal_cut_anywhere(folder, tmp_path):
    """At every byte: full lines before it count, and later lines are written as if nothing had
    happened.
    """
    records = [visit(random.Random(1), 0, READ, samples=1), failed(0, DECODE), failed(1, READ)]
    with RunDirectory.create(folder, manifest()) as run:
        for record in records:
            run.append(record)
    journal = folder / JOURNAL
    whole = journal.read_bytes()
    for cut in range(len(whole) + 1):
        journal.write_bytes(whole[:cut])
        kept = named(records[: whole[:cut].count(b"\n")])
        assert RunDirectory.open(folder).records == kept
        assert journal.read_bytes() == whole[:cut]  # a reader repairs nothing
        with RunDirectory.open(folder, write=True) as run:
            assert run.records == kept
            run.append(failed(7, APPEND))
        assert RunDirectory.open(folder).records == kept + named([failed(7, APPEND)])


def dying(act, path):
    """Do it in child processes that end at their first, second, third ... access to a file there,
    until one finishes.
    """
    for number in range(1, 1000):
        child = os.fork()
        if not child:
            left = [number]

            def count(event, arguments, left=left):
                if any(str(path) in str(argument) for argument in arguments):
                    left[0] -= 1
                    if not left[0]:
                        os._exit(9)

            try:
                sys.addaudithook(count)
                act()
                os._exit(0)
            finally:
                os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9)
        yield number
        if not code:
            return


def test_a_creation_that_is_killed_leaves_a_run_or_none(folder):
    seen = set()

    def create():
        RunDirectory.create(folder, manifest())

    for _ in dying(create, folder):
        try:
            assert RunDirectory.open(folder).records == []
            seen.add("whole")
        except BadRun as error:
            assert "is not a run directory" in str(error)
            seen.add("none")
            RunDirectory.create(folder, manifest()).close()
        assert sorted(path.name for path in folder.iterdir()) == [JOURNAL, "manifest.json"]
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    assert seen == {"whole", "none"}


@pytest.mark.parametrize("name", ["machine.json", "run.json.gz"])
def test_a_file_is_the_old_or_the_new_one(filled, name):
    def write(point):
        """A failed point is not exported."""
        with RunDirectory.open(filled, write=True) as run:
            run.append(failed(7, point))
            run.write_machine({"point": point.name})
            run.export()

    write(READ)
    old, journal = (filled / name).read_bytes(), (filled / JOURNAL).read_bytes()
    seen = []
    for _ in dying(lambda: write(DECODE), filled):
        seen.append((filled / name).read_bytes())
        RunDirectory.open(filled, write=True).close()
        (filled / JOURNAL).write_bytes(journal)
        (filled / name).write_bytes(old)
    assert seen[0] == old != seen[-1] and set(seen) == {old, seen[-1]}


# ---- others at work ------------------------------------------------------------------------------


def test_nothing_is_cut_before_all_was_read(filled, tmp_path):
    """An invalid line is reported, bytes after the last full line stay, and links are not
    followed.
    """
    journal, foreign = filled / JOURNAL, tmp_path / "notes.txt"
    whole = journal.read_bytes()
    journal.write_bytes(text := whole + b"nonsense\nand more")
    with pytest.raises(BadRun, match=r"journal\.jsonl:10 "):
        RunDirectory.open(filled, write=True)
    assert journal.read_bytes() == text
    for content in (b"mine\nwithout an end", whole + b"without an end", b""):
        foreign.write_bytes(content)
        journal.unlink()
        journal.symlink_to(foreign)
        for write in (False, True):
            with pytest.raises(BadRun, match="it is a link"):
                RunDirectory.open(filled, write)
        assert foreign.read_bytes() == content
    with pytest.raises(OSError, match="symbolic links"):
        Journal(journal)
    with pytest.raises(Unwritable):
        RunDirectory.create(linked(tmp_path / "new", foreign), manifest())
    assert foreign.read_bytes() == b""


def linked(folder, foreign):
    folder.mkdir()
    (folder / JOURNAL).symlink_to(foreign)
    return folder


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: os.truncate(folder / JOURNAL, 1000),
        lambda folder: folder.rename(folder.with_name("away")),
        shutil.rmtree,
        lambda folder: (shutil.copytree(folder, folder.with_name("b")), shutil.rmtree(folder)),
        lambda folder: shutil.move(shutil.copy(folder / JOURNAL, folder / "x"), folder / JOURNAL),
    ],
)
def test_a_writer_notices_what_others_do(filled, act):
    with RunDirectory.open(filled, write=True) as run:
        act(filled)
        before = sorted(str(path) for path in filled.parent.rglob("*"))
        for write in (
            lambda: run.append(failed(8, READ)),
            lambda: run.write_machine({}),
            run.export,
        ):
            with pytest.raises(Unwritable, match="changed, moved or removed") as raised:
                write()
            refused(raised.value, str(filled))
        # nothing is made anew
        assert sorted(str(path) for path in filled.parent.rglob("*")) == before


# ---- no room, no permission ----------------------------------------------------------------------


def test_a_path_that_is_not_text_can_be_written(tmp_path):
    write_text(tmp_path / "page", "runs/\udcff")
    assert (tmp_path / "page").read_bytes() == rb"runs/\udcff"


def test_a_write_that_cannot_be_taken_back_is_taken_back_later(filled, monkeypatch):
    broken = Mock(side_effect=OSError(5, "Input/output error"))
    before = (filled / JOURNAL).read_bytes()
    with RunDirectory.open(filled, write=True) as run:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", broken)
            patch.setattr(os, "ftruncate", broken)
            for _ in range(2):
                with pytest.raises(Unwritable, match="Input/output error"):
                    run.append(failed(8, READ))
        run.append(failed(9, READ))
    lines = (filled / JOURNAL).read_bytes()
    assert lines.startswith(before) and lines.count(b"\n") == 10
    assert RunDirectory.open(filled).records[-1].launch == 9


def test_a_whole_line_outlives_an_interruption(filled, monkeypatch):
    """Ctrl-C while waiting for the disk: the resumed run finds the visit, and may also add it
    again.
    """

    with RunDirectory.open(filled, write=True) as run:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                run.append(failed(8, READ))
        assert len(run.records) == 9 and RunDirectory.open(filled).records[-1].launch == 8
        run.append(failed(8, READ))
    assert [record.launch for record in RunDirectory.open(filled).records][9:] == [8]


def test_a_full_disk_keeps_older_files(filled, monkeypatch):
    with RunDirectory.open(filled, write=True) as run:
        run.write_machine({"launch": 1})
        assert run.export()
        export = (filled / "run.json.gz").read_bytes()
        monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        for act in (lambda: run.write_machine({"launch": 2}), run.export):
            with pytest.raises(Unwritable) as raised:
                act()
            refused(raised.value, "No space left on device", "make room")
    # there is nothing to resume
    with pytest.raises(Unwritable, match="make room; then begin again"):
        RunDirectory.create(filled / "new", manifest())
    assert RunDirectory.open(filled).machine()["launch"] == 1
    assert (filled / "run.json.gz").read_bytes() == export
    assert len(RunDirectory.open(filled).records) == 9
