"""Peers beside ours, from made-up records: ratios of the same rounds, by launch, with the judge's
interval or none.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import wilcoxon

from kvbench.analysis.means.findings import findings
from kvbench.analysis.means.peers import UNDECIDED
from kvbench.report.peers import launches, text
from kvbench.report.words import said
from kvbench.report.words.findings import sentences
from tests.made_run import DECODE, MACHINE, visit

PEER = replace(DECODE, engine="right")
ROUNDS = [1.0, 0.4, 1.6]  # the host's speed in each: both slow down together


def run(times, point=PEER):
    """A launch for each of `times`: how many times as long the peer takes as ours."""
    records = []
    for launch, longer in enumerate(times):
        speed = 1 + 0.1 * launch
        ours = {
            "point": [8.0 * speed * each for each in ROUNDS],
            "twin": [10.0 * speed * each for each in ROUNDS],
        }
        theirs = {
            name: [rate / (longer if name == "point" else 1) for rate in own]
            for name, own in ours.items()
        }
        records += [visit(launch, ours), visit(launch, theirs, point)]
    return findings("mine", records, MACHINE)


SIX = [2.0, 2.1, 1.9, 2.2, 2.05, 1.95]


def test_six_launches_have_an_interval():
    """Of six launches signed ranks reject, at 5 %, what lies beyond all of them: the interval is
    their range.
    """
    found = run(SIX).beside
    (cell,) = found.cells
    assert (cell.low, cell.high) == (pytest.approx(1.9), pytest.approx(2.2)) and cell.launches == 6
    logs = np.log(SIX)
    pairs = [(one + other) / 2 for place, one in enumerate(logs) for other in logs[place:]]
    assert cell.times == pytest.approx(math.exp(np.median(pairs)))
    assert cell.word == "slower" and wilcoxon(logs, method="exact").pvalue <= 0.05
    together = found.together
    assert (together.cells, together.times, together.low) == (
        1,
        pytest.approx(cell.times),
        pytest.approx(cell.low),
    )
    told = said("peers", "summary", found)
    assert "Ours are 2.02 times as fast (1.9 to 2.2)" in told.replace("1.90", "1.9").replace(
        "2.20", "2.2"
    ), told


@pytest.mark.parametrize("count", [1, 2, 5])
def test_fewer_decide_nothing(count):
    """However clear it seems."""
    found = run([3.0] * count)
    (cell,) = found.beside.cells
    assert cell.word == found.beside.together.word == UNDECIDED
    assert cell.low is None and found.beside.together.high is None
    assert f"Not decided whether ours or the fastest peer is faster: {count} launch" in " ".join(
        text(found)
    )


def test_a_peer_that_is_faster_is_said_to_be():
    found = run([0.5, 0.52, 0.48, 0.51, 0.49, 0.53])
    assert found.beside.cells[0].word == "faster"
    assert "Peers are faster" in said("peers", "summary", found.beside)


def test_what_is_level_or_unclear_is_no_ranking():
    same, open_ = run([1.01, 0.99, 1.02, 0.98, 1.0, 1.01]), run([1.3, 0.8, 1.2, 0.9, 1.1, 0.85])
    assert (
        same.beside.together.word == "same within noise" and open_.beside.together.word == UNDECIDED
    )
    assert "Not decided: ours are" in said("peers", "summary", open_.beside)


def test_terminal_and_page_say_the_same():
    """And how far the run can be trusted, as a sweep does."""
    found = run(SIX)
    (sentence,) = (each.text for each in sentences(found) if each.topic == "peers")
    printed = " ".join(" ".join(text(found)).split())
    assert sentence in printed and any(
        f"{grade} RUN:" in printed for grade in ("GOOD", "FAIR", "POOR")
    )


def test_a_peer_that_failed_has_no_ratio():
    records = [
        visit(0, {"point": [8.0], "twin": [10.0]}),
        replace(visit(0, {"point": [1.0]}, PEER), error="it hangs"),
    ]
    found = findings("mine", records, MACHINE)
    assert found.beside.cells[0].times is None and found.beside.together.cells == 0
    assert "No peer has a rate." in " ".join(text(found))


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (2, "2 launches will be made: fewer than 6 decide nothing"),
        (6, "6 launches will be made: every ratio is stated"),
    ],
)
def test_the_first_line(count, words):
    assert launches(count).startswith(words)
