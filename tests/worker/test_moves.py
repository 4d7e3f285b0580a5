"""Moves on the bench: each pass does the same work and is checked against NumPy. A move that moves
nothing, or to another place, is wrong.
"""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import WrongAnswer
from kvbench.native import default_library
from kvbench.plan.needs import needs
from tests.made_job import bench
from tests.worker.test_bench import DECODE, SHAPE

DTYPES = default_library().dtypes("head")
REPACK = replace(DECODE, op="repack", variant="-", shape=replace(SHAPE, capacity=90))
PLAIN = replace(DECODE, variant="-", layout="-", dtype="-", scale="f32")
TRANSPOSE = replace(PLAIN, op="transpose", shape=replace(SHAPE, capacity=40))
LOGITS = replace(PLAIN, op="logits", shape=replace(SHAPE, capacity=40, vocabulary=37))
MOVES = [REPACK, TRANSPOSE, LOGITS]
FLOAT = 4
by_op = pytest.mark.parametrize("point", MOVES, ids=lambda point: point.op)


def walked(found):
    """The footprint in a record."""
    return found.room.facts(found.point, found.own.traffic())["footprint"]


@by_op
def test_samples_beside_copies_leave_right_answers(point):
    with bench(point) as found:
        names = [program.name for program in found.programs]
        assert names[:3] == ["point", "copy", "copy_nt"]
        samples, error = found.measured(found.programs, 2, 1e-4)
        assert {sample.program for sample in samples} == set(names) and error < 1e-2
        assert not found.stages()


@by_op
def test_a_move_that_moves_nothing_is_wrong(point, monkeypatch):
    """Even if a right one has moved all of it before."""
    with bench(point) as found:
        found.verify()
        run = found.team.run

        def idle(*tasks, **how):
            if not set(tasks) & set(found.own.tasks):
                run(*tasks, **how)

        monkeypatch.setattr(found.team, "run", idle)
        with pytest.raises(WrongAnswer, match=r"loses tokens|off in 100%"):
            found.verify()


@by_op
def test_a_float_elsewhere_is_wrong(point, monkeypatch):
    with bench(point) as found:
        run = found.team.run

        def wrong(*tasks, **how):
            run(*tasks, **how)
            if set(tasks) & set(found.own.tasks):
                found.room.arena.view()[: found.room.needs.cache_bytes].view(np.uint16)[:] ^= 0x4000

        monkeypatch.setattr(found.team, "run", wrong)
        with pytest.raises(WrongAnswer, match="off (by|in)"):
            found.verify()


@pytest.mark.parametrize("layout", ["head", "blockt", "block16"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_cache_of_any_format_grows(layout, dtype):
    if dtype in default_library().dtypes(layout):
        with bench(replace(REPACK, layout=layout, dtype=dtype)) as found:
            assert found.verify() < 1


def test_every_repack_moves_as_many_bytes():
    """All rows of two sequences, except those of K's first head, read and written; whatever lies
    there is moved again.
    """
    with bench(REPACK) as found:
        heads, tokens, row = SHAPE.batch * SHAPE.kv_heads, SHAPE.context, 2 * SHAPE.head_dim
        for _ in range(2):
            moved = found.own.traffic()
            assert moved.bytes_compulsory == 2 * row * tokens * (2 * heads - 1)
            found.team.run(*found.own.tasks, passes=7)
        assert all((cache.lengths == tokens).all() for cache in found.room.caches)
        assert found.verify() < 1e-2


def test_a_transpose_and_a_row_of_logits_by_hand():
    with bench(TRANSPOSE) as found:
        rows = 2 * SHAPE.batch * SHAPE.context * SHAPE.kv_heads * SHAPE.head_dim * FLOAT
        assert found.own.traffic().bytes_compulsory == 2 * rows
        assert found.room.slice_bytes == rows
        assert walked(found) == SHAPE.layers * 2 * rows
        found.team.run(*found.own.tasks, passes=SHAPE.layers)
        source = found.room.sources.reshape(SHAPE.layers, -1, 40, 2, 32)
        turned = found.room.arena.view()[: SHAPE.layers * rows].view(np.float32)
        assert np.array_equal(turned.reshape(SHAPE.layers, -1, 2, 40, 32), source.swapaxes(2, 3))
        assert not np.array_equal(source[0], source[1]), "layers are alike"
    with bench(LOGITS) as found:
        assert found.own.traffic().bytes_compulsory == 2 * SHAPE.batch * 37 * FLOAT
        assert walked(found) == SHAPE.layers * SHAPE.batch * 40 * 37 * FLOAT
        task, steps = found.own.tasks[1], 43
        found.team.run(task, passes=steps)
        matrix = found.room.arena.view()[found.room.slice_bytes :][: found.room.slice_bytes]
        matrix = matrix.view(np.float32).reshape(SHAPE.batch, 40, 37)
        assert (matrix == found.room.source(1)[0][:, None]).all(), "43 tokens fill 40 positions"


@pytest.mark.parametrize("capacity", [50, 80, 400])
def test_a_cache_that_grows_walks_no_more_than_it_takes(capacity):
    found = needs(replace(REPACK, shape=replace(SHAPE, capacity=capacity)), 1 << 20)
    rows = found.slice_bytes * min(2 * SHAPE.context, capacity) // capacity
    assert found.slice_walked == rows and found.source_bytes == 0
