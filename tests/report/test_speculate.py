"""How many draft tokens are worth verifying, as a page shows it: of a run whose times were
computed.
"""

import json
from dataclasses import replace

import pytest

from kvbench.analysis.answers.speculate import Worth
from kvbench.analysis.means.findings import findings
from kvbench.report.drafts import drafting, queries
from kvbench.report.figures import every
from kvbench.report.figures.speculate import speculate
from kvbench.report.tables import points
from kvbench.report.words import said
from kvbench.report.words.first import tiles
from kvbench.results import geometries
from tests.cli.test_cli import call
from tests.made_run import MACHINE, RUN
from tests.report import made, speculating
from tests.report.drawn import drawn, found_in, parts, strange_colours
from tests.report.texts import plain_text

MODEL = "llama-3-8b"
TOLD = "Drafting 3 tokens pays if more than 0.2 are accepted (f16)"


@pytest.fixture(scope="module")
def found():
    return findings(RUN, speculating.records(), MACHINE, models=geometries((MODEL,)))


def test_the_first_tile_is_the_answer(found):
    tile = tiles(found.answers)[0]
    assert (tile.title, tile.value) == ("Draft 3 tokens?", "pays above 0.2 accepted")
    assert "more than 0.2 must be accepted a step with f16, 1.4 with i8" in tile.detail
    assert "for 4 queries takes 1.20 (1.19 to 1.21) times as long as for 1 with f16" in tile.detail
    assert f"{MODEL}, 4 query heads a KV head, 16,384 tokens, 2 threads" in tile.detail
    assert tiles(found_in(made.whole(made.ONE)).answers)[0].title == "Fastest decode"


@pytest.mark.parametrize(
    ("worth", "value", "title", "end"),
    [
        (Worth.FREE, "free", "takes attention no longer (f16)", "any accepted draft is a gain."),
        (Worth.MORE, "pays above 0.2 accepted", "if more than 0.2 are accepted (f16)",
         "worth it if more than 0.2 of the drafts are accepted."),
        (Worth.HARDLY, "hardly pays", "Drafting 3 tokens hardly pays (f16)",
         "hardly worth it, because 4 steps may take no longer."),
        (Worth.NEVER, "never pays", "Drafting 3 tokens never pays (f16)",
         "never worth it, because 4 steps take no longer."),
        (Worth.NOT_CLEAR, "not decided", "How many draft tokens are worth verifying?",
         "not decided whether that is longer."),
    ],
)  # fmt: skip
def test_every_verdict_has_its_words(found, worth, value, title, end):
    own = found.answers.speculation
    lines = tuple(
        replace(line, steps=tuple(replace(step, worth=worth) for step in line.steps))
        for line in own.lines
    )
    own = replace(own, lines=lines)
    assert tiles(replace(found.answers, speculation=own))[0].value == value
    assert said("speculate", "title", own).endswith(title)
    assert end in said("speculate", "sentence", own)


def test_the_figure_has_a_panel_for_each_kind_of_heads_and_context(found):
    figure, text = drawn(speculate, found)
    assert figure.title == TOLD
    words = {each.partition("</text>")[0].rpartition(">")[2] for each in text.split("<text")}
    assert {f"{heads} a KV head, {context} tokens" for context in ("4k", "16k") for heads in
            ("1 query head", "4 query heads", "8 query heads")} <= words  # fmt: skip
    assert {"f16", "hollow: the core limits", "queries a step (drafts + 1)"} <= words
    assert {*parts(text)} == set(figure.table["row"]) and not strange_colours(text)
    for row in figure.table.to_dict("records"):
        assert row["times"] == pytest.approx(
            speculating.longer(row["dtype"], row["queries"]), rel=0.01
        )


def test_only_a_run_with_several_queries_shows_it():
    other = found_in(made.whole(made.ONE))
    assert "speculate" not in [figure.name for figure in every(other)]
    assert drafting(other.answers).rows == () and queries(other).rows == ()
    assert "queries" not in points(other).heads


def test_tables(found):
    own = drafting(found.answers)
    assert own.title.endswith(f"{MODEL}, 4 query heads a KV head, 16,384 tokens, 2 threads")
    first = [cell.text for cell in own.rows[0]]
    assert first[:2] == ["f16", "flash, head"] and first[3] == "1.20 (1.19-1.21)"
    assert own.heads[3] == "4 queries (3 drafts)" and len(own.rows) == 3
    every_one = queries(found)
    assert len(every_one.rows) == 72 and "more tokens" in [c.text for c in every_one.rows[1]]
    assert {row[1].text for row in points(found).rows} == {"1", "2", "4", "8", "16"}


def test_page_terminal_and_json_say_the_same(tmp_path, capsys):
    records = speculating.records(("f16", "i8"), speculating.HEADS[:1])
    asked = list(dict.fromkeys(record.point for record in records))
    run = made.directory(tmp_path / "run", records, asked, machine=MACHINE, models=(MODEL,))
    assert call("report", str(run)) == 0
    printed = " ".join(capsys.readouterr().out.split())
    sentence = "takes 1.20 (1.19 to 1.21) times as long as with 1 (f16"
    assert "Draft 3 tokens? pays above 0.2 accepted" in printed and sentence in printed
    assert "f16 flash, head 1.00 (0.99-1.01) 1.20 (1.19-1.21) 2.40" in printed
    page = (run / "report" / "index.html").read_text()
    text = plain_text(page)
    assert TOLD in text and sentence in text
    assert page.index("Draft 3 tokens?") < page.index('id="drafting"') < page.index('id="hero"')
    assert call("report", str(run), "--format", "json") == 0
    own = json.loads(capsys.readouterr().out)["answers"]["speculation"]
    step = own["lines"][0]["steps"][1]
    assert own["usual"] == step["queries"] == 4 and step["worth"] == "more tokens"
    assert step["times"]["figure"]["value"] == pytest.approx(1.2, abs=0.005)
