"""Which layout and how many threads: sets with planted times."""

import math
from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import State
from kvbench.analysis.means.findings import findings
from kvbench.model.geometry import Geometry
from tests.made_run import DECODE, MACHINE, MIB, RUN, STORE, beside, visit

MODEL = Geometry("small", 24, 8, 2, 64, 4096)
LAYOUTS = ("head", "position", "paged", "blockt")
NOISE = (0.03, -0.03, 0.02, -0.02, 0.01, -0.01, 0.0)


def layouts(point=DECODE):
    return tuple(replace(point, layout=layout) for layout in LAYOUTS)


def at(context, cpus):
    shape = replace(DECODE.shape, context=context, capacity=context)
    return replace(DECODE, shape=shape, cpus=tuple(range(cpus)))


def timed(of, milliseconds, factor="layout", noise=NOISE):
    """In visits of their own all points are equal. `noise`: of the first point, by launch."""
    found = [visit(n, {"point": [9.0]}, point) for point in of for n in range(2)]
    for n, each in enumerate(noise):
        first = milliseconds[0] * math.exp(each)
        times = [[1e-3 * (1 + n) * each] * 2 for each in (first, *milliseconds[1:])]
        found.append(beside(n, of, times, factor))
    return found


def factors(*records):
    return findings(RUN, list(records), MACHINE, models=(MODEL,)).answers.factors


def choices(*records):
    return factors(*records).choices


def test_values_come_fastest_first():
    (choice,) = choices(*timed(layouts(), (10.0, 12.0, 15.0, 10.1)))
    assert choice.values == ("head", "blockt", "position", "paged")
    assert choice.level == ("head", "blockt") and [each.of for each in choice.leads] == [
        "blockt", "position", "paged",
    ]  # fmt: skip
    times = [each.figure.value for each in choice.leads]
    assert times == pytest.approx([1.01, 1.2, 1.5], rel=1e-3)
    assert [each.state for each in choice.leads] == [State.LEVEL, State.DECIDED, State.DECIDED]
    assert (choice.factor, choice.op, choice.regime) == ("layout", "decode", "DRAM")
    assert (choice.dtype, choice.context) == ("f16", 1024)
    assert all(each.subject == (DECODE.name,) for each in choice.leads)


def test_a_clear_lead_is_alone():
    (choice,) = choices(*timed(layouts(), (10.0, 12.0, 15.0, 8.0)))
    assert choice.level == ("blockt",) == choice.values[:1]


def test_the_page_comes_first_and_stores_last():
    other = at(4000, 2)
    records = [
        each
        for point in (STORE, other, DECODE)
        for each in timed(layouts(point), (10.0, 12.0, 15.0, 8.0))
    ]
    page = findings(RUN, records, MACHINE, models=(MODEL,)).answers.workload
    assert page.context == 4000  # nearest to 4,096
    assert [(c.op, c.context) for c in choices(*records)] == [
        ("decode", 4000),
        ("decode", 1024),
        ("bulk", 1024),
    ]


def test_dtypes_are_no_choice():
    of = tuple(replace(DECODE, dtype=dtype) for dtype in ("f16", "f32"))
    assert choices(*timed(of, (10.0, 20.0), "dtype")) == ()


def test_threads_are_of_the_nearest_context():
    """The most threads over the next fewer."""
    near, far = [(at(n, 1), at(n, 2), at(n, 4)) for n in (3000, 1000)]
    records = [*timed(near, (10.0, 8.0, 5.0), "threads"), *timed(far, (10.0, 9.0, 9.0), "threads")]
    found = factors(*records).threads
    assert (found.subject, found.against) == ((near[2].name,), near[1].name)
    assert found.figure.value == pytest.approx(1.6) and found.state is State.DECIDED
    assert found.facts == {"threads": 4, "fewer": 2, "context": 3000}
    assert factors(*timed(layouts(), (1.0, 1.0, 1.0, 1.0))).threads is None


def test_threads_in_a_cache_say_nothing_of_memory():
    of = tuple(replace(at(1024, cpus), residency="hot") for cpus in (1, 2))
    records = [
        replace(each, level="L3", footprint=9 * MIB) if each.footprint else each
        for each in timed(of, (10.0, 5.0), "threads")
    ]
    assert factors(*records).threads is None
