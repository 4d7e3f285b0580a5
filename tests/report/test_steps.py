"""The table of whole steps: what is planted stands there, in every form."""

from dataclasses import replace

from kvbench.analysis.means.findings import findings
from kvbench.report import tables
from kvbench.report.data import report
from kvbench.report.ending import short
from kvbench.report.figures.look import Figure
from kvbench.report.markdown import markdown
from kvbench.report.page import Drawn, page
from tests.made_run import MACHINE, RUN
from tests.report.answered import ANSWERS
from tests.store.made import manifest

WITHOUT = findings(RUN, [], MACHINE)
FOUND = replace(WITHOUT, answers=replace(WITHOUT.answers, steps=ANSWERS.steps))
MANIFEST = manifest([], 7)


def cells(place):
    found = tables.steps(ANSWERS)
    return dict(zip(found.heads, (cell.text for cell in found.rows[place]), strict=True))


def test_a_row_has_its_answers():
    first = cells(0)
    assert (first["dtype"], first["context"], first["weights"]) == ("i8", "4,096", "4 GiB")
    assert (first["a step"], first["tokens/s each"], first["p50"]) == ("100 ms", "10", "98 ms")
    assert first["step over parts"] == "1.00 (0.98-1.03)" and first["why"] == ""
    assert [first[f"% {part}"] for part in ("appends", "decodes", "weights")] == [
        "1%",
        "29%",
        "70%",
    ]
    assert (first["what limits"], first["p99"]) == ("memory", "")


def test_why_a_step_is_not_its_parts():
    assert cells(1)["why"] == "decodes 1.06 times as long, alone in L3"
    assert (cells(1)["weights"], cells(1)["% weights"]) == ("", "")
    assert cells(2)["why"] == "not decided" and cells(2)["of the batch"] == "40"


def test_every_form_has_it_where_there_are_steps():
    blank = Drawn(Figure("hero", "", "", None, None, "not drawn"), "", "")
    shown = [
        page(FOUND, MANIFEST, [blank]),
        markdown(FOUND, MANIFEST),
        "\n".join(short(FOUND)),
    ]
    without = [
        page(WITHOUT, MANIFEST, [blank]),
        markdown(WITHOUT, MANIFEST),
        "\n".join(short(WITHOUT)),
    ]
    for text, other in zip(shown, without, strict=True):
        assert "1.00 (0.98-1.03)" in text and "over parts" in text
        assert "over parts" not in other
    assert '<section id="steps">' in shown[0] and 'href="#steps"' in shown[0]
    assert 'href="#steps"' not in without[0]
    (first, *_) = report(FOUND, MANIFEST).answers.steps.rows
    assert first.whole.figure.value == 1.0
