"""Which dtype is the fastest: from a line with planted times, and from visits of their own."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.answers.answer import Basis, Held, Reason, State
from kvbench.analysis.answers.decodes import decodes
from kvbench.analysis.means.findings import findings
from kvbench.model.geometry import Geometry
from tests.made_run import DECODE, MACHINE, MIB, RUN, beside, visit

MODEL = Geometry("small", 24, 8, 2, 64, 4096)
I8, F16, BF16, F32 = (replace(DECODE, dtype=dtype) for dtype in ("i8", "f16", "bf16", "f32"))
SLOWER = replace(I8, layout="position")
STEADY = np.linspace(-0.002, 0.002, 7)  # logarithms, by launch


def own(milliseconds, launches=7, **facts):
    """A visit of each point alone; a layer takes the given time."""
    return [
        visit(n, {"point": [16 * MIB / each / 1e6]}, point, **facts)
        for point, each in milliseconds.items()
        for n in range(launches)
    ]


def line(milliseconds, noise=STEADY):
    """A line. `noise`: of the first point, by launch. What a launch does to all points cancels in a
    ratio.
    """
    first, *others = milliseconds
    found = []
    for n, each in enumerate(noise):
        pace = 1e-3 * (1 + n / 10)
        times = [[pace * milliseconds[first] * math.exp(each)] * 3]
        times += [[pace * milliseconds[point]] * 3 for point in others]
        found.append(beside(n, tuple(milliseconds), times, "kernel"))
    return found


def found(records, models=(MODEL,)):
    return findings(RUN, records, MACHINE, models=models).answers.decodes


def test_a_line_decides():
    """In visits of their own f32 is the fastest, but the line counts."""
    apart = own({I8: 9.0, F16: 8.0, F32: 1.0, SLOWER: 20.0})
    said = found(apart + line({I8: 5.0, F16: 6.0, F32: 12.0}))
    assert [row.dtype for row in said.rows] == ["i8", "f16", "f32"]
    assert said.fastest.subject == (I8.name,) and said.fastest.state is State.DECIDED
    # the middle launch takes 1.3 times as long
    assert said.fastest.figure.value == pytest.approx(1000 / (24 * 5.0 * 1.3))
    assert said.fastest.basis is Basis.ROUNDS and said.fastest.launches == 7
    assert (said.next.subject, said.next.against) == ((I8.name,), F16.name)
    assert said.next.figure.value == pytest.approx(6 / 5) and said.next.state is State.DECIDED
    leads = [row.lead.figure and row.lead.figure.value for row in said.rows]
    assert leads == [None, pytest.approx(5 / 6), pytest.approx(5 / 12)]
    assert said.rows[0].lead.state is State.NOT_TESTED


def test_those_that_are_level_are_named():
    records = own({I8: 5.0, F16: 5.0, F32: 5.0})
    said = found(records + line({I8: 5.0, F16: 5.05, F32: 12.0}))
    assert said.fastest.subject == (I8.name, F16.name) and said.fastest.state is State.LEVEL
    assert said.next.against == F32.name
    wide = [-0.3, 0.3, -0.2, 0.2, 0.1, -0.1, 0.0]
    said = found(records + line({I8: 5.0, F16: 5.5, F32: 30.0}, wide))
    assert said.fastest.state is State.OPEN and len(said.fastest.subject) == 2


def test_without_a_line_nothing_is_decided():
    """The fastest point of each dtype; points with overlapping intervals may be the fastest."""
    records = own({SLOWER: 7.0, I8: 5.0, F32: 12.0})
    records += [visit(n, {"point": [16 * MIB / each / 1e6]}, F16) for n, each in enumerate((4, 7))]
    said = found(records)
    assert [row.point for row in said.rows] == [I8.name, F16.name, F32.name]
    assert said.fastest.subject == (I8.name, F16.name)
    assert (said.fastest.state, said.fastest.basis) == (State.NOT_TESTED, Basis.APART)
    assert said.next is None and not any(row.lead.tested for row in said.rows)
    assert said.rows[0].speed.figure.value == pytest.approx(1000 / (24 * 5.0))


def test_what_a_row_has():
    rates = {"point": [20.0], "twin": [25.0], "core": [40.0], "memory": [25.0]}
    records = [visit(n, rates, max_abs_err=2e-3) for n in range(7)]
    (row,) = found(records).rows
    assert (row.dtype, row.layout, row.variant, row.isa) == ("f16", "head", "flash", "scalar")
    assert row.rate.figure.value == pytest.approx(20.0) and row.kernel_error == 2e-3
    assert row.rows.figure.value == pytest.approx(0.8) and row.rows.held is Held.ROWS
    assert row.core.figure.value == pytest.approx(0.5) and row.core.held is Held.CORE
    assert row.rows.basis is Basis.ROUNDS and row.rate.basis is Basis.APART
    assert set(row.format_errors) == {"normal", "heavy"} and row.format_errors["normal"] < 1e-3


@pytest.mark.parametrize(
    ("word", "reason", "state"),
    [
        ("memory", Reason.MEMORY, State.DECIDED),
        ("rows", Reason.ROWS, State.DECIDED),
        ("both", Reason.BOTH, State.DECIDED),
        ("neither", Reason.NEITHER, State.DECIDED),
        ("not clear", Reason.NOT_CLEAR, State.OPEN),
        ("unknown", Reason.NOT_MEASURED, State.NOT_TESTED),
    ],
)
def test_what_limits_it(word, reason, state):
    (row,) = asked(bound=word).rows
    assert (row.limit.reason, row.limit.state) == (reason, state)


def asked(**columns):
    """The answer for a run with changed columns in its table of points."""
    made = findings(RUN, own({I8: 5.0}), MACHINE, models=(MODEL,))
    tables = made.answers, made.points.assign(**columns)
    return decodes(_Tables(tables[1], made), made.answers.workload)


class _Tables:
    def __init__(self, points, made):
        self.points, self.tokens, self.contrasts = points, made.tokens, made.contrasts
        self.line = points.iloc[:0]


def test_a_suspect_is_left_out():
    assert asked(suspect=False).rows and not asked(suspect=True).rows
    assert asked(suspect=True).fastest.reason is Reason.SUSPECT


def test_no_model():
    said = found(own({I8: 5.0}), models=())
    assert not said.rows and said.fastest.reason is Reason.NO_MODEL
