"""The calls that show where an engine's time goes: their shapes, and why some are missing."""

from dataclasses import replace

import pytest

from kvbench.model import DataCache
from kvbench.model.calls import (
    ALL,
    CORE,
    CORE_HALF,
    ONE,
    START,
    START_ONE,
    START_ONE_TWICE,
    START_TWICE,
    Lacks,
    Part,
)
from kvbench.peers.interface import Peer
from kvbench.plan.calls import calls_of
from tests.made_run import DECODE, MACHINE

KIB = 1 << 10
POINT = replace(
    DECODE,
    engine="e",
    layout="paged",
    block_tokens=128,
    shape=replace(DECODE.shape, q_heads=32, kv_heads=8, head_dim=128, context=4096, capacity=4096),
)


class Picky(Peer):
    """An engine that refuses a single KV head, and 256 tokens."""

    @classmethod
    def refuses(cls, dtype, shape):
        if shape.kv_heads == 1:
            return "several KV heads alone"
        return "more tokens" if shape.context <= 256 else ""


def machine(l2=1 << 20, levels=(1, 2, 3)):
    sizes = {1: 32 * KIB, 2: l2, 3: 32 << 20}
    caches = [
        DataCache(level, sizes[level], cpus)
        for level in levels
        for cpus in ([(0, 1, 2, 3)] if level == 3 else [(cpu,) for cpu in range(4)])
    ]
    return replace(MACHINE, caches=tuple(caches))


def told(point=POINT, kind=Peer, **how):
    return calls_of(point, machine(**how), kind)


def tokens(calls, *names):
    return [calls.points[name].shape.context for name in names]


def test_two_threads_have_all_calls():
    calls = told()
    assert not calls.missing
    assert calls.points[ALL] == POINT
    assert calls.points[ONE] == replace(POINT, cpus=(0,))
    for few, twice, cpus in ((START, START_TWICE, (0, 1)), (START_ONE, START_ONE_TWICE, (0,))):
        assert tokens(calls, few, twice) == [256, 512]
        assert calls.points[few].cpus == calls.points[twice].cpus == cpus
        assert calls.points[few].residency == "hot" and calls.points[few].shape.kv_heads == 8
    for name in (CORE, CORE_HALF):
        own = calls.points[name]
        assert (own.shape.q_heads, own.shape.kv_heads, own.cpus) == (4, 1, (0,))
        assert own.residency == "hot" and own.block_tokens == 128


@pytest.mark.parametrize(
    ("l2", "dtype", "right"),
    [
        (1 << 20, "f16", 1024),  # 512 bytes per token, in half of the cache
        (1 << 20, "f32", 512),
        (2 << 20, "f16", 2048),
        (512 * KIB, "f32", None),  # 512 tokens fill all of it
        (512 * KIB, "f16", 512),
        (256 * KIB, "f16", None),
        (400 * KIB, "f16", 512),  # more than half, but within what such a cache serves
        (64 << 20, "f16", 4096),  # no more than the point's own
    ],
)
def test_the_core_has_as_many_tokens_as_its_cache_holds(l2, dtype, right):
    calls = told(replace(POINT, dtype=dtype), l2=l2)
    if right is None:
        assert calls.missing == {Part.CORE: Lacks.SMALL_CACHE} and CORE not in calls.points
    else:
        assert tokens(calls, CORE, CORE_HALF) == [right, right // 2] and calls.level == "L2"


def test_one_thread_has_no_others():
    calls = told(replace(POINT, cpus=(2,)))
    assert calls.missing == {Part.THREADS: Lacks.ONE_THREAD}
    assert {*calls.points} == {ALL, START, START_TWICE, CORE, CORE_HALF}
    assert all(own.cpus == (2,) for own in calls.points.values())


def test_no_cache_is_known():
    calls = told(levels=())
    assert calls.missing == {Part.CORE: Lacks.NO_CACHE} and not calls.level


def test_short_contexts():
    def of(context):
        shape = replace(POINT.shape, context=context, capacity=context)
        return told(replace(POINT, shape=shape))

    assert tokens(of(300), START, START_TWICE, CORE, CORE_HALF) == [150, 300, 512, 256]
    assert of(1).missing == {Part.START: Lacks.FEW_TOKENS}


def test_what_an_engine_refuses_is_not_asked_for():
    calls = told(kind=Picky)
    assert calls.missing == {Part.START: "more tokens", Part.CORE: "several KV heads alone"}
    assert {*calls.points} == {ALL, ONE}
