"""All comparisons of a page, corrected together: against scipy, planted ratios, and pages on which
nothing differs.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, false_discovery_control, wilcoxon

from kvbench.analysis.answers.answer import Basis, Held, Reason, State, Unit
from kvbench.analysis.answers.pairs import answer, lead, pairs
from kvbench.analysis.limits.frames import points
from kvbench.results import load
from tests.analysis.answers.dealt import false_pages
from tests.analysis.answers.drawn import RESULTS
from tests.made_run import DECODE, MACHINE, MIB, beside, visit
from tests.report.between import planted, shares_of

HEAD, POSITION, PAGED = (replace(DECODE, layout=layout) for layout in ("head", "position", "paged"))
HOT = replace(DECODE, residency="hot")


def own(*of):
    return [visit(n, {"point": [9.0]}, point) for point in of for n in range(3)]


def table(records, most=0):
    return pairs(records, points(records, MACHINE), most)


def sets(logs, of=(HEAD, POSITION)):
    """A set. For each launch and each point after the first: the logarithm of its time over the
    first's.
    """
    return [
        beside(n, of, [[0.01]] + [[0.01 * math.exp(each)] for each in np.atleast_1d(row)])
        for n, row in enumerate(logs)
    ]


def word(logs):
    (found,) = table(own(HEAD, POSITION) + sets(logs))["word"]
    return found


def test_chances_are_corrected_together():
    rng = np.random.default_rng(7)
    every, far = (HEAD, POSITION, PAGED), (PAGED, replace(PAGED, block_tokens=32))
    logs = rng.normal([0.3, 0.02], 0.05, (8, 2))
    records = own(*every, far[1]) + sets(logs, every)
    found = table(records + sets(rng.normal(0.1, 0.1, 8), far))
    times = {"head": np.zeros(8), "position": logs[:, 0], "paged": logs[:, 1]}
    for row in found[found["factor"] == "layout"][:3].to_dict("records"):
        own_logs = times[row["other"]] - times[row["base"]]
        assert row["chance"] == pytest.approx(wilcoxon(own_logs, method="exact").pvalue)
    assert list(found["corrected"]) == pytest.approx(false_discovery_control(found["chance"]))
    assert (found["corrected"] > found["chance"]).any() and len(found) == 4


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        ([-0.1] * 7, "faster"),
        ([0.1] * 7, "slower"),
        ([0.02] * 7, "level"),  # surely there, but too small to matter
        ([0.01, -0.01, 0.02, -0.02, 0.01, 0.0, 0.01], "level"),
        ([0.1] * 5 + [-0.2, -0.3], "open"),
        ([0.1] * 5, "not tested"),
    ],
)
def test_words(logs, said):
    assert word(np.array(logs) + np.linspace(0, 1e-6, len(logs))) == said


def test_one_of_many_needs_more():
    """Seven launches on one side have a chance of 1 in 64: enough for one question, not for ten."""
    noise = np.array([0.1, -0.11, 0.12, -0.13, 0.09, -0.08, 0.01])
    contexts = [replace(DECODE.shape, context=n, capacity=n) for n in range(1000, 2000, 100)]
    found = []
    for shape in contexts:
        pair = replace(HEAD, shape=shape), replace(POSITION, shape=shape)
        found += own(*pair) + sets(np.abs(noise) if shape is contexts[0] else noise, pair)
    assert set(table(found)["word"]) == {"open"} and word(np.abs(noise)) == "slower"


def test_a_gain_from_l3():
    """Twice as fast as from memory, by launch. The number is that of the table of points."""
    rates = {"point": 40.0, "core": 99.0, "slice": 80.0, "memory": 20.0, "rotated": 20.0}
    noise = np.linspace(0.9, 1.1, 7)
    records = [
        visit(
            n,
            {name: [rate * (each if name == "point" else 1)] * 2 for name, rate in rates.items()},
            HOT,
            walked=9 * MIB,
            layers=1,
        )
        for n, each in enumerate(noise)
    ]
    (row,) = table(records).to_dict("records")
    (point,) = points(records, MACHINE).to_dict("records")
    assert (row["factor"], row["base"], row["other"]) == ("residency", "memory", "L3")
    assert row["ratio"] == point["l3_gain"] == pytest.approx(2 * 0.9 / 0.9, rel=0.2)
    assert (row["launches"], row["rounds"], row["visit"]) == (7, 14, HOT.name)
    assert row["chance"] == pytest.approx(2 / 2**7) and row["word"] == "faster"
    told = answer(row, "L3 helps")
    assert (told.held, told.subject, told.state) == (Held.FAR, (HOT.name,), State.DECIDED)


def test_an_answer_of_two():
    found = table(own(HEAD, POSITION) + sets([0.2 + 0.001 * n for n in range(7)]))
    over, under = lead(found, HEAD.name, POSITION.name), lead(found, POSITION.name, HEAD.name)
    assert over.figure.value == pytest.approx(math.exp(0.203))
    ends = math.exp(0.201), math.exp(0.205)  # of 28 means two are left out on each side
    assert (over.figure.low, over.figure.high) == pytest.approx(ends)
    assert under.figure.value == pytest.approx(1 / over.figure.value)
    assert under.figure.low == pytest.approx(1 / over.figure.high)
    assert (over.subject, over.against) == ((HEAD.name,), POSITION.name)
    assert (over.state, over.basis, over.held) == (State.DECIDED, Basis.ROUNDS, Held.POINT)
    assert over.figure.unit is Unit.TIMES and over.launches == 7 and over.corrected == 2 / 2**7
    nothing = lead(found, HEAD.name, PAGED.name)
    assert (nothing.state, nothing.reason) == (State.NOT_TESTED, Reason.NOT_MEASURED)


@pytest.mark.parametrize("pages", [5, pytest.param(200, marks=pytest.mark.full)])
def test_families_that_are_dealt_anew_differ_in_nothing(pages, tmp_path):
    """A run in which other memory was read between passes."""
    run = planted(tmp_path / "run", RESULTS / "zen4-kvm-2" / "quick", shares_of(32 * MIB))
    assert false_pages(load(run), pages) <= binom.ppf(0.97, pages, 0.05)


@pytest.mark.parametrize("pages", [5, pytest.param(200, marks=pytest.mark.full)])
def test_labels_that_are_dealt_anew_differ_in_nothing(pages):
    """One page in twenty may state a difference. The run itself states differences."""
    run = load(RESULTS / "zen4-kvm-2" / "quick")
    assert false_pages(run, pages) <= binom.ppf(0.97, pages, 0.05)
    assert run.contrasts["word"].isin(["faster", "slower"]).sum() > 30
