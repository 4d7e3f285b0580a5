"""How much longer attention takes for several queries: planted times, computed by hand."""

from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Basis, Held, State, Unit
from kvbench.analysis.answers.speculate import Worth
from kvbench.analysis.means.findings import findings
from kvbench.analysis.shown.roofline import roofline
from kvbench.analysis.shown.speculate import speculate as drawn
from kvbench.analysis.shown.staircase import staircase
from kvbench.results import geometries
from kvbench.sizing.known import measured_decodes
from tests.made_run import MACHINE, RUN
from tests.report.speculating import COUNTS, LAUNCHES, LONGER, family, point, records

MODELS = geometries(("llama-3-8b",))


def told(found, models=MODELS):
    return findings(RUN, found, MACHINE, models=models)


def one(*args, **facts):
    (line,) = told(family(*args, **facts)).answers.speculation.lines
    return line


def test_each_is_held_against_one_query_of_the_same_rounds():
    """The noise of a launch cancels. Memory takes 1, the core 0.6 of that per query."""
    line = one("i8")
    assert [step.queries for step in line.steps] == [2, 4, 8, 16]
    assert [step.drafts for step in line.steps] == [1, 3, 7, 15]
    values = [step.times.figure.value for step in line.steps]
    assert values == pytest.approx([1.2, 2.4, 4.8, 9.6], rel=1e-2)
    assert [step.core.figure.value for step in line.steps] == pytest.approx([1.2, 2.4, 4.8, 9.6])
    assert [step.limit.reason for step in line.steps] == ["core"] * 4
    assert line.limit.reason == "memory" and line.model == "llama-3-8b" and line.group == 4
    times = line.steps[1].times
    assert (times.figure.low, times.figure.high) == pytest.approx((2.37, 2.43), rel=0.01)
    assert times.figure.unit is Unit.LENGTH and times.launches == LAUNCHES
    assert (times.held, times.basis, times.state) == (Held.POINT, Basis.ROUNDS, State.DECIDED)
    assert times.subject == (line.steps[1].point,) and times.against == line.point


@pytest.mark.parametrize(
    ("dtype", "worth"),
    [
        ("f16", [Worth.FREE, Worth.MORE, Worth.MORE, Worth.MORE]),  # 1, 1.2, 2.4, 4.8
        ("i8", [Worth.MORE] * 4),
        ("q4_0", [Worth.HARDLY] * 4),  # as long as that many steps
    ],
)
def test_whether_it_pays(dtype, worth):
    assert [step.worth for step in one(dtype).steps] == worth


def test_as_long_as_so_many_steps_never_pays():
    """Every launch takes a little longer than that."""
    noise = [1.03 + 0.001 * launch for launch in range(LAUNCHES)]
    assert {step.worth for step in one("q4_0", noise=noise).steps} == {Worth.NEVER}


def test_noise_leaves_it_open():
    noise = (0.7, 1.3, 1.0, 0.8, 1.5, 0.9, 1.2)
    step = one("f16", noise=noise, counts=(1, 2)).steps[0]
    assert step.worth is Worth.NOT_CLEAR and step.times.state is State.OPEN


def test_too_few_launches_say_no_number():
    found = told(family("f16", noise=(1.0, 1.0, 1.0)))
    (line,) = found.answers.speculation.lines
    assert {(step.times.figure, step.core.figure) for step in line.steps} == {(None, None)}
    assert {step.worth for step in line.steps} == {Worth.NOT_CLEAR}
    assert list(drawn(found)["queries"]) == [1]


def test_without_one_query_nothing_is_said():
    """The same if the point with one query failed in the other points' launches."""
    own = family("f16", counts=COUNTS[1:])
    assert not told(own).answers.speculation.lines
    other = [each for each in family("f16", counts=(1,)) if each.launch == 0]
    apart = [replace(each, launch=20) for each in other]
    assert not told([*own, *apart]).answers.speculation.lines


def test_masks_are_lines_of_their_own():
    """The first screen and the figure show the usual mask."""
    found = told([*family("f16"), *family("f16", counts=(4, 8), mask="tree")])
    chain, tree = found.answers.speculation.lines
    assert found.answers.speculation.page == (chain,)
    assert (chain.mask, tree.mask, tree.point) == ("chain", "tree", chain.point)
    assert [step.queries for step in tree.steps] == [4, 8]
    pairs = found.contrasts
    assert {"4", "4 tree"} <= set(pairs.loc[pairs["factor"] == "queries", "other"])
    assert set(drawn(found)["mask"]) == {"chain"} and set(drawn(found)["line"]) == {"f16"}


def test_kernels_of_one_dtype_have_names_of_their_own():
    other = [replace(each, point=replace(each.point, layout="position")) for each in family("f16")]
    found = drawn(told([*family("f16"), *other, *family("i8")]))
    assert list(dict.fromkeys(found["line"])) == ["f16 flash head", "f16 flash position", "i8"]


def test_the_page_is_about_its_model_at_the_longest_context():
    own = told(records()).answers.speculation
    assert len(own.lines) == 18 and own.counts == (2, 4, 8, 16) and own.usual == 4
    places = {(line.model, line.group, line.context, line.threads) for line in own.page}
    assert places == {("llama-3-8b", 4, 16384, 2)}
    assert [line.dtype for line in own.page] == list(LONGER)


def test_the_number_nearest_to_five_is_told_first():
    found = told(family("f16", counts=(1, 2, 5, 8))).answers.speculation
    assert found.usual == 5 and found.page[0].at(5).drafts == 4 and found.page[0].at(4) is None


def test_a_member_is_no_ordinary_decode():
    """All other answers are the same with and without it."""
    lean, rich = told(family("f16", counts=(1,))), told(family("f16"))
    assert len(rich.points) == len(lean.points) + 4
    for name in ("decodes", "factors", "storing", "servers", "prefetch", "workload", "l3"):
        assert getattr(rich.answers, name) == getattr(lean.answers, name)
    assert repr(rich.answers.reads) == repr(lean.answers.reads)
    assert rich.tokens.equals(lean.tokens) and rich.saturation.equals(lean.saturation)
    assert len(measured_decodes(rich, "0-1")) == len(measured_decodes(lean, "0-1")) == 1
    for draw in (roofline, staircase):
        assert len(draw(rich)) == len(draw(lean))


def test_the_core_speed_of_one_query_is_none_of_several():
    """A point that beats its window walk says nothing about other numbers of queries."""
    own = family("f16", counts=(1,))
    slow = [
        replace(
            each,
            samples=tuple(
                replace(s, seconds=4 * s.seconds) if s.program == "core" else s
                for s in each.samples
            ),
        )
        for each in own
    ]
    found = told([*slow, *family("f16", counts=(2,))]).points.set_index("q_len")
    alone = told(family("f16", counts=(2,))).points.set_index("q_len")
    assert found.loc[2, "core_fraction"] == alone.loc[2, "core_fraction"]


def test_the_figure_begins_with_one_query():
    found = told(family("i8"))
    table = drawn(found)
    assert list(table["queries"]) == list(COUNTS) and table["times"].iloc[0] == 1
    names = found.points.loc[table["row"], "name"]
    assert list(names) == [point("i8", queries=count).name for count in COUNTS]
