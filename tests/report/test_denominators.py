"""No percentage without the name of what it is a share of: in pages, figures, Markdown, and what a command prints."""

import re

import pandas as pd
import pytest

import kvbench
from kvbench.report.ending import summary
from kvbench.report.ending import text as ending
from tests.cli.test_cli import call
from tests.report import made
from tests.report.texts import blocks, markdown_tables, tables, unnamed, unnamed_cells


@pytest.mark.parametrize(
    "text",
    [
        "It reaches 87%.",
        "87% faster than before",
        "87% efficiency of the twin",
        "of all, 87%; the rest is idle",
        "86% of the reads and 54% as well",
        "87 percent faster",
        "It gets 5% of. The twin",
    ],
)
def test_bad_texts_are_found(text):
    assert unnamed(text)


@pytest.mark.parametrize(
    "text",
    [
        "86% of the 26.9 GB/s that plain reads get",
        "nine in ten by 78.5% of it",
        "holds it with a probability of 95% where there are enough",
        "too few for a 95% interval",
        "less than 2% over the roof",
    ],
)
def test_good_texts_are_not(text):
    assert unnamed(text) == []


def test_bad_tables_are_found():
    assert unnamed_cells(["share"], [["87%"]]) == ["share: 87%"]
    assert unnamed_cells(["% efficiency"], []) == ["% efficiency"]
    assert unnamed_cells(["notes"], [["reaches 87%"]]) == ["notes: reaches 87%"]
    assert unnamed_cells(["% of ceiling", "misfit, % of the line", "notes"], [["87%", "3.5%", "5% of its bytes"]]) == []


def test_the_page(report):
    page = (report / "index.html").read_text()
    outside = re.sub(r"<table.*?</table>", "", page, flags=re.DOTALL)
    texts = blocks(outside)
    assert sum("%" in text for text in texts) >= 6
    assert [sentence for text in texts for sentence in unnamed(text)] == []
    known = list(tables(page))
    assert sum("%" in cell for _, rows in known for row in rows for cell in row) > 100
    assert [cell for heads, rows in known for cell in unnamed_cells(heads, rows)] == []


def test_every_figure(report):
    for path in (report / "figures").glob("*.svg"):
        assert [found for text in blocks(path.read_text()) for found in unnamed(text)] == [], path.name


def test_markdown(rich, small, capsys):
    assert call("report", str(rich), str(small), "--format", "md") == 0
    text = capsys.readouterr().out
    lines = [line.strip("-> ") for line in text.splitlines() if line and not line.startswith("|")]
    assert sum("%" in line for line in lines) > 4
    assert [sentence for line in lines for sentence in unnamed(line.replace("\\", ""))] == []
    assert [cell for heads, rows in markdown_tables(text) for cell in unnamed_cells(heads, rows)] == []


def test_the_end_of_a_sweep(rich):
    lines = ending(summary(kvbench.load(rich).findings()))
    table, sentences = split(lines)
    assert any("%" in line for line in table) and any("%" in line for line in sentences)
    assert [found for line in table for found in unnamed(line)] == []
    assert unnamed(" ".join(" ".join(sentences).split())) == []


def split(lines):
    """The table of places is of lines, the rest of sentences that go on in the next line."""
    last = max(place for place, line in enumerate(lines) if not line)
    return lines[:last], lines[last:]


def test_the_reasons_of_points(rich):
    texts = pd.DataFrame(kvbench.load(rich).frame("points"))
    for column in ("bound_reason", "l3_reason", "regime_reason", "above_reason", "ceiling_note"):
        assert [found for text in texts[column].unique() for found in unnamed(text)] == [], column


def test_points_above_a_roof_are_explained_or_suspect(rich, report):
    points = kvbench.load(rich).frame("points")
    above = points[points["above"] != ""]
    assert made.CHEAT.name in set(above["name"]) and (above["above_reason"] != "").all()
    (row,) = above[above["name"] == made.CHEAT.name].to_dict("records")
    assert row["above_reason"].startswith("suspect: ")
    heads, rows = next(
        each for each in tables((report / "index.html").read_text()) if each[0][:2] == ["point", "level"]
    )
    notes = [row[heads.index("notes")] for row in rows]
    said = sum(
        f"above its {roof}: {reason}" in note
        for note, roof, reason in zip(notes, points["above"], points["above_reason"], strict=True)
        if roof
    )
    assert said == len(above)
    drawn = pd.read_csv(report / "figures" / "roofline.csv")
    crossed = drawn[(drawn["kind"] == "point") & drawn["above"].notna()]
    assert set(crossed["row"]) <= set(above.index) and points.index[points["name"] == made.CHEAT.name][0] in set(
        crossed["row"]
    )
