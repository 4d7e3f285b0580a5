"""What is taken from run directories, and when they are read again. The other way to read a run is the report's."""

import json
import os
import shutil
import sqlite3

import pytest

from kvbench import results
from kvbench.errors import BadArgument, BadRun
from kvbench.history.index import FILE, Index
from kvbench.history.reading import read
from tests.history import made
from tests.report import made as report

RUNS, POINTS = 6, 3


@pytest.fixture
def root(tmp_path):
    made.write(tmp_path / "runs", made.flat(RUNS, POINTS))
    return tmp_path / "runs"


def updated(root, **options):
    """What a fresh look at the runs says: of each machine its runs and their results; and the notes."""
    with Index(root, **options) as index:
        index.update(lambda _: None)
        found = {}
        for machine, fingerprint, _ in index.machines():
            runs = {row.id: row.run for row in index.runs(machine)}
            found[fingerprint] = sorted((runs[run], *rest) for run, *rest in index.results(machine) if run in runs)
        return found, index.notes


def runs_of(found):
    return sorted({run for rows in found.values() for run, *_ in rows})


def names(count=RUNS):
    return [f"run-{number:04}" for number in range(count)]


# ---- one run ---------------------------------------------------------------------------------------------------------


def test_a_run_says_what_its_report_says(tmp_path):
    """Of a run with stores, probes and failed visits, number for number."""
    points = [*report.decodes()[:6], *report.stores(), *report.PROBES]
    records = [*report.whole(points, 5), *(report.failed(5, point) for point in points[:2])]
    path = report.directory(tmp_path / "run", records, points)
    frame = results.load(path).frame("points").set_index("name")
    found = read(path).results
    assert {each.point.name for each in found} == set(frame.index[frame["efficiency"].notna()]) and len(found) == 12
    for each in found:
        row = frame.loc[each.point.name]
        assert (each.launches, each.witness) == (row["launches"], row["witness"])
        assert (each.efficiency, each.low, each.high) == tuple(row[f"efficiency{end}"] for end in ("", "_low", "_high"))
        assert (each.seconds, each.gbps) == (row["seconds"], row["gbps"])


def test_efficiency_is_as_made(tmp_path):
    shares = made.flat(1, POINTS) * [[0.5, 1.0, 1.2]]
    (path,) = made.write(tmp_path, shares, noise=0)
    found = read(path).results
    assert [each.efficiency for each in found] == pytest.approx(shares[0])
    assert all(each.gbps == pytest.approx(share * made.TWIN) for each, share in zip(found, shares[0], strict=True))


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ('{"launch":0', "line 2"),
        ("7", "line 2"),
        ("[]", "line 2"),
        ('{"launch":0,"point":"none of it","samples":[]}', "none of it"),
        ('{"launch":[],"point":"POINT","samples":[]}', "line 2"),
        ('{"launch":3,"point":"POINT","samples":[]}', "launch 3"),
        ('{"run":"another","launch":2,"point":"POINT","samples":[]}', "run 'another'"),
        ('{"launch":2,"point":"POINT","samples":[],"max_abs_err":1e9}', "max_abs_err"),
        ('{"launch":2,"point":"POINT"}', "samples"),
        ('{"launch":2,"point":"POINT","samples":[{"program":"point"}]}', "seconds"),
        ('{"launch":2,"point":"POINT","samples":[{"program":"point","round":0,"seconds":NaN,"passes":1}]}', "line 2"),
        ('{"launch":2,"point":"POINT","samples":[{"program":"point","round":0,"seconds":1.0,"passes":0}]}', "0 passes"),
        ('{"launch":2,"point":"POINT","samples":[{"program":"point","round":0,"seconds":1.0,"passes":1}]}', "traffic"),
    ],
)
def test_a_broken_line_is_said(tmp_path, wrong, word):
    (path,) = made.write(tmp_path, made.flat(1, 1))
    journal = path / "journal.jsonl"
    first = journal.read_text().splitlines()[0]
    own = '{"run":"run-0000","max_abs_err":0,"launch"'
    wrong = wrong.replace("POINT", json.loads(first)["point"]).replace('{"launch"', own)
    journal.write_text(f"{first}\n{wrong}\n")
    with pytest.raises(BadRun) as caught:
        read(path)
    assert word in str(caught.value) and str(journal) in str(caught.value) and "\n" not in str(caught.value)


def test_a_line_without_its_end_is_not_there_yet(tmp_path):
    (path,) = made.write(tmp_path, made.flat(1, 1))
    before = read(path)
    with (path / "journal.jsonl").open("a") as file:
        file.write('{"launch":0')
    assert read(path) == before


# ---- the index -------------------------------------------------------------------------------------------------------


def test_rebuilt_is_the_same(root):
    first, notes = updated(root)
    assert runs_of(first) == names() and notes == [] and len(first["f00dcafe"]) == RUNS * POINTS
    assert updated(root) == (first, [])
    assert updated(root, rebuild=True) == (first, [])
    (root / FILE).unlink()
    assert updated(root) == (first, [])


def test_a_run_that_stands_still_is_not_read_again(root, monkeypatch):
    first = updated(root)
    monkeypatch.setattr("kvbench.history.index.read", lambda path: pytest.fail(f"{path} was read"))
    assert updated(root) == first


def test_new_changed_and_lost_runs(root):
    updated(root)
    made.write(root / "deeper" / "still", made.flat(2, POINTS), first=RUNS)
    shutil.rmtree(root / "run-0000")
    journal = root / "run-0001" / "journal.jsonl"
    journal.write_text("".join(line for line in journal.open() if made.points(1)[0].name in line))
    found, notes = updated(root)
    assert runs_of(found) == names(RUNS + 2)[1:] and notes == []
    assert sum(row[0] == "run-0001" for row in found["f00dcafe"]) == 1


def test_a_machine_whose_runs_are_lost_is_none(root):
    made.write(root / "more", made.flat(1, POINTS), first=RUNS, machine=["another"])
    assert set(updated(root)[0]) == {"f00dcafe", "another"}
    shutil.rmtree(root / "more")
    assert set(updated(root)[0]) == {"f00dcafe"}


def test_results_of_a_run_that_was_measured_anew(root):
    """As long as before to the byte, but of another time."""
    first, _ = updated(root)
    made.write(root.parent / "other", made.flat(1, POINTS, 0.5))
    shutil.copyfile(
        root.parent / "other" / "run-0000" / "journal.jsonl", journal := root / "run-0000" / "journal.jsonl"
    )
    os.utime(journal, ns=(1, 1))
    found, _ = updated(root)
    assert found != first and found == updated(root, rebuild=True)[0]


def test_a_broken_run_is_told_and_left_out(root):
    (root / "run-0002" / "manifest.json").write_text("{")
    (root / "run-0003" / "journal.jsonl").unlink()
    found, notes = updated(root)
    assert runs_of(found) == ["run-0000", "run-0001", "run-0004", "run-0005"]
    assert len(notes) == 2 and "run-0002" in notes[0] and "run-0003" in notes[1]


def test_a_run_that_is_there_twice_counts_once(root):
    shutil.copytree(root / "run-0002", root / "copy")
    found, notes = updated(root)
    assert runs_of(found) == names() and len(found["f00dcafe"]) == RUNS * POINTS
    assert notes == ["left out: run-0002 is the same run as copy"]


@pytest.mark.parametrize("damage", [b"", b"no database at all, " * 50])
def test_a_damaged_index_is_built_anew(root, damage):
    first, _ = updated(root)
    (root / FILE).write_bytes(damage)
    found, notes = updated(root)
    assert found == first and bool(notes) == bool(damage)


def test_an_index_that_is_damaged_within(root):
    first, _ = updated(root)
    with (root / FILE).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    found, notes = updated(root)
    assert found == first and "built anew" in notes[0]


def test_an_index_of_another_version_is_built_anew(root):
    first, _ = updated(root)
    base = sqlite3.connect(root / FILE)
    base.executescript("DROP TABLE result; PRAGMA user_version = 99;")
    base.close()
    assert updated(root) == (first, [])


def test_a_folder_that_cannot_be_written_is_read_all_the_same(root, monkeypatch):
    first, _ = updated(root)
    (root / FILE).unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)
    found, notes = updated(root)
    assert found == first and "cannot be written" in notes[0] and not (root / FILE).exists()


def test_many_runs_are_read_by_several_processes(tmp_path):
    made.write(tmp_path, made.flat(40, 1), launches=1, rounds=1)
    (tmp_path / "run-0007" / "manifest.json").write_text("{")
    told = []
    with Index(tmp_path) as index:
        index.update(told.append)
        assert len(index.runs(1)) == 39 and len(index.notes) == 1
    assert len(told) == 1 and "40 runs" in told[0]


def test_no_folder(tmp_path):
    with pytest.raises(BadArgument, match="--root"):
        Index(tmp_path / "none")
