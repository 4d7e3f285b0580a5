"""Each percentage says what it is a share of: in pages, figures, Markdown, and what a
command prints.
"""

import re

import pandas as pd
import pytest

import kvbench
from kvbench.report.words import said
from tests.cli.test_cli import output_of
from tests.report import made
from tests.report.texts import blocks, markdown_tables, tables, unnamed, unnamed_cells


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("It reaches 87%.", True),
        ("87% efficiency of the twin", True),
        ("86% of the reads and 54% as well", True),
        ("87 percent faster", True),
        ("86% of the 26.9 GB/s that plain reads get", False),
        ("holds it with a probability of 95% where there are enough", False),
        ("too few for a 95% interval", False),
    ],
)
def test_bad_texts_are_found(text, bad):
    assert bool(unnamed(text)) is bad
    assert bool(unnamed_cells(["notes"], [[text]])) is bad


def test_the_page(report):
    page = (report / "index.html").read_text()
    texts = blocks(re.sub(r"<table.*?</table>", "", page, flags=re.DOTALL))
    assert sum("%" in text for text in texts) >= 3
    assert [sentence for text in texts for sentence in unnamed(text)] == []
    known = list(tables(page))
    assert sum("%" in cell for _, rows in known for row in rows for cell in row) > 100
    assert [cell for heads, rows in known for cell in unnamed_cells(heads, rows)] == []


def test_every_figure(report):
    for path in (report / "figures").glob("*.svg"):
        assert [found for text in blocks(path.read_text()) for found in unnamed(text)] == [], (
            path.name
        )


def test_markdown(rich, small, capsys):
    text = output_of(capsys, "report", str(rich), str(small), "--format", "md")
    lines = [line.strip("-> ") for line in text.splitlines() if line and not line.startswith("|")]
    assert sum("%" in line for line in lines) > 3
    assert [sentence for line in lines for sentence in unnamed(line.replace("\\", ""))] == []
    assert [
        cell for heads, rows in markdown_tables(text) for cell in unnamed_cells(heads, rows)
    ] == []


def test_the_reasons_of_points(rich):
    texts = pd.DataFrame(kvbench.load(rich).frame("points"))
    for column in ("bound_reason", "l3_reason", "regime_reason", "above_reason", "ceiling_note"):
        assert [found for text in texts[column].unique() for found in unnamed(text)] == [], column


def test_points_above_a_roof_are_explained_or_suspect(rich, report):
    points = kvbench.load(rich).frame("points")
    above = points[points["above"] != ""]
    (row,) = above[above["name"] == made.CHEAT.name].to_dict("records")
    assert row["suspect"] and (above["above_reason"] != "").all()
    heads, rows = next(
        each
        for each in tables((report / "index.html").read_text())
        if each[0][:2] == ["point", "level"]
    )
    notes = [row[heads.index("notes")] for row in rows]
    for place, row in above.iterrows():
        assert said("reasons", "above", row) in notes[place]
