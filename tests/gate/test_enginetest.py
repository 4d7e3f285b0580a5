"""The self-test of the gate of engines plants what it says, and its table loses nothing."""

import csv
import ctypes
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from kvbench.analysis.judge import incomparable
from kvbench.exports.printed import compared
from kvbench.model import Comparison
from kvbench.model.verdict import EQUIVALENT, IMPROVEMENT, INCONCLUSIVE, REGRESSION
from kvbench.peers.ggml import Ggml
from kvbench.peers.known import Known
from kvbench.store import plain
from tests.gate import enginetest
from tests.gate.enginetest import COLUMNS, EXERCISES, forwarder
from tests.gate.kept import Held, Table
from tests.processes import succeeds
from tests.raw import ROOT

WORK = 10_000_000  # ns of a call
LOOKS = 3  # at the clock, of a call that nothing is added to
TABLES = sorted((ROOT / "results").glob("*/engine-gate.csv"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    to = tmp_path_factory.mktemp("engine") / "libengine.so.1"
    source = ROOT / "tests" / "gate" / "engine.c"
    flags = "-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-DWORK={WORK}"
    subprocess.run(["cc", *flags, f"-Wl,-soname,{to.name}", source, "-o", to], check=True)
    return to


@pytest.fixture
def forwards(engine, tmp_path):
    def through(share):
        clock = "clock_gettime=ticks"
        library = ctypes.CDLL(forwarder(tmp_path / "f.so", engine, "compute", share, clock))
        library.argument.restype = ctypes.c_void_p
        library.elapsed.restype = ctypes.c_int64
        library.compute.argtypes = [ctypes.c_void_p] * 2
        return library

    return through


@pytest.mark.parametrize("share", [0.0, 0.03, 0.1, 2.0])
def test_a_call_takes_the_share_longer_and_no_more(forwards, share):
    library = forwards(share)
    begin = library.elapsed()
    library.compute(None, None)
    added = library.elapsed() - begin - WORK
    assert share * WORK <= added <= share * WORK + 2 * LOOKS
    if not share:
        assert added == LOOKS


def test_arguments_and_results_are_the_engines(forwards):
    library = forwards(0.03)
    assert library.compute(11, 13) == 7
    assert [library.argument(which) for which in (0, 1)] == [11, 13]


def test_the_timed_call_is_the_slower_one():
    assert enginetest.CALL in Ggml.step.__code__.co_names


def test_a_line_names_the_last_commit_that_changed_the_gate(monkeypatch, tmp_path):
    monkeypatch.setattr(enginetest, "ROOT", tmp_path)

    def git(*words):
        who = "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"
        command = ["git", "-C", tmp_path, *who, *words]
        return succeeds(command).stdout.strip()

    def written(name, text, *, kept=True):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if kept:
            git("add", "-A")
            git("commit", "-qm", name)

    git("init", "-q")
    written("kvbench/gate/stages.py", "1")
    gate = git("rev-parse", "HEAD")[:12]
    written("kvbench/report/words.py", "1")
    written("kvbench/README.md", "1")
    written("results/a/engine-gate.csv", "1")
    assert enginetest.commit() == gate
    written("results/a/engine-gate.csv", "2", kept=False)
    assert enginetest.commit() == gate
    written("kvbench/new.py", "1", kept=False)
    assert enginetest.commit() == f"{gate}-dirty"


# ---- the table -----------------------------------------------------------------------------------


@pytest.fixture
def played(monkeypatch, tmp_path):
    """Play `wanted` gates of a commit, none of which takes time; return all lines."""
    monkeypatch.setattr(enginetest, "known", lambda engine: Known(engine, version="1.2"))
    monkeypatch.setattr(
        enginetest, "_run", lambda exercise, number, facts: facts | line(exercise, number)
    )
    table = tmp_path / "machine" / "engine-gate.csv"

    def run(commit, *options):
        monkeypatch.setattr(enginetest, "commit", lambda: commit)
        monkeypatch.setattr(sys, "argv", ["enginetest", str(table), *options])
        enginetest.main()
        return Table(table, COLUMNS).lines()

    return run


def line(exercise, number, verdict=EQUIVALENT):
    own = {"exercise": exercise.name, "case": exercise.case, "number": number}
    return own | {"verdict": verdict, "seconds": 1}


def test_a_commit_makes_every_gate_once_and_keeps_the_lines_of_others(played, capsys):
    wanted = sum(each.wanted for each in EXERCISES)
    first = played("a1")
    assert [each["commit"] for each in first] == ["a1"] * wanted
    assert len({(each["case"], each["number"]) for each in first}) == wanted
    assert played("a1") == first
    both = played("b2")
    assert both[:wanted] == first and [each["commit"] for each in both[wanted:]] == ["b2"] * wanted
    said = capsys.readouterr().out
    assert f"of commit b2: {wanted} gates; of earlier ones, which do not count: {wanted}\n" in said


def test_the_exercise_that_lacks_most_comes_first(played):
    names = [each["case"] for each in played("a1")]
    assert [names[:5].count(each.case) for each in EXERCISES] == [2, 2, 1]
    assert [names[:15].count(each.case) for each in EXERCISES] == [6, 6, 3]


def test_what_the_lines_prove():
    """Bounds with no hits or no misses have a closed form; the other one is from a table of Clopper
    and Pearson's.
    """
    same, slight, heavy = EXERCISES
    words = {
        same: [EQUIVALENT] * 9 + [INCONCLUSIVE],
        slight: [REGRESSION] * 8 + [INCONCLUSIVE, IMPROVEMENT],
        heavy: [REGRESSION] * 5,
    }
    lines = [
        {"commit": "b2"} | line(each, number, word)
        for each, own in words.items()
        for number, word in enumerate(own)
    ]
    lines.append({"commit": "a1"} | line(same, 0, REGRESSION))
    head, *said = enginetest.summary(lines, "b2")
    assert head.endswith("25 gates; of earlier ones, which do not count: 1")
    assert "9 EQUIVALENT, 0 REGRESSION or IMPROVEMENT" in said[0]
    assert f"fewer than {1 - 0.05 ** (1 / 10):.1%}" in said[0]
    assert "8 REGRESSION; with 95 % confidence more than 49.3%" in said[1]
    assert f"more than {0.05 ** (1 / 5):.1%}" in said[2]


def test_a_gate_is_one_line():
    """Its effect is that of the family with most points."""
    blank = incomparable("decode.ggml.position.f16/b1", "decode.ggml.position.f16 DRAM", "", "")
    measured = {"effect": 0.02, "low": 0.01, "high": 0.03, "detectable": 0.015}
    point = replace(blank, verdict=REGRESSION, **measured)
    other = replace(point, name="decode.ggml.position.bf16/b1", family="decode.ggml.position.bf16")
    of_one, of_two = point.family, "decode.ggml.*"
    families = (
        replace(point, name=of_one, family=of_one, effect=0.07),
        replace(point, name=of_two, family=of_two, effect=0.0312345),
    )
    whole = "gate", "base", "head", "machine", "2026-01-01", REGRESSION
    said = json.loads(
        json.dumps(plain(compared(Comparison(*whole, (point, other), families, (), ()))))
    )
    pairs = {"noise": 0.01, "launches": 12, "confirm": 7}
    made = enginetest._row(EXERCISES[1], 3, 99, Held(said, pairs, 61.4, 1))
    assert made.keys() == {*COLUMNS} - {"commit", "engine", "version"}
    assert (made["effect"], made["low"], made["high"]) == ("0.0312", "0.0100", "0.0300")
    assert (made["points"], made["confirmed_launches"], made["seconds"]) == (2, 7, 61)
    assert (made["case"], made["verdict"], made["code"]) == ("3%", REGRESSION, 1)


def test_a_gate_in_which_nothing_was_measured_is_a_line_too():
    said = {"created": "2026-01-01", "verdict": INCONCLUSIVE, "points": [], "families": []}
    pairs = {"noise": float("nan"), "launches": 0, "confirm": 0}
    made = enginetest._row(EXERCISES[0], 0, 1, Held(said, pairs, 3.0, 4))
    assert {made[name] for name in ("effect", "low", "detectable", "noise")} == {""}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_the_lines_that_are_shown_hold_what_they_must(path):
    """Of the last commit: no gate of a build against itself may find a change."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows and rows[0].keys() == {*COLUMNS}
    last = [each for each in rows if each["commit"] == rows[-1]["commit"]]
    same = {each["verdict"] for each in last if each["exercise"] == "same"}
    assert not same & {REGRESSION, IMPROVEMENT}
