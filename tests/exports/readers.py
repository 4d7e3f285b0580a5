"""Readers of every export, as strict as the tools that the exports are for. Each gives back what it
has understood.
"""

import io
import json
import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pandas as pd
from junitparser import JUnitXml
from markdown_it import MarkdownIt

_COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\r\n]+)::([^\r\n]+)")


def read(kind: str, text: str) -> Any:
    text.encode()  # no halves of characters
    return _READERS[kind](text)


def _junit(text: str) -> JUnitXml:
    found = JUnitXml.fromstring(text.encode())
    told = [(suite.tests, suite.failures, suite.errors, suite.skipped) for suite in found]
    found.update_statistics()
    assert told == [(suite.tests, suite.failures, suite.errors, suite.skipped) for suite in found]
    return found


def _annotations(text: str) -> list[tuple[str, str, str]]:
    """As the runner of GitHub's actions reads them: level, title, message."""
    assert text.endswith("\n")
    parts = [_COMMAND.fullmatch(line).groups() for line in text.splitlines()]
    assert len(parts) < 10
    return [(level, _decoded(title), _decoded(message)) for level, title, message in parts]


def _decoded(text: str) -> str:
    assert not re.search(r"%(?!25|0A|0D|3A|2C)", text)
    for code, sign in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, sign)
    return text


def _github(text: str) -> list[dict[str, Any]]:
    entries = _json(text)
    for entry in entries:
        assert set(entry) == {"name", "unit", "value", "extra"}
        assert math.isfinite(entry["value"])
    assert len({entry["name"] for entry in entries}) == len(entries)
    return entries


def _bencher(text: str) -> dict[str, dict[str, float]]:
    results = _json(text)
    for measures in results.values():
        assert set(measures) <= {"latency", "bandwidth"}
        assert measures
        assert all(
            set(measure) == {"value"} and math.isfinite(measure["value"])
            for measure in measures.values()
        )
    return {
        name: {slug: measure["value"] for slug, measure in measures.items()}
        for name, measures in results.items()
    }


def _json(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), "a key comes twice"
        return dict(pairs)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, object_pairs_hook=once, parse_constant=refuse)


def _csv(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), keep_default_na=False)


def _markdown(text: str) -> list[list[str]]:
    """The cells of all rows as people see them; and every table has the columns that its head
    has.
    """
    assert text.startswith("<!-- kvbench ")
    assert (
        text.count("<details>")
        == text.count("</details>")
        == text.count("<summary>")
        == text.count("</summary>")
    )
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    rows: list[list[str]] = []
    for token, inner in pairwise(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("td_open", "th_open"):
            rows[-1].append(
                "".join(child.content for child in inner.children if child.type != "html_inline")
            )
    lines = [line for line in text.splitlines() if line.startswith("|") and "| --- |" not in line]
    assert len(rows) == len(lines)
    return rows


_READERS: dict[str, Callable[[str], Any]] = {
    "markdown": _markdown,
    "comment": _markdown,
    "junit": _junit,
    "annotations": _annotations,
    "github-bigger": _github,
    "github-smaller": _github,
    "bencher": _bencher,
    "csv": _csv,
}
