"""kvbench history accept: what it stores, resets and refuses."""

import json
import multiprocessing
import time
from datetime import datetime

import pytest

from kvbench.history import accept, load
from kvbench.history.accepted import accepted
from kvbench.store import write_json
from kvbench.store.locks import locked
from tests.cli.test_cli import call, refused
from tests.history import made
from tests.history.made import AT, FELL, POINTS, ROSE, STEPPED
from tests.history.test_command import shown, steps


def accepting(root, point, run, *more):
    return call(
        "history",
        "accept",
        point,
        "--run",
        run,
        "--reason",
        "a new layout",
        "--root",
        str(root),
        *more,
    )


def test_two_users_who_accept_at_once_lose_nothing(root):
    """One process reads the accepted steps while another holds the lock; it must wait for the
    other's write.
    """
    history, (fell, *_) = load(root, print), [made.points(POINTS)[FELL].name]
    other = {
        "run": STEPPED,
        "points": ["p"],
        "reason": "mine",
        "who": "Bob",
        "when": "2026-01-01T00:00:00+00:00",
    }
    child = multiprocessing.get_context("fork").Process(
        target=accept, args=(history, fell, STEPPED, "a tile", "Ada")
    )
    with locked(root):
        child.start()
        time.sleep(0.3)
        write_json(root / "accepted.json", {"format": 1, "accepted": [other]})
    child.join()
    assert [each.who for each in accepted(root)] == ["Bob", "Ada"]


def test_accept_resets_the_baseline(capsys, root):
    assert accepting(root, "*", f"run-{AT + 1:04}", "--who", "Ada") == 0  # also beside the step
    facts = shown(capsys, root)
    assert steps(facts) == {FELL: [(STEPPED, "accepted")], ROSE: [(STEPPED, "accepted")]}
    found = next(
        p for p in facts["machines"][0]["points"] if p["point"] == made.points(POINTS)[FELL].name
    )
    assert found["baseline_from"] == STEPPED and found["baseline"] == pytest.approx(0.63, rel=0.03)
    (kept,) = json.loads((root / "accepted.json").read_text())["accepted"]
    assert (kept["run"], kept["reason"], kept["who"]) == (STEPPED, "a new layout", "Ada") and len(
        kept["points"]
    ) == 2
    assert datetime.fromisoformat(kept["when"]).tzinfo


def test_what_was_accepted_is_kept_beside_the_runs(capsys, root):
    # a folder's name is as good
    assert accepting(root, made.points(POINTS)[FELL].name, str(root / STEPPED)) == 0
    assert steps(shown(capsys, root)) == {FELL: [(STEPPED, "accepted")], ROSE: [(STEPPED, "open")]}


def test_accept_refuses_what_is_not_there(capsys, root):
    fell = made.points(POINTS)[FELL].name
    common = ("--reason", "so", "--root", str(root))
    refused(
        capsys,
        "history",
        "accept",
        fell,
        "--run",
        "run-9999",
        *common,
        words=["--run", "run-9999", "run-0029"],
    )
    refused(
        capsys, "history", "accept", "none", "--run", STEPPED, *common, words=["'none'", "patterns"]
    )
    refused(
        capsys, "history", "accept", fell, "--run", "run-0010", *common, words=["no point", STEPPED]
    )
    refused(
        capsys,
        "history",
        "accept",
        made.points(1)[0].name,
        "--run",
        STEPPED,
        *common,
        words=["they have no open step"],
    )
    refused(
        capsys,
        "history",
        "accept",
        fell,
        "--run",
        STEPPED,
        "--reason",
        " ",
        "--root",
        str(root),
        words=["--reason"],
    )
    assert not (root / "accepted.json").exists()
