"""Answers that a bench accepts: kernels that go wrong in chosen ways are played on a real bench."""

import random
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kvbench.errors import WrongAnswer
from kvbench.machine import describe
from kvbench.model import Cpu, DataCache, Shape
from kvbench.native import Cache, decode_task, default_library
from kvbench.regime import classify
from kvbench.worker.decoding import Decoding
from kvbench.worker.ground import Ground
from kvbench.worker.room import key
from tests import made_run
from tests.made_job import CPU, bench, room

SHAPE = Shape(
    layers=5, batch=2, q_heads=4, kv_heads=2, head_dim=32, context=40, capacity=48, window=0
)
FACTS = {
    "shape": SHAPE,
    "pages": "base",
    "cpus": (CPU,),
    "isa": default_library().isa(),
}
DECODE = replace(made_run.DECODE, **FACTS)
STORES = [
    replace(DECODE, op=op, variant=variant) for op, variant in (("append", "-"), ("bulk", "nt"))
]


@pytest.mark.parametrize("dtype", default_library().words("dtype"))
@pytest.mark.parametrize("point", STORES, ids=lambda point: point.op)
def test_a_store_that_stores_nothing_is_wrong(point, dtype, monkeypatch):
    """Even if a right one has stored all of it before."""
    with bench(replace(point, dtype=dtype)) as found:
        found.verify()
        monkeypatch.setattr(found.team, "run", lambda *tasks, **how: None)
        with pytest.raises(WrongAnswer, match="off by nan"):
            found.verify()


@pytest.mark.parametrize("dtype", default_library().words("dtype"))
@pytest.mark.parametrize("point", STORES, ids=lambda point: point.op)
def test_a_large_number_does_not_excuse_others(point, dtype, monkeypatch):
    """Numbers that share no scale with it must be as exact as without it."""
    with bench(replace(point, dtype=dtype)) as found:
        for layer in range(found.room.slices):
            for rows in found.room.source(layer):
                rows[..., 0, 1], rows[..., 1, 7] = 400.0, 1.0
        assert found.verify() <= 16
        rows = Cache.rows

        def dropping(*args):
            k, v = rows(*args)
            k[..., 1, 7] = 0.0
            return k, v

        monkeypatch.setattr(Cache, "rows", dropping)
        with pytest.raises(WrongAnswer, match="off by"):
            found.verify()


@pytest.mark.parametrize("layer", range(SHAPE.layers))
def test_a_slice_that_is_decoded_wrong_is_seen(layer, monkeypatch):
    with bench(DECODE) as found:
        run = found.team.run

        def wrong(*tasks, **how):
            run(*tasks, **how)
            found.queries.out[layer, 1, 3, 31] += 1.0

        assert found.verify() < 1e-5
        monkeypatch.setattr(found.team, "run", wrong)
        with pytest.raises(WrongAnswer, match="off by 1"):
            found.verify()


def test_an_answer_that_was_kept_is_wrong_once_other_queries_are_asked(monkeypatch):
    """In the first slice and three others, which the launch draws."""
    drawn = set()
    with bench(DECODE) as found:
        assert (
            found.verify_changed() < 1e-5
            and (found.queries.q == found.queries.of(found.room.signs)).all()
        )
        run, found._random, asked = found.team.run, random.Random(5), found.queries.asked.copy()

        def noted(*tasks, **how):
            drawn.update({found.own.tasks.index(task) for task in tasks})
            run(*tasks, **how)

        monkeypatch.setattr(found.team, "run", noted)
        found.verify_changed()
        assert len(drawn) == 4 and 0 in drawn and (found.queries.asked == asked).all()
        run(*found.own.tasks, passes=SHAPE.layers)
        kept = found.queries.out.copy()

        def remembering(*tasks, **how):
            times = run(*tasks, **how)
            found.queries.out[:] = kept
            return times

        monkeypatch.setattr(found.team, "run", remembering)
        assert found.verify() < 1e-5
        with pytest.raises(WrongAnswer, match="off by"):
            found.measured([found.own, found.pace], 1, 1e-5, passes={"point": 5, "fma": 1})


@pytest.mark.parametrize("passes", [1, 3, 5, 7])
def test_the_results_of_timed_passes_are_checked(passes):
    """In the slices that were visited; they must be as many as there were passes."""
    with bench(DECODE) as found:
        found.verify()
        with pytest.raises(WrongAnswer, match="as it was"):
            found.verify_left(passes)
        for program in (found.own, *found.witnesses):
            found.team.run(*program.tasks, passes=passes)
        assert found.verify_left(passes) < 1e-5
        if passes < SHAPE.layers:
            with pytest.raises(WrongAnswer, match="as it was"):
                found.verify_left(passes + 1)
        for value, said in ((float("nan"), "off by nan"), (9.0, "off by [89]")):
            found.queries.out[min(passes, SHAPE.layers) - 1, 0, 0, 0] = value
            with pytest.raises(WrongAnswer, match=said):
                found.verify_left(passes)


@pytest.mark.parametrize("point", STORES, ids=lambda point: point.op)
def test_rows_overwritten_by_copies_are_stored_again(point):
    with bench(point) as found:
        assert found.verify() < 1e-2
        for program in (found.own, *found.witnesses):
            found.team.run(*program.tasks, passes=7)
        assert found.verify_left(7) < 1e-2


def test_tokens_that_come_one_at_a_time_go_on_along_all_slices():
    """And not over the lines of one token again and again."""
    with bench(STORES[0]) as found:
        facts = found.room.facts(found.point, found.own.traffic())
        assert facts["footprint"] == SHAPE.layers * found.room.slice_bytes
        assert facts["footprint"] > SHAPE.layers * found.own.traffic().bytes_line
    with bench(DECODE) as found:
        traffic = found.own.traffic()
        facts = found.room.facts(found.point, traffic)
        assert facts["footprint"] == SHAPE.layers * traffic.bytes_line
        assert facts["level"] == classify(describe(), DECODE.cpus, facts["footprint"]).word


NEAR = replace(
    DECODE, residency="hot", shape=replace(SHAPE, batch=1, context=1024, capacity=1024, layers=0)
)


@contextmanager
def in_l3():
    """A slice of 256 KiB on a machine that declares an L2 of 64 KiB and an L3 of 1 MiB."""
    cpu = NEAR.cpus
    caches = tuple(
        DataCache(level, size << 10, cpu) for level, size in ((1, 32), (2, 64), (3, 1024))
    )
    machine = replace(made_run.MACHINE, cpus=(Cpu(cpu[0], 0, 0, 0, 0),), allowed=cpu, caches=caches)
    with (
        Ground(default_library(), machine) as ground,
        bench(NEAR, ground) as found,
    ):
        yield found


def test_in_l3_reads_and_the_same_kernel_from_memory_are_beside_it():
    with in_l3() as found:
        programs = {program.name: program for program in found.programs}
        assert {"slice", "memory", "rotated"} <= programs.keys()
        assert programs["slice"].traffic().bytes_compulsory == found.room.whole.size
        assert programs["memory"].traffic() == programs["slice"].traffic()
        assert (
            len(programs["memory"].tasks) * found.room.whole.size
            > found.far.bytes - found.room.whole.size
        )
        assert programs["rotated"].traffic() == programs["point"].traffic()
        assert (
            len(programs["rotated"].tasks) * found.room.slice_bytes
            > found.far.bytes - found.room.slice_bytes
        )
        _, error = found.measured(found.programs, 1, 1e-4)
        assert error < 1e-5
    with bench(replace(NEAR, residency="rotate", shape=SHAPE)) as found:
        assert not {"slice", "memory", "rotated"} & {program.name for program in found.programs}


def test_a_wrong_answer_from_memory_is_seen():
    with in_l3() as found:
        assert "rotated" in {program.name for program in found.programs}
        found.far.arena.view()[:] = 0
        with pytest.raises(WrongAnswer, match="off by"):
            found.measured(found.programs, 1, 1e-4)


def test_points_that_are_split_differently_have_their_own_memory_across_nodes(monkeypatch):
    """Each page lies on the node of a thread that reads it."""
    others = [replace(DECODE, variant="perhead"), replace(DECODE, deterministic=True)]
    for node, shared in ((0, True), (None, False)):
        ground = SimpleNamespace(node=lambda cpus, node=node: node)
        for other in others:
            assert (key(DECODE, 5, ground) == key(other, 5, ground)) == shared
        assert key(STORES[1], 5, ground) == key(replace(STORES[1], variant="plain"), 5, ground)
    filled = []

    def noted(op, *args, **facts):
        filled.append((op, facts["variant"], facts["deterministic"]))
        return decode_task(op, *args, **facts)

    monkeypatch.setattr("kvbench.worker.room.decode_task", noted)
    for other in others:
        with Ground(default_library()) as ground, room(other, ground):
            assert set(filled) == {("fill", other.variant, other.deterministic)}
            filled.clear()


@pytest.mark.parametrize(
    ("l1", "l2", "head_dim", "of_v", "window"),
    [
        (32 << 10, 1 << 20, 32, 2, (1024, "L2")),
        (32 << 10, None, 32, 2, (128, "L1")),
        (32 << 10, 1 << 20, 256, 2, (512, "L2")),
        (16 << 10, 1 << 20, 64, 2, (1024, "L2")),
        (16 << 10, 128 << 10, 256, 2, (64, "L2")),
        (16 << 10, 128 << 10, 256, 1, (80, "L2")),
        (16 << 10, 32 << 10, 256, 2, (16, "L2")),
        (None, None, 32, 2, (1024, "")),
    ],
)
def test_the_window_of_the_core_roof_lies_in_the_largest_private_cache(
    l1, l2, head_dim, of_v, window
):
    """Half of a cache over the bytes of a token: a row of K, of 16 bits, and one of V."""
    machine = made_run.machine(1, l1=l1, l2=l2, l3=32 << 20)
    shape = replace(SHAPE, head_dim=head_dim, context=2000, capacity=2000)
    row = SimpleNamespace(row_bytes=2 * head_dim, head_stride=1 << 20, token_stride=2 * head_dim)
    v = SimpleNamespace(row_bytes=of_v * head_dim)
    room = SimpleNamespace(
        ground=SimpleNamespace(machine=machine),
        caches=[SimpleNamespace(struct=SimpleNamespace(k=row, v=v))],
    )
    found = SimpleNamespace(point=replace(DECODE, shape=shape, cpus=(0,)), room=room)
    assert Decoding.window.func(found) == window
