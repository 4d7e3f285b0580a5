"""Run directories: what is written comes back, unreadable values are refused, one process writes at
a time.
"""

import json
import random
import subprocess
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvbench.errors import BadArgument, BadRun, Unwritable
from kvbench.model import Record, Skip
from kvbench.store import RunDirectory
from kvbench.store.run import Journal
from kvbench.store.values import decoder, record_line, refuse_unfit
from tests.store.made import (
    APPEND,
    DECODE,
    JOURNAL,
    POINTS,
    READ,
    RUN,
    failed,
    manifest,
    named,
    refused,
    visit,
    visits,
)

# ---- what is written comes back ------------------------------------------------------------------


def test_a_manifest_comes_back(folder):
    asked = manifest()
    with RunDirectory.create(folder, asked) as made:
        wanted = replace(asked, plan=replace(asked.plan, run=asked.run))
        assert made.manifest == RunDirectory.open(folder).manifest == wanted
    assert json.loads((folder / "manifest.json").read_text())["format"] == 6


def test_values_unknown_to_json_are_kept_as_text(folder):
    skip = Skip(
        {"context": Path("0.5xL3"), "heads": (1, Path("x")), "limit": float("inf")}, "why", "what"
    )
    RunDirectory.create(folder, manifest(skips=(skip,))).close()
    (found,) = RunDirectory.open(folder).manifest.skips
    assert found == Skip({"context": "0.5xL3", "heads": [1, "x"], "limit": None}, "why", "what")


@pytest.mark.parametrize("seed", range(20))
def test_records_come_back(folder, seed):
    records = list(visits(seed, launches=random.Random(seed).randrange(5)))
    asked = manifest()
    with RunDirectory.create(folder, asked) as made:
        for record in records:
            made.append(record)
        assert made.records == named(records)
        assert RunDirectory.open(folder).records == named(records)  # beside the writer
    for number, record in enumerate([failed(9, DECODE), failed(9, READ)], len(records)):
        with RunDirectory.open(folder, write=True) as again:
            assert len(again.records) == number
            again.append(record)
            records.append(record)
    assert RunDirectory.open(folder).records == named(records)


def test_points_are_spelled_in_the_manifest_alone(filled):
    for line in (filled / JOURNAL).read_text().splitlines():
        assert json.loads(line)["point"] in {point.name for point in POINTS}


def test_a_machine_comes_back(filled):
    assert RunDirectory.open(filled).machine() is None
    facts = {
        "fingerprint": "f",
        "topology": {"cpus": [0, 1], "l3": None},
        "ceilings": [{"gbps": 1.5}],
    }
    with RunDirectory.open(filled, write=True) as run:
        run.write_machine({"other": 1})
        run.write_machine(facts)
    assert RunDirectory.open(filled).machine() == facts | {"run": RUN}


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"run": ""}, "run is empty"),
        ({"created": "2026-01-02T03:04:05"}, "created"),
        ({"created": "yesterday"}, "created"),
        ({"points": (READ, DECODE, READ)}, "occurs twice"),
        ({"points": (replace(READ, cpus=()),)}, "plan.points[0]: cpus"),
        ({"launches": 0}, "plan.launches"),
        ({"points": (replace(DECODE, variant="a.b"),)}, "plan.points[0]: 'decode.a.b."),
        ({"points": (READ, replace(DECODE, layout="a/b"))}, "plan.points[1]: 'decode.flash.a/b."),
        ({"forecast": {"seconds": float("nan")}}, "forecast[...]"),
        ({"identity": {"suite": 5}}, "identity[...]"),
        ({"command": "kvbench sweep \udcff"}, "'kvbench sweep \\udcff' cannot be written as text"),
        ({"options": {"suite": "\udcff.toml"}}, "'\\udcff.toml' cannot be written as text"),
    ],
)
def test_a_run_that_cannot_be_read_is_not_begun(folder, facts, said):
    with pytest.raises(BadArgument) as raised:
        RunDirectory.create(folder, manifest(**facts))
    refused(raised.value, said)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (replace(failed(0, DECODE), run="another"), "'another'"),
        (failed(0, replace(READ, bytes=7)), "no point"),
        (replace(failed(0, READ), memory={"mapped": np.int64(1)}), READ.name),
        (replace(failed(0, READ), launch=-1), "launch -1"),
        (failed(10, READ), "launch 10 is not in this run, which has 10 from 0 on"),
        (replace(failed(0, READ), error="", max_abs_err=1.5), "max_abs_err"),
        (failed(1, APPEND), "launch 1 has visited"),
    ],
)
def test_a_record_that_cannot_be_read_is_not_appended(folder, record, said):
    with RunDirectory.create(folder, manifest()) as run:
        run.append(failed(1, APPEND))
        before = (folder / JOURNAL).read_bytes()
        with pytest.raises(BadArgument) as raised:
            run.append(record)
        refused(raised.value, said)
        assert (folder / JOURNAL).read_bytes() == before and len(run.records) == 1


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from([[], {}, -0.0, 1e30, 5e-324, 1 << 63, "\udcff", "\0"]),
)


def places(value, path=()):
    """The keys that lead to every value inside a JSON value."""
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, each in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        yield from places(each, (*path, key))


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 1 << 32), leaf=LEAVES, data=st.data())
def test_texts_of_a_process_come_back(tmp_path_factory, seed, leaf, data):
    """With any value at any place of a record: it is refused when read, or the journal has it."""
    facts = json.loads(record_line(visit(random.Random(seed), 3, DECODE, run=RUN)))
    *path, last = data.draw(st.sampled_from(list(places(facts))))
    reduce(getitem, path, facts)[last] = leaf
    try:
        found = refuse_unfit(decoder(Record, {DECODE.name: DECODE})(json.dumps(facts)))
    except ValueError:
        return
    folder = tmp_path_factory.mktemp("said") / "run"
    with RunDirectory.create(folder, manifest(points=[DECODE])) as run:
        try:
            run.append(found)
        except BadArgument:  # of another run, or launch
            assert {last, *path} & {"run", "launch"}
            return
    assert RunDirectory.open(folder).records == [replace(found, run=RUN)]


def test_a_reader_does_not_write(filled):
    run = RunDirectory.open(filled)
    for act in (lambda: run.append(failed(8, READ)), lambda: run.write_machine({}), run.export):
        with pytest.raises(Unwritable):
            act()
    assert sorted(path.name for path in filled.iterdir()) == [JOURNAL, "manifest.json"]


def test_a_run_is_not_overwritten(filled):
    with pytest.raises(BadArgument) as raised:
        RunDirectory.create(filled, manifest())
    refused(raised.value, str(filled), "--out", "--resume")
    assert len(RunDirectory.open(filled).records) == 9


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(BadArgument) as raised:
        RunDirectory.create(tmp_path, manifest())
    refused(raised.value, str(tmp_path), "thesis.tex", "--out")
    with pytest.raises(Unwritable, match="is a file"):
        RunDirectory.create(tmp_path / "thesis.tex", manifest())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_will_do(tmp_path):
    RunDirectory.create(tmp_path, manifest()).close()
    RunDirectory.create(str(tmp_path / "a" / "b" / "c"), manifest()).close()
    assert RunDirectory.open(tmp_path / "a" / "b" / "c").records == []


@pytest.mark.parametrize("name", ["", "nowhere", "file"])
@pytest.mark.parametrize("write", [False, True])
def test_a_folder_that_is_not_a_run_directory_says_so(tmp_path, name, write):
    (tmp_path / "file").write_text("{}")
    with pytest.raises(BadRun, match="is not a run directory") as raised:
        RunDirectory.open(tmp_path / name, write)
    refused(raised.value, str(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_another_format_is_not_read(filled):
    path = filled / "manifest.json"
    path.write_text(path.read_text().replace('"format": 6', '"format": 5'))
    with pytest.raises(BadRun, match="format is 5") as raised:
        RunDirectory.open(filled)
    refused(raised.value, str(path), "another version of kvbench")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"run": "another"}, "it is of run 'another', but this is run"),
        ({"run": ""}, "it is of run ''"),
        ({"launch": 10}, "launch 10 is not in this run"),
        ({"max_abs_err": 1e9}, "an answer with an error of 1e+09"),
    ],
)
def test_a_line_that_is_not_the_run_s_is_named(filled, facts, said):
    lines = (filled / JOURNAL).read_text().splitlines(keepends=True)
    lines[4] = json.dumps(json.loads(lines[4]) | facts) + "\n"
    (filled / JOURNAL).write_text("".join(lines))
    with pytest.raises(BadRun) as raised:
        RunDirectory.open(filled)
    refused(raised.value, f"{filled / JOURNAL}:5 is not a record", said)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"latency": [1e-7]}, "samples[0].latency: it has two"),
        ({"latency": [1e-7, 2e-7, 3e-7]}, "samples[0].latency: it has two"),
        ({"latency": [2e-7, 1e-7]}, "the second is not below the first"),
        ({"latency": [0.0, 0.0]}, "samples[0].latency"),
        ({"latency": [-1e-7, 1e-7]}, "samples[0].latency"),
        ({"latency": [1e-300, 1e-300]}, "samples[0].latency"),
        ({"load": -5.0}, "samples[0].load"),
    ],
)
def test_an_impossible_latency_is_not_read(filled, facts, said):
    lines = (filled / JOURNAL).read_text().splitlines(keepends=True)
    number = next(number for number, text in enumerate(lines) if json.loads(text)["samples"])
    found = json.loads(lines[number])
    found["samples"][0] |= facts
    lines[number] = json.dumps(found) + "\n"
    (filled / JOURNAL).write_text("".join(lines))
    with pytest.raises(BadRun) as raised:
        RunDirectory.open(filled)
    refused(raised.value, f"{filled / JOURNAL}:{number + 1} is not a record", said)


def test_the_machine_of_another_run_is_not_this_one_s(filled, tmp_path):
    with RunDirectory.create(tmp_path / "other", manifest(run="another")) as other:
        other.write_machine({"fingerprint": "f"})
    (tmp_path / "other" / "machine.json").rename(filled / "machine.json")
    with pytest.raises(BadRun, match="it is of run 'another'") as raised:
        RunDirectory.open(filled).machine()
    refused(raised.value, str(filled / "machine.json"))


# ---- one writer ----------------------------------------------------------------------------------


def test_there_is_one_writer(folder):
    with RunDirectory.create(folder, manifest()):
        with pytest.raises(Unwritable) as raised:
            RunDirectory.open(folder, write=True)
        refused(raised.value, str(folder), "another process")
        assert RunDirectory.open(folder).records == []
    with RunDirectory.open(folder, write=True), pytest.raises(Unwritable):
        RunDirectory.open(folder, write=True)
    RunDirectory.open(folder, write=True).close()


def test_one_of_two_creators_is_refused(folder, monkeypatch):
    """The second creator finishes before the first one locks the folder that it saw empty."""

    def late(path):
        monkeypatch.undo()
        RunDirectory.create(folder, manifest(run="theirs")).close()
        return Journal(path)

    monkeypatch.setattr("kvbench.store.run.Journal", late)
    with pytest.raises(BadArgument, match="holds a run already"):
        RunDirectory.create(folder, manifest(run="ours"))
    assert RunDirectory.open(folder, write=True).manifest.run == "theirs"


def test_a_child_does_not_keep_the_lock(folder):
    run = RunDirectory.create(folder, manifest())
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        run.close()
        RunDirectory.open(folder, write=True).close()
        child.stdin.close()


def test_a_bad_run_is_not_kept_locked(filled):
    with (filled / JOURNAL).open("ab") as file:
        file.write(b"nonsense\n")
    for _ in range(2):
        with pytest.raises(BadRun, match=r"journal\.jsonl:10 "):
            RunDirectory.open(filled, write=True)
