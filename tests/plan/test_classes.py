"""Which points share a schedule."""

from dataclasses import replace

import pytest

from kvbench.model.tuning import called
from kvbench.plan import needs_here
from kvbench.plan.classes import class_of, classes
from tests.made_run import DECODE, MACHINE, STORE

POINT = replace(DECODE, schedule="auto", isa="avx2")


def name(point):
    return called(class_of(point, needs_here([point], MACHINE)[point], MACHINE))


def shaped(**facts):
    return replace(POINT, shape=replace(POINT.shape, **facts))


def test_a_class_says_what_it_is_of():
    assert name(POINT) == "avx2/flash.f16/head/d<=64/g<=4/threads of one L3/memory"
    paged = replace(POINT, layout="paged", order=1, cpus=(2,), residency="hot", dtype="q8_0")
    assert name(paged) == "avx2/flash.q8_0/paged.head shuffled block<=32/d<=64/g<=4/1 thread/L2"


LUMPED = {
    "context": shaped(context=2048, capacity=2048),
    "batch": shaped(batch=4),
    "head_dim": shaped(head_dim=48),
    "heads": shaped(q_heads=24, kv_heads=6),
    "window": shaped(window=999),
    "pages": replace(POINT, pages="base"),
    "threads": replace(POINT, cpus=(0, 1, 3)),
    "evicted": replace(POINT, residency="evicted"),
}
APART = {
    "isa": replace(POINT, isa="avx512"),
    "variant": replace(POINT, variant="twopass"),
    "dtype": replace(POINT, dtype="f32"),
    "layout": replace(POINT, layout="position"),
    "head_dim": shaped(head_dim=128),
    "group": shaped(q_heads=16),
    "one thread": replace(POINT, cpus=(3,)),
    "hot": replace(
        POINT, residency="hot", shape=replace(POINT.shape, context=16384, capacity=16384)
    ),
}


@pytest.mark.parametrize("what", LUMPED)
def test_what_hardly_matters_is_no_class_of_its_own(what):
    assert name(LUMPED[what]) == name(POINT)


@pytest.mark.parametrize("what", APART)
def test_what_may_want_another_schedule_is_a_class_of_its_own(what):
    assert name(APART[what]) != name(POINT)


def test_pages_of_a_cache_differ_by_order_and_size():
    paged = replace(POINT, layout="paged")
    assert (
        len(
            {
                name(each)
                for each in (paged, replace(paged, order=1), replace(paged, block_tokens=128))
            }
        )
        == 3
    )


def test_only_decodes_that_ask_for_no_schedule_are_tuned():
    points = [
        POINT,
        shaped(batch=2),
        replace(POINT, schedule="off"),
        replace(STORE, schedule="auto"),
    ]
    assert classes(points, needs_here(points, MACHINE), MACHINE) == {name(POINT): points[:2]}


def hot(context, **changes):
    """A point in one slice, with 512 bytes per token."""
    return replace(shaped(context=context, capacity=context), residency="hot", **changes)


def test_what_nearly_fills_l3_is_apart_from_what_lies_in_it_for_sure():
    """A slice of two threads, in an L3 of 32 MiB."""
    levels = [name(hot(mib << 11)).rpartition("/")[2] for mib in (1, 8, 20, 64)]
    assert levels == ["L2", "L3", "most of L3", "memory"]


def test_a_point_in_l3_has_a_class_of_its_slices_in_memory_too():
    """So has a slice of up to three times L3, of which a part may lie in L3."""
    for mib, far in ((1, False), (8, True), (64, True), (256, False)):
        point = hot(mib << 11)
        found = classes([point], needs_here([point], MACHINE), MACHINE)
        assert set(found) == {name(point)} | ({name(POINT)} if far else set())


def test_what_is_read_between_passes_throws_a_slice_out_of_l3():
    """A slice of 8 MiB: with 8 MiB more it still fits 70 % of 32 MiB, with 16 MiB it does not. A
    slice in L2 keeps its class, because it is not timed from memory.
    """
    levels = [
        name(replace(hot(8 << 11), between=mib << 20)).rpartition("/")[2] for mib in (0, 8, 16, 64)
    ]
    assert levels == ["L3", "L3", "memory", "memory"]
    assert name(replace(hot(1 << 11), between=64 << 20)) == name(hot(1 << 11))
