"""Points with several queries: which ones exist, what they need, and where they are left out."""

from dataclasses import replace

import pytest

from kvbench.analysis.measured.columns import names
from kvbench.plan.classes import class_of
from kvbench.plan.needs import needs, needs_here, room
from kvbench.plan.shapes import INVALID
from kvbench.plan.witnesses import contrasts
from kvbench.session.line import expected
from tests.made_run import DECODE, MACHINE, MIB
from tests.plan.made_sweep import GIB
from tests.plan.test_expansion import why
from tests.plan.test_plan import TWO

QUERIES = (1, 4, 16)


def asked(queries, mask="chain", point=DECODE, **facts):
    return replace(point, shape=replace(point.shape, q_len=queries, mask=mask, **facts))


def test_a_mask_is_of_several_queries(sweep):
    found = sweep('q_len = [1, 8]\nmask = "all"\ncontext = 64')
    assert not found.skips
    shapes = [(p.shape.q_len, p.shape.mask) for p in found.points]
    assert shapes == [(1, "chain"), (8, "chain"), (8, "block"), (8, "tree")]
    one, *others = (point.name for point in found.points)
    assert ".q_len" not in one and ".mask" not in one
    assert [".q_len8" in name for name in others] == [True] * 3
    assert [name.partition(".mask")[2].partition("/")[0] for name in others] == [
        "",
        "block",
        "tree",
    ]


@pytest.mark.parametrize(
    ("axes", "detail"),
    [
        ("q_len = 8\ncontext = 7", "8 queries are more than context 7"),
        ('q_len = 8\nop = "step"\nlayers = 2', "a step has one query per sequence, not 8"),
    ],
)
def test_what_is_left_out(sweep, axes, detail):
    assert why(sweep(axes)) == (INVALID, detail)


def test_stores_have_no_queries(sweep):
    (point,) = sweep('op = "append"\nq_len = 8\nmask = "tree"').points
    assert (point.shape.q_len, point.shape.mask) == (1, "chain")


def test_short_names():
    points = [asked(1), asked(4), asked(4, "tree")]
    assert [name.split()[-2:] for name in names([asked(1), asked(4)]).values()] == [
        ["1", "query"],
        ["4", "queries"],
    ]
    assert names(points)[points[2].name].endswith("4 queries tree")


def test_rows_are_shared_and_queries_are_not():
    """Memory for queries, answers and scores grows; slices do not. A window begins at that of the
    first query.
    """
    hot = replace(DECODE, residency="hot")  # one slice
    one, some, many = (needs(asked(queries, point=hot), 64 * MIB) for queries in QUERIES)
    assert one.cache_bytes == some.cache_bytes == many.cache_bytes
    more = many.beside - one.beside
    assert more == 5 * (some.beside - one.beside) > 15 * 8 * 3 * 8 * 1024  # scores of each query
    assert room(asked(16, "tree", q_heads=32), one.slices) == room(asked(1), one.slices)
    wide, own = (needs(asked(n, window=100), 64 * MIB).slice_walked for n in (17, 1))
    assert wide / own == pytest.approx(1.16, rel=1e-3)


def test_a_schedule_is_of_query_rows():
    found = needs_here(map(asked, QUERIES), MACHINE)
    groups = [class_of(point, needed, MACHINE)[4] for point, needed in found.items()]
    assert groups == ["g<=4", "g>4", "g>4"]


def test_only_single_queries_stand_side_by_side(sweep):
    axes = 'model = "llama-3-8b"\ndtype = ["f16", "i8"]\n'
    both = sweep(axes + "q_len = [1, 4]")
    assert {point.shape.q_len for each in both.contrasts for point in each.points} == {1}
    assert {point.shape.q_len for point in expected(both, TWO)} == {1}
    several = [point for point in both.points if point.shape.q_len > 1]
    assert not contrasts(needs_here(several, MACHINE), MACHINE, 64 * GIB)
    assert not expected(sweep(axes + "q_len = 4"), TWO)
