"""Formats of K and V, and what is done to scores, as a page shows them: of a run whose times were
computed.
"""

import json

import pytest

from kvbench.analysis.answers.mixed import Other
from kvbench.analysis.means.findings import findings
from kvbench.report.figures import every
from kvbench.report.figures.look import Look
from kvbench.report.figures.mixed import mixed
from kvbench.report.formats import costs
from kvbench.report.formats import mixed as formats
from kvbench.report.tables import points
from kvbench.report.words.first import tiles
from kvbench.results import geometries
from tests.cli.test_cli import call
from tests.made_run import MACHINE, RUN
from tests.report import made, mixing
from tests.report.consistency.answered import answers
from tests.report.consistency.claims import disagreeing
from tests.report.consistency.reading import Report, rows_of
from tests.report.drawn import drawn, found_in, parts, strange_colours
from tests.report.texts import blocks, plain_text, unnamed

MODEL = "llama-3-8b"
TOLD = "i8: fastest format with an error of 1% of the output or less; with heavy keys f16+q8_0"


@pytest.fixture(scope="module")
def found():
    return findings(RUN, mixing.records(), MACHINE, models=geometries((MODEL,)))


def test_the_first_tile_is_the_answer(found):
    tile = tiles(found.answers)[0]
    assert (tile.title, tile.value) == ("Format of K, V", "i8")
    assert tile.detail == (
        "fastest format with an error of 1% of the output or less. By error: up to 0.1% of the"
        " output f16; up to 1% of it i8, with heavy keys f16+q8_0; up to 10% of it i8+q4_0 (as"
        " fast: q8_0+q4_0 dot), with heavy keys q8_0+q4_0 dot"
    )


def test_the_figure_names_each_format_in_each_panel(found):
    figure, text = drawn(mixed, found)
    assert figure.title == TOLD
    words = [each.partition("</text>")[0].rpartition(">")[2] for each in text.split("<text")]
    names = ["f16", "f16+q8_0", "q8_0", "q8_0+q4_0 dot", "q4_0 dot", "i8", "i8 by channel", "e4m3"]
    assert {name: words.count(name) for name in names} == dict.fromkeys(names, 2)
    assert {"0.1", "1", "10", "diamond: a pair, K + V"} <= set(words)
    assert {*parts(text)} == set(figure.table["row"]) and not strange_colours(text)


def test_names_do_not_lie_on_each_other(found):
    """Nor on a mark: as they are drawn."""
    canvas = drawn(mixed, found)[0].canvas()
    canvas.draw_without_rendering()
    for axes in canvas.axes:
        boxes = [text.get_window_extent().padded(-1) for text in axes.texts]
        assert len(boxes) > 5
        assert not [1 for n, box in enumerate(boxes) for other in boxes[:n] if box.overlaps(other)]
        inside = axes.get_window_extent()
        assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes)
        assert all(inside.y0 <= box.y0 and box.y1 <= inside.y1 for box in boxes)


def test_a_pair_has_the_colour_of_k_and_the_mark_of_v(found):
    look = Look(found.points)
    assert look.colour("q8_0+q4_0") == look.colour("q8_0") != look.colour("q4_0")
    assert look.mark("q8_0+q4_0") == look.mark("q4_0") != look.mark("q8_0")


def test_only_a_run_with_pairs_or_channels_shows_it():
    other = found_in(made.whole(made.ONE))
    assert "mixed" not in [figure.name for figure in every(other)]
    assert formats(other.answers).rows == () and costs(other).rows == ()
    assert tiles(other.answers)[0].title == "Fastest decode"


def test_tables(found):
    own = formats(found.answers)
    rows = {row[0].text: dict(zip(own.heads, row, strict=True)) for row in own.rows}
    pair = {head: cell.text for head, cell in rows["q8_0+q4_0 dot"].items()}
    assert pair["bytes a token"] == "52 KiB" and pair["tokens/s"].startswith("76.9 (")
    assert pair["error, % of the output, normal keys"] == "8.7, leads"
    assert pair["over K's format"].startswith("1.31 (") and pair["over by token"] == ""
    assert rows["i8 by channel"]["over by token"].text.startswith("1.00 (")
    assert rows["q4_0"]["error, % of the output, normal keys"].text == "12, behind q4_0 dot"
    assert rows["q8_0 dot"]["format error, % of the output, normal keys"].text == "0.74"
    own = [[cell.text for cell in row] for row in costs(found).rows]
    assert [row[:2] for row in own] == [["cap 50", "1.25"], ["sinks", "1.00"], ["alibi 8", "1.10"]]
    shown = [row[0].text for row in points(found).rows]
    assert "head q8_0+q4_0" in shown and len(set(shown)) == len(shown)
    assert sum("sinks" in name for name in shown) == 1


@pytest.fixture
def told(tmp_path, capsys):
    """The page, the terminal's text and the JSON of the run."""
    records = mixing.records()
    asked = list(dict.fromkeys(record.point for record in records))
    run = made.directory(tmp_path / "run", records, asked, machine=MACHINE, models=(MODEL,))
    assert call("report", str(run)) == 0
    terminal = capsys.readouterr().out
    assert call("report", str(run), "--format", "json") == 0
    folder = run / "report"
    figures = {"mixed": rows_of(folder / "figures" / "mixed.csv")}
    whole = json.loads(capsys.readouterr().out)
    return Report((folder / "index.html").read_text(), figures, terminal, whole)


def test_page_terminal_and_json_say_the_same(told):
    page, printed, text = told.page, " ".join(told.terminal.split()), plain_text(told.page)
    sentence = "q8_0+q4_0 dot is 1.31x (1.31 to 1.31) as fast as q8_0."
    assert "K, V i8 fastest format with an error of 1% of the output or less." in printed
    assert "q8_0+q4_0 dot 52 KiB 76.9 (75.4-78.5) 8.7 leads 9.4 leads 1.31" in printed
    assert TOLD in text and sentence in text and sentence in printed
    assert page.index('id="formats"') < page.index('id="mixed"') < page.index('id="hero"')
    assert text.count("is from the exact output without storing") == 1
    assert not [one for block in blocks(page) for one in unnamed(block) if "output" in one]
    claims = list(answers(told))
    assert not [str(conflict) for conflict in disagreeing(claims)]
    pair = {(each.place, each.quantity) for each in claims if each.subject == "q8_0+q4_0 dot"}
    assert {(place, "error, heavy") for place in ("JSON", "formats", "mixed.csv")} <= pair
    own = told.json["answers"]["mixed"]
    (against, _) = next(each["against"] for each in own["formats"] if each["dtype"] == "q8_0+q4_0")
    assert against["other"] == Other.K
    assert against["times"]["figure"]["value"] == pytest.approx(1.31, abs=0.005)
    assert [each["what"] for each in own["costs"]] == ["cap 50", "sinks", "alibi 8"]
