"""Peers beside ours, from made-up records: ratios of the same rounds by launch, with the judge's
interval if there is one.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import wilcoxon

from kvbench.analysis.means.beside import Rule
from kvbench.analysis.means.findings import findings
from kvbench.analysis.means.ratios import UNDECIDED
from kvbench.model import HEADS, Engine
from kvbench.report.peers import launches, text
from kvbench.report.tables import peers as sheets
from kvbench.report.words import said
from kvbench.report.words.findings import sentences
from kvbench.results import geometries
from tests.made_run import DECODE, MACHINE, failed, visit

PEER = replace(DECODE, engine="right")
ROUNDS = [1.0, 0.4, 1.6]  # the host's speed in each: both slow down together


def launch(number, beside, ours=DECODE, share=0.8):
    """The records of one launch. `beside`: by point, its time over ours; ours reaches `share` of a
    read.
    """
    speed = 1 + 0.1 * number
    rates = {
        "point": [10.0 * share * speed * each for each in ROUNDS],
        "twin": [10.0 * speed * each for each in ROUNDS],
    }
    yield visit(number, rates, ours)
    for point, longer in beside.items():
        slower = {"point": [rate / longer for rate in rates["point"]], "twin": rates["twin"]}
        yield visit(number, slower, point, function=f"{point.engine}_attend", flags="threads 2")


@cache
def run(*times):
    """A launch for each of `times`."""
    records = [each for n, longer in enumerate(times) for each in launch(n, {PEER: longer})]
    return findings("mine", records, MACHINE)


def judged(ratios):
    """The estimate of Hodges and Lehmann, and the range of all six launches, beyond which signed
    ranks reject at 5 %.
    """
    found = np.log(ratios)
    pairs = [(one + other) / 2 for place, one in enumerate(found) for other in found[place:]]
    return pytest.approx([math.exp(np.median(pairs)), min(ratios), max(ratios)])


SIX = [2.0, 2.1, 1.9, 2.2, 2.05, 1.95]


def test_six_launches_have_an_interval():
    """With six launches, signed ranks reject at 5 % what lies beyond all of them: the interval is
    their range.
    """
    found = run(*SIX).beside
    (cell,) = found.cells
    assert [cell.times, cell.low, cell.high] == judged(SIX) and cell.launches == 6
    assert cell.word == "slower" and wilcoxon(np.log(SIX), method="exact").pvalue <= 0.05
    together = found.together
    assert together.cells == 1 and [together.times, together.low, together.high] == judged(SIX)
    told = said("peers", "summary", found)
    assert "Ours are 2.02 (1.9 to 2.2) times as fast as the fastest peer" in told, told


@pytest.mark.parametrize("count", [1, 2, 5])
def test_fewer_decide_nothing(count):
    """However clear the difference seems."""
    found = run(*[3.0] * count)
    (cell,) = found.beside.cells
    assert cell.word == found.beside.together.word == UNDECIDED
    assert cell.low is None and found.beside.together.high is None
    assert f"Not decided whether ours or the fastest peer is faster: {count} launch" in " ".join(
        text(found)
    )


def test_a_peer_that_is_faster_is_said_to_be():
    found = run(0.5, 0.52, 0.48, 0.51, 0.49, 0.53)
    assert found.beside.cells[0].word == "faster"
    assert "Peers are faster" in said("peers", "summary", found.beside)


def test_what_is_level_or_unclear_is_no_ranking():
    same, open_ = run(1.01, 0.99, 1.02, 0.98, 1.0, 1.01), run(1.3, 0.8, 1.2, 0.9, 1.1, 0.85)
    assert (
        same.beside.together.word == "same within noise" and open_.beside.together.word == UNDECIDED
    )
    assert "Not decided: ours are" in said("peers", "summary", open_.beside)


def test_terminal_and_page_say_the_same():
    """They also say how far the run can be trusted, as after a sweep."""
    found = run(*SIX)
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
        (2, "2 launches will be made: too few to decide anything; --launches 6 is enough"),
        (6, "6 launches will be made: every ratio will have an interval"),
    ],
)
def test_the_first_line(count, words):
    assert launches(count).startswith(words)


# ---- what a row says -----------------------------------------------------------------------------


def test_a_row_has_its_share_with_an_interval():
    rows = run(*SIX).peers.set_index("engine")
    shares = [0.8 / longer for longer in SIX]
    own = rows.loc["right", ["share", "share_low", "share_high"]]
    assert list(own) == judged(shares)
    few = run(*SIX[:5]).peers.set_index("engine").loc["right"]
    assert few["share"] == pytest.approx(np.median(shares[:5])) and np.isnan(few["share_low"])


def test_a_row_says_what_ran():
    known = Engine("right", "1.2", "/lib/right.so", "ab12", "/bin/other")
    records = [each for n, longer in enumerate(SIX) for each in launch(n, {PEER: longer})]
    found = findings("mine", records, MACHINE, engines=[known])
    rows = found.peers.set_index("engine")
    facts = ["version", "library", "sha256", "python", "function", "flags"]
    assert list(rows.loc["right", facts]) == [
        *("1.2", "/lib/right.so", "ab12", "/bin/other"),
        *("right_attend", "threads 2"),
    ]
    assert rows.at["kvbench", "function"] == DECODE.kernel
    assert text(found)[-1].endswith("right 1.2 (sha256 ab12)")
    engines = sheets(found.beside)[2]
    (row,) = engines.rows
    assert [cell.text for cell in row] == ["right", *rows.loc["right", facts]]


def test_a_run_that_tells_of_no_library():
    assert list(run(*SIX).peers[["version", "sha256"]].iloc[1]) == ["", ""]
    assert text(run(*SIX))[-1].endswith("right")


def test_what_an_engine_refuses_stands_there_once():
    words, no = "no kernel for head_dim 64", replace(DECODE, engine="no")
    records = [
        each
        for n, longer in enumerate(SIX)
        for each in (*launch(n, {PEER: longer}), failed(n, no, f"the peer no: {words}"))
    ]
    found = findings("mine", records, MACHINE)
    told = " ".join(" ".join(text(found)).split())
    assert f"no, head, has no number in 6 launches: {words}" in told and told.count(words) == 1
    assert found.peers.set_index("engine").at["no", "error"] == f"the peer no: {words}"
    assert found.beside.cells[0].best == "right, head"


def test_several_queries_a_step_are_a_cell_of_their_own():
    """With the model's name, but without tokens per second: a step of a model has one query."""
    four = replace(DECODE, shape=replace(DECODE.shape, q_len=4))
    records = [
        each
        for n, longer in enumerate(SIX)
        for each in (
            *launch(n, {PEER: longer}),
            *launch(n, {replace(four, engine="right"): 3}, four),
        )
    ]
    (model,) = geometries(["llama-3-8b"])
    heads = {name: getattr(DECODE.shape, name) for name in HEADS}
    found = findings("mine", records, MACHINE, models=[replace(model, **heads)])
    one, several = found.beside.cells
    assert (one.q_len, several.q_len) == (1, 4)
    assert one.model == several.model == "llama-3-8b"
    assert several.times == pytest.approx(3.0)
    rows = found.peers[found.peers["q_len"] == 4]
    assert list(rows["engine"]) == ["kvbench", "right"] and rows["tokens_per_second"].isna().all()
    ours, right = (
        rows[["queries_times", "queries_times_low", "queries_times_high"]].to_numpy().tolist()
    )
    assert ours == pytest.approx([1.0] * 3)
    assert right == judged([3 / longer for longer in SIX])
    assert any("tokens, 4 queries a step" in line for line in text(found))
    assert not any("1 query a step" in line for line in text(found))


# ---- which cells are the worst -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "share", "holds"),
    [
        (0.98, 0.90, True),
        (0.979, 0.99, False),
        (1.049, 0.89, False),
        (1.05, 0.89, True),
        (1.04, None, False),
        (None, 0.95, None),
    ],
)
def test_how_far_ours_should_lead(low, share, holds):
    assert Rule().holds(low, share) is holds


LEADS = {1: 3.0, 2: 1.02, 3: 1.01, 4: 1.5, 5: 2.0}  # by context, in thousands of tokens
SHARES = {2: 1.0}  # share of a read that ours reaches there; the peer then reaches 98 %


def test_the_cells_in_which_ours_lead_least_come_first():
    """Of two nearly equal cells, the rule holds where the peer almost reaches the read."""
    records = []
    for context, lead in LEADS.items():
        ours = replace(DECODE, shape=replace(DECODE.shape, context=context * 1000, capacity=8000))
        peer = replace(ours, engine="right")
        for n, wobble in enumerate([1.0, 1.02, 0.98, 1.01, 0.99, 1.0]):
            records += launch(n, {peer: lead * wobble}, ours, SHARES.get(context, 0.8))
    found = findings("mine", records, MACHINE)
    worst = [each.context for each in found.beside.listed]
    assert worst == [3000, 2000, 4000]
    assert [each.context for each in found.beside.ranked] == [*worst, 5000, 1000]
    holds = {each.context // 1000: each.holds for each in found.beside.cells}
    assert holds == {1: True, 2: True, 3: False, 4: True, 5: True}
    told = said("peers", "summary", found.beside)
    assert told.startswith("Ours are") and "In 4 of 5 cells ours reach their goal." in told
    assert "3,000 tokens: ours are 1.01 (0.99 to 1.03) times as fast as right, head" in told
    assert "at 79% of a read: same within noise." in told
    rows = sheets(found.beside)[0].rows
    assert [row[-1].text for row in rows] == ["no", "yes", "yes", "yes", "yes"]


# ---- two builds of an engine ---------------------------------------------------------------------

OLD, NEW = (replace(DECODE, engine=f"right@{label}") for label in ("old", "new"))


@pytest.mark.parametrize(("first", "other"), [("old", "new"), ("new", "old")])
def test_two_builds_of_an_engine(first, other):
    """Their ratio is from the same rounds, whichever build was named first."""
    olds, news = [2.0, 2.2, 2.1, 1.9, 2.3, 2.05], [1.8, 2.0, 1.95, 1.7, 2.1, 1.8]
    records = [
        each
        for n, times in enumerate(zip(olds, news, strict=True))
        for each in launch(n, dict(zip((OLD, NEW), times, strict=True)))
    ]
    asked = [Engine(f"right@{label}", "1", "", "") for label in (first, other)]
    found = findings("mine", records, MACHINE, engines=asked)
    (pair,) = found.beside.builds
    assert (pair.engine, pair.base, pair.head) == ("right", first, other)
    ratios = [one / two for one, two in zip(news, olds, strict=True)]
    ratios = ratios if first == "old" else [1 / each for each in ratios]
    (cell,) = pair.cells
    assert [cell.times, cell.low, cell.high] == judged(ratios) and cell.launches == 6
    assert [pair.times, pair.low, pair.high] == judged(ratios)
    word = "faster" if first == "old" else "slower"
    assert pair.word == cell.word == word
    for told in (said("peers", "summary", found.beside), " ".join(" ".join(text(found)).split())):
        assert f"right: {other} takes" in told and f"of {first}'s time" in told
    assert sheets(found.beside)[1].rows[0][2].text == first


def test_cells_without_an_interval_are_said():
    """One cell has six launches, another has two."""
    long = replace(DECODE, shape=replace(DECODE.shape, context=2048, capacity=2048))
    records = [each for n in range(6) for each in launch(n, {PEER: 2.0})]
    for n in range(2):
        records += launch(n, {replace(long, engine="right"): 3.0}, long)
    found = findings("mine", records, MACHINE)
    told = said("peers", "summary", found.beside)
    assert "In 1 of 1 cell with an interval (2 in all) ours reach their goal." in told
    assert told.startswith("Not decided") and "2048 tokens" not in told


def test_two_builds_and_few_launches():
    records = [each for n in range(2) for each in launch(n, {OLD: 2.0, NEW: 1.0})]
    found = findings("mine", records, MACHINE)
    (pair,) = found.beside.builds
    assert pair.word == UNDECIDED and pair.low is None
    assert "right: not decided after 2 launches whether old or new" in " ".join(text(found))
