"""A report for pipelines and pull requests: Markdown that GitHub shows as meant, valid JSON, CSV
that reads back.
"""

import io
import json

import pandas as pd
import pytest
from markdown_it import MarkdownIt

import kvbench
from kvbench.cli._streams import json_text
from kvbench.report.data import rows_of
from kvbench.texts import markdown as plain
from tests.cli.test_cli import output_of
from tests.report.texts import markdown_tables


def told(capsys, *arguments):
    return output_of(capsys, "report", *map(str, arguments))


# ---- JSON ----------------------------------------------------------------------------------------


def strict(text):
    """JSON has no NaN, whatever Python reads."""

    def refuse(word):
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


def test_json(rich, small, capsys):
    found = strict(told(capsys, rich, "--format", "json"))
    assert found["version"] == 3 and found["run"] == "mine" and found["seed"] == 7
    points = kvbench.load(rich).frame("points")
    assert [point["name"] for point in found["points"]] == list(points["name"])
    assert [point["gbps"] for point in found["points"]] == pytest.approx(list(points["gbps"]))
    assert found["answers"]["trust"]["points"] == len(points) and "diagnosis" not in found
    assert found["ceilings"] and found["topology"]["facts"]["brand"]["value"].endswith("64-Core")
    assert any(
        point["error"] for point in strict(told(capsys, small, "--format", "json"))["points"]
    )


# ---- CSV -----------------------------------------------------------------------------------------


def test_numbers_in_json_are_those_of_the_tables(rich, capsys):
    numbers = [1e-300, 2.3e-7, 1 / 3, 1e20, float("nan"), float("inf")]
    table = pd.DataFrame(
        {"number": numbers, "count": pd.array([1, None, 3, 4, 5, 1 << 60], "Int64"), "word": "x"}
    )
    table["flag"] = pd.array([True, False, None, True, True, True], "boolean")
    rows = strict(json_text(rows_of(table)))
    assert [row["number"] for row in rows] == [*numbers[:4], None, None]
    assert [row["count"] for row in rows] == [1, None, 3, 4, 5, 1 << 60] and rows[0]["word"] == "x"
    assert [row["flag"] for row in rows[:3]] == [True, False, None]
    facts, points = strict(told(capsys, rich, "--format", "json")), kvbench.load(rich).points
    for name in ("seconds", "gbps", "efficiency", "max_abs_err"):
        known = [
            (row[name], value)
            for row, value in zip(facts["points"], points[name], strict=True)
            if value == value
        ]
        assert known and all(row == value for row, value in known)


def test_csv_reads_back(rich, capsys):
    points = kvbench.load(rich).frame("points")
    texts = [name for name in points if pd.api.types.is_string_dtype(points[name])]
    asked = io.StringIO(told(capsys, rich, "--format", "csv"))
    read = pd.read_csv(
        asked, keep_default_na=False, na_values={name: [""] for name in points if name not in texts}
    )
    assert (read["run"] == "mine").all() and read["short"].is_unique
    read[texts] = read[texts].astype(str)
    pd.testing.assert_frame_equal(
        read[list(points)].astype(points.dtypes), points, check_exact=True
    )


# ---- Markdown ------------------------------------------------------------------------------------


def test_markdown(rich, capsys):
    text = told(capsys, rich, "--format", "md")
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    kinds = [token.type for token in tokens]
    assert kinds.count("heading_open") == 1 and kinds.count("bullet_list_open") == 1
    assert kinds.count("table_open") == text.count("<summary>") == text.count("</details>") > 2
    for heads, rows in markdown_tables(text):
        assert rows and all(len(row) == len(heads) for row in rows)
    count = len(kvbench.load(rich).frame("points"))
    assert count > 60 and f"{count - 60} more rows are in the other forms of this report." in text
    html = [token.content for token in tokens if token.type == "html_block"]
    assert all(block.startswith(("<details>", "</details>")) for block in html)


@pytest.mark.parametrize(
    "text",
    [
        "a|b",
        "*bold* _it_ __x__ ~~s~~",
        "`code`",
        "<script>x</script>",
        "[a](b) ![c](d)",
        "&amp; a & b",
        "# 1 #12 @you",
        "$x$",
        "a\\|b",
        "two\nlines",
        "**x**",
    ],
)
def test_no_text_means_anything_to_markdown(text):
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = reader.parse(f"| head |\n| --- |\n| {plain(text)} |\n")
    (cell,) = [token for place, token in enumerate(tokens) if tokens[place - 1].type == "td_open"]
    assert {child.type for child in cell.children} <= {"text", "text_special", "html_inline"}
    assert "".join(
        child.content for child in cell.children if child.type != "html_inline"
    ) == " ".join(text.split())
    assert all(f"\\{sign}" in plain(text) for sign in "#$" if sign in text) and "@y" not in plain(
        text
    )
