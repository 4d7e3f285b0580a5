"""What a history reads from run directories, and when it reads their journals again."""

import json
import os
import shutil

import pytest

from kvbench import results
from kvbench.errors import BadRun
from kvbench.history import place
from kvbench.history.reading import summaries, summarized
from kvbench.store.summary import read_summary, write_summary
from tests.history import made
from tests.report import made as report

RUNS, POINTS = 6, 3


@pytest.fixture
def root(tmp_path):
    made.write(tmp_path / "runs", made.flat(RUNS, POINTS))
    return tmp_path / "runs"


@pytest.fixture
def run(tmp_path):
    """A run with stores, probes and failed visits, and no summary."""
    points = [*report.decodes()[:6], *report.stores(), *report.PROBES]
    records = [*report.whole(points, 5), *(report.failed(5, point) for point in points[:2])]
    return report.directory(tmp_path / "run", records, points)


def silent(_):
    pass


def names(root):
    found, notes = summaries(root, silent)
    return [summary.run for summary in found.values()], notes


def test_a_run_says_what_its_report_says(run):
    frame = results.load(run).frame("points").set_index("name")
    found = summarized(run).results
    assert {each.point.name for each in found} == set(
        frame.index[frame["efficiency"].notna()]
    ) and len(found) == 12
    for each in found:
        row = frame.loc[each.point.name]
        assert (each.launches, each.witness) == (row["launches"], row["witness"])
        assert (each.efficiency, each.low, each.high) == tuple(
            row[f"efficiency{end}"] for end in ("", "_low", "_high")
        )
        assert (each.seconds, each.gbps) == (row["seconds"], row["gbps"])


def test_a_summary_counts_while_the_run_stands_still(run, tmp_path):
    """A copy counts as well: times of files do not matter."""
    write_summary(run, summarized(run))
    shutil.copytree(run, tmp_path / "copy", copy_function=shutil.copyfile)
    os.utime(tmp_path / "copy" / "journal.jsonl", ns=(1, 1))
    assert read_summary(run) == summarized(run) == read_summary(tmp_path / "copy")
    with (run / "journal.jsonl").open("a") as file:
        file.write("{")
    assert (
        read_summary(run) is None
        and summarized(run).results == read_summary(tmp_path / "copy").results
    )
    (tmp_path / "copy" / "manifest.json").write_text((run / "manifest.json").read_text() + " ")
    assert read_summary(tmp_path / "copy") is None


def test_a_history_does_not_change_the_runs_it_reads(run):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert names(run.parent) == ([report.RUN], [])
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    place(run.parent, run, silent)  # who adds a run wants it to be read fast
    assert read_summary(run) == summarized(run)


ODD = [
    "null",
    "-1",
    "0",
    "1e999",
    "NaN",
    '"\\ud800"',
    "[]",
    "{}",
    "1" + "0" * 400,
    "[" * 9000 + "]" * 9000,
    '"x"',
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_an_impossible_summary_is_ignored(root, odd):
    path = root / "run-0000" / "summary.json"
    text = path.read_text()
    facts = json.loads(text)
    result = facts["results"][0]
    for key in ("journal", "created", "results", "format"):
        path.write_text(json.dumps(facts | {key: "MARK"}).replace('"MARK"', odd))
        assert read_summary(path.parent) is None or (key, odd) in (
            ("journal", "0"),
            ("results", "[]"),
        )
    for key in ("point", "launches", "efficiency", "seconds"):
        path.write_text(
            json.dumps(facts | {"results": [result | {key: "MARK"}]}).replace('"MARK"', odd)
        )
        assert read_summary(path.parent) is None, key
    point = result["point"] | {"block_tokens": "MARK"}
    path.write_text(
        json.dumps(facts | {"results": [result | {"point": point}]}).replace('"MARK"', odd)
    )
    assert (read_summary(path.parent) is None) == (odd != "0")
    path.write_text(f'{text.strip()[:-1]},"strange":{odd}}}')
    names(root)


def test_new_and_lost_runs(root):
    made.write(root / "deeper" / "still", made.flat(2, POINTS), first=RUNS)
    made.write(root / ".hidden", made.flat(1, POINTS), first=RUNS + 2)
    shutil.rmtree(root / "run-0000")
    found, notes = names(root)
    assert sorted(found) == [f"run-{number:04}" for number in range(1, RUNS + 2)] and notes == []


def test_a_broken_run_is_told_and_left_out(root):
    (root / "run-0002" / "manifest.json").write_text("{")
    (root / "run-0003" / "journal.jsonl").unlink()
    (root / "run-0004" / "journal.jsonl").write_text("7\n")
    found, notes = names(root)
    assert found == ["run-0000", "run-0001", "run-0005"]
    assert len(notes) == 3 and all(
        f"run-000{number}" in note for number, note in enumerate(notes, 2)
    )
    with pytest.raises(BadRun, match=r"journal.jsonl:1 is not a record"):
        summarized(root / "run-0004")


def test_a_run_that_is_there_twice_counts_once(root):
    shutil.copytree(root / "run-0002", root / "copy")
    found, notes = names(root)
    assert sorted(found) == [f"run-{number:04}" for number in range(RUNS)]
    assert notes == ["left out: run-0002 is the same run as copy"]
