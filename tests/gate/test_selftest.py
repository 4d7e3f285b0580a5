"""The self-test's own tables: nothing is repeated or lost, and its conclusions are computed
right.
"""

import csv
import json
import sys
from pathlib import Path

import pytest

from kvbench.exports.printed import compared
from kvbench.gate import Build, Request
from kvbench.native import library_path
from kvbench.store import plain
from tests.gate import selftest
from tests.gate.kept import Held, pairs_of
from tests.gate.made_duels import outcome, player

TABLE = Path(__file__).resolve().parents[2] / "results" / "zen3-kvm-2" / "gate" / "runs.csv"
SIDES = [Build(name, library_path(), library_path().with_name("abi.h"), name) for name in "ab"]


def row(exercise, number, verdict="EQUIVALENT"):
    facts = {
        "exercise": exercise.name,
        "case": exercise.case,
        "number": number,
        "verdict": verdict,
        "seconds": 1,
    }
    return dict.fromkeys(selftest.COLUMNS, "") | facts


@pytest.fixture
def played(monkeypatch, tmp_path):
    """Play that many runs, none of which takes time."""
    monkeypatch.setattr(selftest, "_run", lambda exercise, number: row(exercise, number))

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["selftest", str(tmp_path), *options])
        selftest.main()
        return selftest.Table(tmp_path / "runs.csv", selftest.COLUMNS).rows()

    return run


def test_every_run_is_made_once(played, capsys):
    rows = played()
    made = [(each["exercise"], each["case"], each["number"]) for each in rows]
    assert len(made) == len(set(made)) == sum(exercise.wanted for exercise in selftest.EXERCISES)
    assert played() == rows
    assert "same -: 0 REGRESSION in 60 of 60 runs" in capsys.readouterr().out


def test_it_goes_on_where_it_stopped(played, tmp_path):
    assert played("--minutes", "0") == []
    first = [row(selftest.EXERCISES[0], number) for number in range(5)]
    for each in first:
        selftest.Table(tmp_path / "runs.csv", selftest.COLUMNS).append(each)
    rows = played("--exercise", "same")
    assert [each["number"] for each in rows] == [str(number) for number in range(60)]


@pytest.mark.parametrize(
    ("seen", "runs", "bound"), [(0, 60, 1 - 0.05 ** (1 / 60)), (0, 20, 0.1391), (1, 20, 0.2161)]
)
def test_bounds(seen, runs, bound):
    """The bound without an alarm has a closed form; the others are from tables of Clopper and
    Pearson's.
    """
    assert selftest.bound(seen, runs) == pytest.approx(bound, abs=1e-4)


def test_a_run_is_one_line(tmp_path):
    slow = next(each for each in selftest.EXERCISES if each.case == "kernel 10%")
    hit = "decode.flash.head.f32."
    execute = player(lambda point, side: 1 + 0.1 * (side == "head" and point.name.startswith(hit)))
    found, _ = outcome(*SIDES, Request(seed=1), 60.0, tmp_path, execute)
    pairs = pairs_of(tmp_path / "pairs.csv")
    said = json.loads(json.dumps(plain(compared(found))))
    line = selftest._row(slow, 0, 1, Held(said, pairs, 60.2, 1))
    assert line.keys() == set(selftest.COLUMNS)
    assert (
        line["verdict"],
        line["others_found"],
        line["launches"],
        line["confirmed_launches"],
    ) == (
        "REGRESSION",
        0,
        12,
        12,
    )
    assert line["injected_found"] == line["regressions"] + len(
        [f for f in found.families if f.verdict == "REGRESSION"]
    )
    # two sides of one per cent about the median of six
    assert float(line["noise"]) == pytest.approx(0.011, abs=0.0015)
    assert float(line["largest"]) == pytest.approx(0.1, abs=0.02)


def test_the_table_that_is_shown_holds_what_it_must():
    """For a build against itself, and beside a hog, no run may be red."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows and rows[0].keys() == set(selftest.COLUMNS)
    innocent = [each for each in rows if each["exercise"] != "slow"]
    assert innocent and "REGRESSION" not in {each["verdict"] for each in innocent}
