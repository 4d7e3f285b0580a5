"""Decode against the oracle: named situations, and a part of the fuzz."""

import sys

import numpy as np
import pytest

from tests import cases, formats, oracle, trial
from tests.oracle import Planes, Shape
from tests.processes import succeeds
from tests.queries import ONE, Queries
from tests.raw import ROOT, Bound, Raw, decode_args


def case_of(bench, shape, lengths, table=None, **more):
    """Make a plain case with all its rows stored."""
    rng = np.random.default_rng(9)
    facts = {
        "seed": 0,
        "index": 1,
        "q_heads": 3 * shape.kv_heads,
        "window": 0,
        "variant": "flash",
        "schedule": "cross",
        "threads": 2,
        "deterministic": 0,
        "guard": 1,
        "fill": 0xFF,
        "kind": "plain",
        "scale": 0.0,
        "evicted": False,
        "store": None,
        "queries": ONE,
    } | more
    vectors = shape.batch * facts["queries"].count
    q = rng.standard_normal((vectors, facts["q_heads"], shape.head_dim), dtype=np.float32)
    planes = Planes.filled(shape, facts["fill"])
    case = cases.Case(
        shape=shape, lengths=np.array(lengths), table=table, planes=planes, q=q, **facts
    )
    cases.fill_rows(rng, case)
    return case


def shape_of(layout="head", dtype="f16", **more):
    facts = {
        "batch": 1,
        "kv_heads": 2,
        "head_dim": 96,
        "capacity": 700,
        "block_tokens": 16,
        "blocks": 300,
    }
    return Shape(layout=layout, dtype=dtype, **(facts | more))


def table_of(shape):
    if shape.layout != "paged":
        return None
    order = np.random.default_rng(4).permutation(shape.blocks)[: shape.batch * shape.table_width]
    return order.astype(np.int32).reshape(shape.batch, -1)


def of(variant, layout, **more):
    """Return the case in a number format that the variant has."""
    usual = "e4m3" if layout == "block16" else "f16"
    return shape_of(layout, ONLY_OF.get((variant, layout), ONLY_OF.get(variant, usual)), **more)


def passes(bench, case):
    """Compare every tier of this CPU with one answer of the oracle. A tier that lacks the variant
    must refuse it.
    """
    assert trial.failures(bench, case, bench.raw.tiers()) == []


KERNELS = [kernel for kernel in Raw().kernels() if kernel["op"] == "decode"]
EVERY = {(kernel["variant"], kernel["layout"]) for kernel in KERNELS}
DOT = sorted({kernel["dtype"] for kernel in KERNELS if kernel["variant"] == "dot"})
ONLY_OF = {"round16": "f32", "dot": "i8", ("dot", "block16"): "q4_0"}
ROWS = [(dtype, "flash") for dtype in formats.DTYPES] + [("f32", "round16")]
ROWS += [(dtype, "dot") for dtype in DOT]


@pytest.mark.parametrize(("variant", "layout"), sorted(EVERY))
class TestEveryLayoutAndVariant:
    def test_ragged_batch(self, bench, layout, variant):
        shape = of(variant, layout, batch=5)
        passes(bench, case_of(bench, shape, [1, 700, 0, 33, 512], table_of(shape), variant=variant))

    @pytest.mark.parametrize("window", [1, 31, 32, 33, 256, 699, 700, 5000])
    def test_window(self, bench, layout, variant, window):
        shape = of(variant, layout, batch=2)
        table = table_of(shape)
        passes(
            bench,
            case_of(bench, shape, [700, 40], table, variant=variant, window=window, evicted=True),
        )

    def test_ring(self, bench, layout, variant):
        shape = of(variant, layout, batch=3, capacity=130, ring=True)
        table = table_of(shape)
        passes(bench, case_of(bench, shape, [130, 1000, 77], table, variant=variant, window=130))
        passes(bench, case_of(bench, shape, [131, 259, 260], table, variant=variant, window=99))

    @pytest.mark.parametrize("kind", ["equal", "steep", "single", "skewed", "zero"])
    def test_kinds_of_rows(self, bench, layout, variant, kind):
        shape = of(variant, layout)
        passes(bench, case_of(bench, shape, [700], table_of(shape), variant=variant, kind=kind))


@pytest.mark.parametrize(("variant", "layout"), sorted(EVERY))
def test_two_widths(bench, variant, layout):
    """Rows of V are shorter than those of K (as in MLA), of another dtype, or longer."""
    for dim, v_dim, group in ((192, 128, 8), (64, 65, 3), (16, 320, 9)):
        shape = of(variant, layout, batch=2, head_dim=dim, v_dim=v_dim, capacity=300, pad=64)
        how = {"variant": variant, "q_heads": 2 * group}
        passes(bench, case_of(bench, shape, [300, 33], table_of(shape), **how))


@pytest.mark.parametrize(("variant", "layout"), sorted(EVERY))
def test_several_queries(bench, variant, layout):
    """Each query has its own end, with few query heads and with many."""
    for group in (1, 3, 8):
        shape = of(variant, layout, batch=2, capacity=600)
        how = {"variant": variant, "q_heads": 2 * group}
        asked = Queries(3, ends=np.array([[600, 599, 1], [0, 33, 17]]))
        passes(bench, case_of(bench, shape, [600, 33], table_of(shape), queries=asked, **how))


@pytest.mark.parametrize("v_dtype", formats.DTYPES)
@pytest.mark.parametrize("dtype", formats.DTYPES)
def test_two_dtypes(bench, dtype, v_dtype):
    """Every pair runs in all variants that have it, in some layout. V has its own scales and
    width.
    """
    turn = sum(map(formats.DTYPES.index, (dtype, v_dtype)))
    layouts = [
        layout for layout in bench.words.layout
        if dtype in bench.words.dtypes(layout) and v_dtype in bench.words.v_dtypes(layout)
    ]  # fmt: skip
    more = {"v_dtype": v_dtype, "v_scale": "f16", "v_dim": (96, 40, 130)[turn % 3]}
    shape = shape_of(layouts[turn % len(layouts)], dtype, batch=2, capacity=150, pad=64, **more)
    for place, variant in enumerate(bench.words.variants(shape)):
        schedule = bench.words.schedule[(turn + place) % len(bench.words.schedule)]
        how = {"variant": variant, "schedule": schedule, "q_heads": 2 * (1, 3, 8, 9)[turn % 4]}
        passes(bench, case_of(bench, shape, [150, 33], table_of(shape), **how))


def test_ring_refuses_more_than_it_keeps(bench):
    case = case_of(bench, shape_of(capacity=50, ring=True), [40])
    case.lengths[:] = 60
    with pytest.raises(Exception, match="window"):
        trial.failures(bench, case, ["scalar"])


@pytest.mark.parametrize(("dtype", "variant"), ROWS)
@pytest.mark.parametrize("group", [1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64])
def test_every_group_size(bench, dtype, variant, group):
    shape = shape_of(dtype=dtype, head_dim=128)
    passes(bench, case_of(bench, shape, [333], variant=variant, q_heads=2 * group))


@pytest.mark.parametrize("dim", [1, 3, 15, 16, 17, 48, 63, 64, 65, 127, 255, 256, 320, 1024])
@pytest.mark.parametrize(("dtype", "variant"), ROWS)
def test_every_kind_of_dim(bench, dtype, variant, dim):
    for group in (3, 8):
        shape = shape_of(dtype=dtype, head_dim=dim)
        passes(bench, case_of(bench, shape, [100], variant=variant, q_heads=2 * group))


@pytest.mark.parametrize(
    "tokens",
    [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513],
)
@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_tile_edges(bench, dtype, tokens):
    passes(bench, case_of(bench, shape_of(dtype=dtype, capacity=tokens), [tokens]))


@pytest.mark.parametrize(
    ("layout", "dtype", "variant"),
    sorted({(kernel["layout"], kernel["dtype"], kernel["variant"]) for kernel in KERNELS
            if kernel["layout"] in formats.TRANSPOSED}),
)  # fmt: skip
def test_lanes_of_transposed_blocks(bench, layout, dtype, variant):
    """Every length and first lane is right. Other tokens, padding and unused lanes are NaN."""
    for tokens in (*range(1, 50), 63, 64, 65):
        ring = tokens % 4 == 0
        dim = 1024 if tokens == 64 else (48, 37, 3)[tokens % 3]
        shape = shape_of(layout, dtype, head_dim=dim, capacity=tokens - ring, ring=ring)
        how = {
            "window": max(1, tokens * (tokens % 5) // 5 - ring) if tokens % 5 else tokens - ring,
            "evicted": True,
        }
        case = case_of(
            bench, shape, [tokens], variant=variant, q_heads=2 * (1, 2, 3, 8, 9)[tokens % 5], **how
        )
        passes(bench, case)


@pytest.mark.full
@pytest.mark.parametrize("variant", ["flash", "twopass", "perhead"])
@pytest.mark.parametrize("dtype", formats.DTYPES)
def test_128k_tokens(bench, dtype, variant):
    shape = shape_of(dtype=dtype, kv_heads=1, head_dim=64, capacity=131072)
    passes(bench, case_of(bench, shape, [131072], variant=variant, q_heads=2))


WHOLE = [("position", 8, 128), ("position", 3, 37), ("position", 7, 160)]
WHOLE += [("head", heads, dim) for heads, dim in ((1, 73), (2, 96), (1, 112), (1, 200))]
READ_WHOLE = [(dtype, "flash", *where) for dtype in formats.DTYPES for where in WHOLE]
READ_WHOLE += [("f32", "round16", *where) for where in WHOLE] + [
    (dtype, "flash", layout, 1, 128)
    for layout, dtypes in formats.TRANSPOSED.items()
    for dtype in dtypes
]


@pytest.mark.parametrize("dtype,variant,layout,heads,dim", READ_WHOLE)
def test_rows_taken_whole(bench, dtype, variant, layout, heads, dim):
    """Few query heads, in the schedule that reads rows of several heads in turn and keeps sums of
    long rows in memory; blocks of all lengths after whole ones; scores that rise and fall.
    """
    shape = shape_of(layout, dtype, batch=3, kv_heads=heads, head_dim=dim)
    for group in (1, 2, 3, 4):
        for kind in ("plain", "steep"):
            how = {"variant": variant, "schedule": "stream", "q_heads": group * heads, "kind": kind}
            passes(bench, case_of(bench, shape, [700, 257, 41], **how))


def test_schedules_change_nothing(bench, isa):
    # whole tiles: schedules cut the rest differently
    case = case_of(bench, shape_of(), [512], threads=1)
    answers = set()
    for schedule in bench.words.schedule:
        with Bound(bench.raw, case.shape, case.lengths, guard=1) as bound:
            bound.put(case.planes)
            out = np.empty_like(case.q)
            args = decode_args(bench.raw, bound, case.q, out, isa, schedule=schedule)
            bench.team(1).do("decode", args)
            answers.add(out.tobytes())
    assert len(answers) == 1


def test_stages_change_nothing_and_add_up(bench, isa):
    case = case_of(bench, shape_of(), [700], threads=1)
    answers = set()
    for stages in (0, 1):
        with Bound(bench.raw, case.shape, case.lengths, guard=1) as bound:
            bound.put(case.planes)
            out = np.empty_like(case.q)
            args = decode_args(bench.raw, bound, case.q, out, isa, stages=stages)
            with bench.raw.task("decode", args, 1) as task:
                times = bench.team(1).run(task, passes=3)
            answers.add(out.tobytes())
    assert len(answers) == 1
    assert sum(times.stage_share) == pytest.approx(1) and min(times.stage_share) > 0


def test_fuzz_in_short():
    command = [sys.executable, "-m", "tests.fuzz", "--cases", "1000", "--seed", "20"]
    done = succeeds(command, cwd=ROOT, timeout=500)
    assert "1000 passed, 0 failed" in done.stdout


def test_fuzz_finds_a_broken_answer(bench):
    """The comparison itself: one output off by the tolerance is a failure."""
    case = case_of(bench, shape_of(), [100])
    expected, bound = cases.answer(case)
    out = expected.astype(np.float32)
    assert trial.compare(case, out, expected, bound) == []
    out[0, 3, 5] += 3 * bound[0, 3, 5]
    assert len(trial.compare(case, out, expected, bound)) == 1
    out[0, 3, 5] = np.nan
    assert len(trial.compare(case, out, expected, bound)) == 1
    assert oracle.practical(np.ones((1, 10, 4))) == 2e-6
