"""What more threads bring: the series that are shown, their knee and their best."""

import re
from dataclasses import replace

import pytest

from kvbench.analysis.shown.saturation import FEWEST, MOST
from kvbench.report.figures.saturation import saturation
from tests.made_run import DECODE, READ, machine, probe, visit
from tests.report.drawn import drawn, found_in, parts, strange_colours


def series(rates, point=DECODE):
    """One launch: a rate for each number of threads from one on."""
    for threads, rate in enumerate(rates, start=1):
        cpus = tuple(range(threads))
        yield visit(0, {"point": [rate], "twin": [rate + 1]}, replace(point, cpus=cpus))
        yield probe(0, rate + 2, replace(READ, cpus=cpus))


def test_rates_beside_the_reads_of_the_same_threads():
    """Of two placements of two threads the faster."""
    slower = visit(0, {"point": [7.0]}, replace(DECODE, cpus=(0, 2)))
    figure, text = drawn(saturation, found_in([*series([5.0, 9.2, 10.0, 8.0]), slower]))
    rows = figure.table[figure.table["row"].notna()]
    assert list(rows["threads"]) == [1, 2, 3, 4]
    assert list(rows["gbps"]) == pytest.approx([5.0, 9.2, 10.0, 8.0])
    ceiling = figure.table[figure.table["row"].isna()]
    # which three of the four threads reach
    assert list(ceiling["gbps"]) == pytest.approx([7.0, 11.2, 12.0, 12.0])
    assert list(rows["knee"]) == [False, True, False, False] and list(rows["best"]) == [
        False,
        False,
        True,
        False,
    ]
    assert parts(text) == dict.fromkeys(rows["row"], 1) and not strange_colours(text)
    assert {"f16 head", "fastest read of memory"} <= set(
        re.findall(r"<text[^>]*>([^<]*)</text>", text)
    )


def test_of_a_layout_and_dtype_the_series_of_most_thread_counts_is_shown():
    longer = replace(DECODE, shape=replace(DECODE.shape, context=2048, capacity=2048))
    many = [replace(DECODE, layout=f"layout{i}") for i in range(MOST + 3)]
    rates = [5.0, 8.0, 8.5, 8.6]
    records = [record for point in [DECODE, *many] for record in series(rates, point)]
    rows = drawn(saturation, found_in([*records, *series([*rates, 9.0], longer)], machine(8)))[
        0
    ].table
    rows = rows[rows["row"].notna()]
    assert rows["series"].nunique() == MOST
    assert list(rows[rows["layout"] == "head"]["context"]) == [2048] * 5


def test_fewer_thread_counts_are_no_figure():
    figure, text = drawn(saturation, found_in(list(series([5.0, 9.2, 10.0]))))
    assert not text and f"{FEWEST} numbers of threads" in figure.missing
