"""Files are complete or absent, with several writers, short writes and a disk that may fail at any
time.
"""

import json
import multiprocessing
import os
import signal
import time
from contextlib import suppress
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from kvbench.errors import Unwritable
from kvbench.model import Tuned, choose
from kvbench.runner import _Worker
from kvbench.store import RunDirectory
from kvbench.store.evidence import Evidence
from kvbench.store.files import replacing, within, write_json, write_text, writing
from kvbench.store.locks import locked
from kvbench.store.names import FILES, SEAL
from kvbench.store.parts import new_part
from tests.store.made import READ, failed, manifest

_FORK = multiprocessing.get_context("fork")


def processes(act, *arguments):
    """Run `act` for each argument in a process of its own, all at once; none may fail."""
    running = [_FORK.Process(target=act, args=each) for each in arguments]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0] * len(running)


# ---- several writers -----------------------------------------------------------------------------


@pytest.fixture
def library(tmp_path):
    (tmp_path / "lib.so").write_bytes(b"kernels")
    return tmp_path / "lib.so"


def tuned(of, value):
    ratios = {"off": (value,), "weave": (0.0,)}
    return Tuned(of, (of,), choose(ratios, "weave"), ratios)


def wrote(library, file, writer, rounds):
    """Add a class of its own in every round, and a ratio of a shared class. This must never be
    refused.
    """
    for number in range(rounds):
        value = 1.0 + writer + number / 1000
        own = tuned(f"own/{writer}/{number}", value)
        assert Evidence("m", library, file).add([own, tuned(f"shared/{number // 10}", value)]) == ""


def looked(library, file, stop):
    """What is read is complete at any time, and nothing that was there disappears later."""
    before = 0
    while not stop.is_set():
        found, remark = Evidence("m", library, file).read()
        assert not remark and len(found) >= before
        before = len(found)


@pytest.mark.parametrize(
    ("writers", "rounds"),
    [(4, 15), pytest.param(4, 100, marks=pytest.mark.full)],
    ids=["some", "many"],
)
@pytest.mark.parametrize("asked", [True, False])
def test_writers_at_once_lose_nothing(library, tmp_path, monkeypatch, writers, rounds, asked):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = str(tmp_path / "seen.json") if asked else None
    stop = _FORK.Event()
    reader = _FORK.Process(target=looked, args=(library, file, stop))
    reader.start()
    processes(wrote, *((library, file, writer, rounds) for writer in range(writers)))
    stop.set()
    reader.join()
    assert reader.exitcode == 0
    found, remark = Evidence("m", library, file).read()
    wanted = {
        (writer, number): 1.0 + writer + number / 1000
        for writer in range(writers)
        for number in range(rounds)
    }
    assert not remark
    for (writer, number), value in wanted.items():
        assert found[f"own/{writer}/{number}"] == {"off": (value,), "weave": (0.0,)}
    shared = sorted(
        value for name, each in found.items() if name.startswith("shared/") for value in each["off"]
    )
    assert shared == sorted(wanted.values())
    own_file = Evidence("m", library, file).path
    assert [entry.name for entry in own_file.parent.iterdir() if entry.name.startswith(".")] == []


def replaced(path, letter):
    for _ in range(200):
        with replacing(path) as file:
            file.write(letter * 5000)


def test_a_file_is_of_one_writer_alone(tmp_path):
    path = tmp_path / "page"
    processes(replaced, *((path, letter) for letter in (b"a", b"b", b"c")))
    assert path.read_bytes() in (b"a" * 5000, b"b" * 5000, b"c" * 5000)
    assert list(tmp_path.iterdir()) == [path]


def killed_while(act):
    """Kill a child in the middle of it."""
    child = os.fork()
    if not child:
        with act():
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_stays(tmp_path):
    path = tmp_path / "page"
    killed_while(lambda: new_part(path))
    killed_while(lambda: new_part(tmp_path / "other"))
    (left,) = tmp_path.glob(".page.*")
    with new_part(path) as (living, file):
        write_text(path, "whole")
        assert living.exists() and not left.exists()
        assert len(list(tmp_path.glob(".other.*"))) == 1, "it is not of this file"
        file.write(b"mine")
        living.replace(path)
    assert path.read_bytes() == b"mine"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    write_text(tmp_path / "page", "old")
    with suppress(RuntimeError), replacing(tmp_path / "page") as file:
        file.write(b"new")
        raise RuntimeError
    assert (tmp_path / "page").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_a_lock_is_free_when_its_holder_is_killed(tmp_path):
    killed_while(lambda: locked(tmp_path))
    start = time.monotonic()
    with locked(tmp_path):
        pass
    assert time.monotonic() - start < 20


def test_a_holder_that_does_not_end_is_not_waited_for_without_end(tmp_path):
    with locked(tmp_path), pytest.raises(OSError, match="another process writes there") as raised:
        with locked(tmp_path, patience=0.05):
            pass
    assert raised.value.filename == str(tmp_path)


def test_a_lock_that_is_held_for_long_is_said_in_a_line(library, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "kvbench.store.evidence.locked", lambda folder: locked(folder, patience=0.05)
    )
    with locked(tmp_path):
        said = Evidence("m", library, str(tmp_path / "seen.json")).add([tuned("a", 1.0)])
    assert said.startswith("the tuning is not kept for later runs") and "another process" in said
    assert "\n" not in said and not (tmp_path / "seen.json").exists()


def test_evidence_that_could_not_be_read_is_not_replaced(library, tmp_path, monkeypatch):
    """With too many open files, for example, the file's content is unknown."""
    evidence = Evidence("m", library, str(tmp_path / "seen.json"))
    assert not evidence.add([tuned("a", 1.0)])
    with monkeypatch.context() as patch:
        patch.setattr("kvbench.named.opened", Mock(side_effect=OSError(24, "Too many open files")))
        assert "Too many open files" in evidence.add([tuned("b", 1.0)])
    assert evidence.read()[0].keys() == {"a"}


def test_a_tuning_file_that_is_too_large_is_refused_in_a_line(library, tmp_path):
    file = tmp_path / "seen.json"
    with file.open("wb") as whole:
        whole.truncate(17 << 20)
    found, remark = Evidence("m", library, str(file)).read()
    assert not found and remark == f"{file}: it is larger than 16 MiB: all classes are tuned afresh"


def test_a_tuning_file_is_read_only_as_far_as_it_is_kept(library, tmp_path):
    """Whoever wrote it: each worker gets what is read."""
    evidence = Evidence("m", library, str(tmp_path / "seen.json"))
    evidence.add([tuned("a", 1.0)])
    text = evidence.path.read_text()
    assert text.count("1.0") == 1
    evidence.path.write_text(text.replace("1.0", ", ".join(map(str, range(10_000)))))
    assert evidence.read()[0]["a"]["off"] == tuple(map(float, range(10_000 - 64, 10_000)))


def test_a_tuning_file_has_room_for_more_than_any_machine_has(library, tmp_path):
    """500 classes of 64 rounds of 8 presets."""
    evidence = Evidence("m", library, str(tmp_path / "seen.json"))
    ratios = {
        f"preset-{number}": tuple(-0.0123456789012345 - n / 7 for n in range(64))
        for number in range(8)
    }
    assert not evidence.add(
        Tuned(f"class/{number}", ("class", str(number)), choose(ratios, "preset-0"), ratios)
        for number in range(500)
    )
    assert len(evidence.read()[0]) == 500


# ---- writes that are short, names that are lost --------------------------------------------------


@pytest.fixture
def three_bytes(monkeypatch):
    """A write takes three bytes at a time, as may happen with a full pipe or a network file."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data)[:3]))


def test_a_journal_goes_on_where_a_write_ended(folder, three_bytes):
    with RunDirectory.create(folder, manifest()) as run:
        run.append(failed(3, READ))
        run.append(failed(4, READ))
    assert [record.launch for record in RunDirectory.open(folder).records] == [3, 4]


def test_a_partial_write_to_a_worker_goes_on(three_bytes):
    """The runner itself writes the pipe to it."""
    outer, inner = os.pipe()

    class Told:
        _in = os.fdopen(inner, "wb")
        _job = SimpleNamespace(plan=SimpleNamespace(patience=10))
        _ear = SimpleNamespace(ready=lambda *_: True)

    with os.fdopen(outer, "rb") as ear, Told._in:
        _Worker._say(Told(), "a line of a job")
        assert ear.readline() == b"a line of a job\n"


def synced(monkeypatch):
    """Paths of the folders and files whose descriptors were synced, in order."""
    found = []
    monkeypatch.setattr(
        os, "fsync", lambda file: found.append(os.readlink(f"/proc/self/fd/{file}"))
    )
    return found


def test_the_names_of_new_folders_are_on_the_disk(tmp_path, monkeypatch):
    found = synced(monkeypatch)
    write_text(tmp_path / "a" / "b" / "page", "text")
    assert str(tmp_path) in found and str(tmp_path / "a") in found
    *_, content, name = found
    assert content.startswith(str(tmp_path / "a" / "b" / ".page.")) and name == str(
        tmp_path / "a" / "b"
    )


def test_the_name_of_a_new_run_is_on_the_disk(tmp_path, monkeypatch):
    found = synced(monkeypatch)
    RunDirectory.create(tmp_path / "runs" / "one", manifest()).close()
    assert (
        found.index(str(tmp_path))
        < found.index(str(tmp_path / "runs"))
        < found.index(str(tmp_path / "runs" / "one"))
    )


def test_unused_new_folders_are_removed(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        for name in ("new", "there"):
            with pytest.raises(OSError, match="No space left"):
                write_text(tmp_path / name / "a" / "page", "text")
            with pytest.raises(Unwritable, match="No space left"):
                RunDirectory.create(tmp_path / name / "run", manifest())
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]
    with suppress(RuntimeError), within(tmp_path / "kept"):
        (tmp_path / "kept" / "file").touch()
        raise RuntimeError
    assert (tmp_path / "kept" / "file").exists()


# ---- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FILES, SEAL])
def test_no_output_takes_the_place_of_a_file_of_a_run(filled, name, tmp_path):
    (tmp_path / "link").symlink_to(filled)
    before = {path.name: path.read_bytes() for path in filled.iterdir()}
    for path in (filled / name, tmp_path / "link" / name):
        with pytest.raises(Unwritable, match="which would be lost") as raised, writing(path):
            write_text(path, "text", asked=True)
        assert (
            raised.value.exit_code == 2
            and "\n" not in str(raised.value)
            and str(path) in str(raised.value)
        )
    assert {path.name: path.read_bytes() for path in filled.iterdir()} == before
    write_text(tmp_path / name, "text", asked=True)
    write_json(filled / "notes.json", [], asked=True)


# ---- JSON ----------------------------------------------------------------------------------------


def test_numbers_keep_all_their_digits(tmp_path):
    numbers = [1e-300, 2.3e-7, 1 / 3, 1e20, 0.1 + 0.2, 5e-324, 123456789.123456789]
    write_json(tmp_path / "x.json", {"numbers": numbers})
    assert json.loads((tmp_path / "x.json").read_text())["numbers"] == numbers
