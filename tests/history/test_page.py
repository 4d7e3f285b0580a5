"""The page of a history: its content and what its figure shows, read back from its files."""

import csv
import re

import numpy as np
import pytest

from tests.cli.test_cli import call
from tests.history import made

RUNS, POINTS = 40, 14
# by the place of the point: the first run after it, and times as efficient
STEPS = {3: (15, 0.9), 8: (25, 1.1)}
COMMIT = {number: (f"{number - 1:07}..{number:07}", f"change {number}") for number in range(RUNS)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("history") / "runs"
    shares = made.flat(RUNS, POINTS)
    for point, (at, factor) in STEPS.items():
        shares[at:, point] *= factor
    versions = [
        {"commit": f"{number:07}f" * 5, "branch": "main", "message": COMMIT[number][1]}
        for number in range(RUNS)
    ]
    made.write(root, shares, environment=["e1"] * 30 + ["e2"] * 10, versions=versions)
    up = made.points(POINTS)[8].name
    assert call("history", "show", "--root", str(root)) == 0
    assert (
        call(
            "history", "accept", up, "--run", "run-0025", "--reason", "<meant>", "--root", str(root)
        )
        == 0
    )
    assert call("history", "show", "--root", str(root), "--report", str(root / "page")) == 0
    return root / "page"


@pytest.fixture(scope="module")
def text(page):
    return (page / "index.html").read_text()


@pytest.fixture(scope="module")
def drawn(page):
    with (page / "figures" / "trend.csv").open() as file:
        return list(csv.DictReader(file))


def section(text, name):
    return text[text.index(f'<section id="{name}">') :].partition("</section>")[0]


def cells(text, name):
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", section(text, name), re.DOTALL)[1:]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def test_it_needs_nothing_else(text):
    assert "default-src 'none'" in text and not re.search(
        r'(?:src|href)="(?!#|data:|figures/trend.csv")', text
    )


def test_steps_stand_in_a_table(text):
    down, up = cells(text, "steps")
    assert (
        down[0] == "open"
        and down[1].startswith("-")
        and down[4:] == ["2026-01-16", *COMMIT[15], "run-0015", ""]
    )
    assert (
        up[0] == "accepted"
        and up[1].startswith("+")
        and up[4:] == ["2026-01-26", *COMMIT[25], "run-0025", ""]
    )
    assert "1 open step, 1 of them down, 1 accepted" in section(text, "verdict")
    assert "&lt;meant&gt;" in section(text, "accepted") and "<meant>" not in text


def test_points_with_steps_are_drawn_first_and_the_rest_is_counted(text, drawn):
    names = [point.name for point in made.points(POINTS)]
    order = [names.index(name) for name in dict.fromkeys(row["name"] for row in drawn)]
    assert order[:2] == [3, 8] and len(order) == 6
    assert (
        "2 of 2 points with steps, and 4 without" in text
        and f"Not drawn: {POINTS - 6} points" in text
    )


def test_the_figure_has_every_run_and_level(drawn):
    own = [row for row in drawn if row["name"] == made.points(POINTS)[3].name]
    assert [int(row["place"]) for row in own] == list(range(RUNS))
    assert [row["run"] for row in own if row["step"]] == ["run-0015"]
    values = np.array([float(row["efficiency"]) for row in own])
    levels = [float(row["level"]) for row in own]
    for part in (slice(0, 15), slice(15, None)):
        assert levels[part] == pytest.approx([np.median(values[part])] * len(levels[part]))


def test_marks_belong_to_rows(text, drawn):
    """A mark in the figure and its row in the table have the same number."""
    rows = dict(re.findall(r'<tr id="point-(\d+)"[^>]*><td[^>]*>(.*?)</td>', text))
    assert {row["row"]: row["short"] for row in drawn}.items() <= rows.items()
    marks = set(re.findall(r'<g data-point="(\d+)"', text))
    assert marks == {row["row"] for row in drawn}


def test_words_stand_beside_colours(text):
    assert len(cells(text, "runs")) == RUNS and f"{14:07}f" in section(text, "runs")
    assert set(re.findall(r"decode\.flash\.[\w.*]+", section(text, "families"))) >= {
        "decode.flash.*"
    }
    svg = section(text, "trend")
    assert re.search(r"open -1\d\.\d%|open -9\.\d%", svg) and re.search(r"accepted \+\d", svg)


def test_a_page_of_no_run(tmp_path):
    (tmp_path / "runs").mkdir()
    assert (
        call(
            "history", "show", "--root", str(tmp_path / "runs"), "--report", str(tmp_path / "page")
        )
        == 0
    )
    assert "What these runs say" in (tmp_path / "page" / "index.html").read_text()
