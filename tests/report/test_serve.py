"""What padding costs a batch of real requests, as a page shows it: of a run whose times were
computed.
"""

import json
from dataclasses import replace
from statistics import median

import pytest

from kvbench.analysis.answers.answer import State
from kvbench.analysis.means.findings import findings
from kvbench.report.figures import every
from kvbench.report.figures.serve import serve
from kvbench.report.tables import serving as sheet
from kvbench.results import geometries
from tests.cli.test_cli import call
from tests.made_run import RUN
from tests.plan.test_plan import TWO
from tests.report import made, serving
from tests.report.drawn import drawn, found_in, parts, strange_colours
from tests.report.texts import plain_text

MODEL = geometries(("llama-3-8b",))
LAYERS = 32 / 4


@pytest.fixture(scope="module")
def found():
    return findings(RUN, serving.records(), TWO, models=MODEL)


def of(found, batch, dtype="f16", layout="head"):
    (own,) = [
        each
        for each in found.answers.serving.batches
        if (each.batch, each.dtype, each.layout) == (batch, dtype, layout)
    ]
    return own


def steps():
    """Seconds of all layers, by point."""
    own = [each for each in serving.plan().points if hasattr(each, "shape")]
    times = {p: [serving.seconds(p, n) for n in range(serving.LAUNCHES)] for p in own}
    return {point.name: LAYERS * median(each) for point, each in times.items()}


def test_every_batch_is_told_each_way(found):
    own = found.answers.serving
    assert [(b.dtype, b.layout, b.batch, len(b.ways)) for b in own.batches] == [
        (dtype, layout, batch, ways)
        for dtype, layout in (("f16", "head"), ("f16", "paged"), ("i8", "head"), ("i8", "paged"))
        for batch, ways in ((1, 1), (4, 3), (16, 3))
    ]
    expected = steps()
    for batch in own.batches:
        for way in batch.ways:
            seconds = expected[way.point]
            assert way.step.figure.value == pytest.approx(seconds)
            assert way.whole.figure.value == pytest.approx(batch.batch / seconds)
            assert way.sequence.figure.value == pytest.approx(1 / seconds)


def test_the_figure_has_its_numbers_and_the_answer_as_its_title(found):
    figure, text = drawn(serve, found)
    assert figure.title == "Padding 16 requests to the longest makes a step 1.37x as long (f16)"
    table = figure.table
    assert set(table["layout"]) == {"head"} and len(table) == 14
    expected, names = steps(), found.points["name"]
    for row in table.to_dict("records"):
        assert row["step_ms"] == pytest.approx(1e3 * expected[names[row["row"]]])
    padded = table[table["way"] == "padded"]
    ratios = padded["step_ms"] / padded["as_they_are_ms"]
    assert (abs(ratios / padded["padding"] - 1) < 0.02).all()
    assert {"16 requests", "1 request", "padded: 2,404 each"} <= words(text)
    assert {"not padded: 263 to 2,404", "equal: 1,246 each"} <= words(text)
    assert {"f16 cache", "interval over launches", "359 ms, 1.37x as long"} <= words(text)
    assert {*parts(text)} == set(table["row"]) and not strange_colours(text)
    assert "4 layers" in figure.about and "all 32" in figure.about


def words(text):
    return {each.partition("</text>")[0].rpartition(">")[2] for each in text.split("<text")}


@pytest.mark.parametrize(
    ("state", "title", "told"),
    [
        (State.LEVEL, "makes a step hardly longer (f16)", "1.37x as long: level"),
        (State.OPEN, "What does padding cost a batch of requests?", "1.37x as long: not decided"),
    ],
)
def test_what_is_not_decided_is_no_title(found, state, title, told):
    own = found.answers.serving
    batches = tuple(
        replace(each, padding=replace(each.padding, state=state)) for each in own.batches
    )
    answers = replace(found.answers, serving=replace(own, batches=batches))
    figure, text = drawn(serve, replace(found, answers=answers))
    assert figure.title.endswith(title) and f"359 ms, {told}" in words(text)


def test_a_table_has_all_layouts(found):
    rows = sheet(found).rows
    assert len(rows) == 28
    padded = [[cell.text for cell in row] for row in rows if row[3].text == "padded"]
    assert len(padded) == 8 and padded[1][:6] == ["f16", "head", "16", "padded", "2,404", "359 ms"]
    assert padded[1][7:] == ["1.37 (1.37-1.37)", "decided", "2.79", "44.6"]
    assert rows[5][4].text == "263 to 2,404"
    assert sheet(found_in([])).rows == ()


def test_steps_that_are_told_so_are_not_told_of_fewer_layers(found):
    assert found.answers.steps.rows == () and len(found.answers.serving.points) == 28


def test_only_a_run_of_steps_shows_it():
    assert "serve" not in [figure.name for figure in every(found_in(made.whole(made.ONE)))]


def test_page_terminal_and_json_say_the_same(tmp_path, capsys):
    run = made.directory(
        tmp_path / "run", serving.records(), serving.plan().points, machine=TWO,
        models=("llama-3-8b",),
    )  # fmt: skip
    assert call("report", str(run)) == 0
    told = "Padding 16 requests to the longest makes a step 1.37x"
    said = " ".join(capsys.readouterr().out.split())
    assert told in said and "16 f16, head 262 ms 262 ms 359 ms 1.37" in said
    page = (run / "report" / "index.html").read_text()
    assert told in plain_text(page) and page.index('id="serve"') < page.index('id="points"')
    assert call("report", str(run), "--format", "json") == 0
    own = json.loads(capsys.readouterr().out)["answers"]["serving"]
    assert own["padding"]["figure"]["value"] == pytest.approx(1.37, abs=0.005)
    assert own["padding"] == own["batches"][2]["padding"]
