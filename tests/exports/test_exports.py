"""Each form is read back by a reader of its own, with any names and numbers. Two forms are also
compared with golden files.
"""

import re
from collections import Counter
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvbench.exports import kinds, write
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import EQUIVALENT, INCONCLUSIVE, NOT_COMPARABLE, REGRESSION, WORDS
from kvbench.texts import cell, printable
from tests.exports.made import GOLDEN, KEPT, ODD, SAME, SLOWER, made
from tests.exports.readers import read

EMPTY = replace(made(0), verdict=NOT_COMPARABLE, families=(), missing=(), notes=())
LIMITS = {"markdown": 1 << 20, "comment": 1 << 16}


@pytest.mark.parametrize("kind", KEPT)
def test_golden(kind):
    assert write(made(), kind) == (GOLDEN / kind).read_text()


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("comparison", [EMPTY, made(1), made(600)], ids=["none", "1", "600"])
def test_readers_take_it(kind, comparison):
    text = write(comparison, kind)
    read(kind, text)
    assert not re.search(r"\b(nan|inf|infinity|none)\b", text, re.IGNORECASE)


def test_a_table_has_every_point():
    found = read("csv", write(made(600), "csv"))
    assert Counter(found.level) == {"point": 600, "family": 2, "missing": 2}
    points = found[found.level == "point"].set_index("name")
    slower = points.loc[SLOWER.name]
    assert float(slower.effect_of_base_seconds) == 0.0637
    assert float(slower.head_bytes_per_second) == 36.1e9
    assert (float(slower.base_launches), float(slower.head_launches)) == (10, 10)
    assert points.loc["hogged"].effect_of_base_seconds == ""
    assert "two lines and\\x00nothing" in points.index
    whole = [cell(name) for name in ODD if name.isprintable()]
    assert set(whole) <= set(points.index)


def test_junit_fails_for_slowdowns_alone():
    found = read("junit", write(made(600), "junit"))
    cases = [case for suite in found for case in suite]
    outcomes = {
        (case.classname, case.name): [type(one).__name__ for one in case.result] for case in cases
    }
    assert outcomes["comparison", "verdict"] == []  # its cause has the failure
    assert (
        outcomes["families", SLOWER.family] == ["Failure"]
        and outcomes[SLOWER.family, SLOWER.name] == []
    )
    assert outcomes[SLOWER.family, "unclear"] == ["Skipped"]
    assert outcomes["families", "copy f32"] == []
    assert (found.tests, found.failures, found.errors) == (1 + 2 + 600 + 2, 1, 0)
    (cause,) = [case for case in cases if case.name == SLOWER.family]
    assert cause.result[0].message.startswith("REGRESSION: the median of ")
    assert f" {SLOWER.family} points is 6.4 % slower (5.5..7.2); " in cause.result[0].message
    assert "+6.4 [+5.5, +7.2]; 38.4 → 36.1 GB/s" in cause.result[0].text
    (case,) = [case for case in cases if case.name == SLOWER.name]
    assert case.time == pytest.approx(0.00093074)


def test_nothing_measured_is_not_a_success():
    found = read("junit", write(EMPTY, "junit"))
    assert (found.tests, found.errors) == (1, 1)
    assert [level for level, *_ in read("annotations", write(EMPTY, "annotations"))] == ["error"]


def test_annotations_are_few():
    found = read("annotations", write(made(600), "annotations"))
    assert [level for level, *_ in found] == ["error"] + ["notice"] * 4
    _, title, message = found[0]
    assert title == "kvbench compare: REGRESSION"
    assert SLOWER.name in message
    assert "2 points could not be compared" in message
    many = replace(
        EMPTY, verdict=REGRESSION, points=tuple(replace(SLOWER, name=f"p{n}") for n in range(40))
    )
    ((_, _, message),) = read("annotations", write(many, "annotations"))
    assert message.endswith("\n25 more")


def test_a_comparison_without_news_is_one_notice():
    calm = replace(EMPTY, verdict=EQUIVALENT, points=(SAME,))
    assert [level for level, *_ in read("annotations", write(calm, "annotations"))] == ["notice"]
    unclear = replace(EMPTY, verdict=INCONCLUSIVE)
    assert [level for level, *_ in read("annotations", write(unclear, "annotations"))] == [
        "warning"
    ]


def test_markdown_shows_names_as_they_are():
    rows = read("markdown", write(made(600), "markdown"))
    names = {row[1] for row in rows}
    assert {name for name in ODD if name.isprintable() and 0 < len(name) < 200} <= names
    # two open tables and a folded one, each with a head; families are too few to fold
    assert len(rows) == 602 + 3
    assert f"{'x' * 199}…" in names


@pytest.mark.parametrize("kind", ["markdown", "comment", "annotations"])
@pytest.mark.parametrize("text", ["short", "&" * 300, "🚀" * 300], ids=["short", "escaped", "wide"])
def test_limits_hold(kind, text):
    """Limits of bytes are checked here; limits of annotations in the readers."""
    points = tuple(replace(SLOWER, name=f"{number} {text}", note=text) for number in range(600))
    many = replace(
        made(0),
        points=points,
        missing=(text,) * 600,
        notes=(text,) * 600,
        base=text,
        machine=text,
    )
    found = write(many, kind)
    read(kind, found)
    assert len(found.encode()) <= LIMITS.get(kind, 1 << 30)


def test_lines_that_do_not_fit_are_counted():
    rows = read("comment", text := write(made(5000), "comment"))
    assert 15 < len(rows) < 5000
    (said,) = [line for line in text.splitlines() if "more lines do not fit here" in line]
    assert int(said.split()[0]) == 5002 - (len(rows) - 3)


NUMBERS = st.none() | st.floats()
TEXTS = st.text(max_size=40)
JUDGED = st.builds(
    Judged,
    name=TEXTS,
    family=TEXTS,
    verdict=st.sampled_from(WORDS),
    note=TEXTS,
    launches=st.tuples(st.integers(0, 99), st.integers(0, 99)),
    **dict.fromkeys(("effect", "low", "high", "p", "q", "detectable"), NUMBERS),
    **dict.fromkeys(("base_gbps", "head_gbps", "base_seconds", "head_seconds"), NUMBERS),
)
COMPARISONS = st.builds(
    Comparison,
    command=st.sampled_from(("compare", "gate")),
    verdict=st.sampled_from(WORDS),
    created=st.datetimes(datetime(1970, 1, 2)).map(str),
    **dict.fromkeys(
        ("points", "families"),
        st.lists(JUDGED, max_size=20, unique_by=lambda one: printable(one.name)).map(tuple),
    ),
    missing=st.lists(TEXTS, max_size=3).map(tuple),
    notes=st.lists(TEXTS, max_size=3).map(tuple),
    **dict.fromkeys(("base", "head", "machine"), TEXTS),
)


@pytest.mark.parametrize("kind", kinds())
@settings(max_examples=30, deadline=None)
@given(comparison=COMPARISONS)
def test_anything_is_readable(kind, comparison):
    read(kind, write(comparison, kind))
