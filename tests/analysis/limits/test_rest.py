"""The split of an engine's pass: times that follow from planted parts."""

from dataclasses import replace

import pytest

from kvbench.analysis.limits.rest import parts, split
from kvbench.model import Record, Sample, Shape, Traffic
from kvbench.model.calls import (
    ALL,
    CORE,
    CORE_HALF,
    ONE,
    READ,
    READ_ONE,
    START,
    START_ONE,
    START_ONE_TWICE,
    START_TWICE,
    Calls,
    Lacks,
    Part,
)
from kvbench.peers.known import Known
from kvbench.report.words import paragraphs, said
from tests import made_run

SHAPE = Shape(
    layers=0,
    batch=1,
    q_heads=8,
    kv_heads=4,
    head_dim=16,
    context=4096,
    capacity=4096,
    window=0,
)
POINT = replace(
    made_run.DECODE, engine="e", cpus=(0, 1), shape=SHAPE, dtype="f16", layout="position"
)
BYTES = 1 << 20
MEMORY, MEMORY_ONE = 1e-3, 1.6e-3  # seconds of a plain read, by two threads and by one


def calls(threads=2, missing=None):
    def small(tokens, **heads):
        return replace(POINT, shape=replace(SHAPE, context=tokens, capacity=tokens, **heads))

    one_head = {"q_heads": 2, "kv_heads": 1}
    points = {
        ALL: replace(POINT, cpus=tuple(range(threads))),
        START: small(256),
        START_TWICE: small(512),
        CORE: small(1024, **one_head),
        CORE_HALF: small(512, **one_head),
    }
    return Calls(points, "L2", missing or {})


def times(whole, one, start=0.0, core=0.0):
    """Planted times. core: of one thread, for all heads and tokens. A call takes its start, and the
    core's time for each token, divided by its threads.
    """
    token = core / SHAPE.context
    head = token / SHAPE.kv_heads
    return {
        ALL: whole,
        ONE: one,
        READ: MEMORY,
        READ_ONE: MEMORY_ONE,
        START: start + 256 * token / 2,
        START_TWICE: start + 512 * token / 2,
        START_ONE: start + 256 * token,
        START_ONE_TWICE: start + 512 * token,
        CORE: start + 1024 * head,
        CORE_HALF: start + 512 * head,
    }


# seconds by hand: of the pass, of one thread, of the start, of one thread's core; then each part
CASES = {
    "a plain read": ((1e-3, 1.6e-3, 0, 1e-3), (1e-3, 0, 0, 0, 0)),
    "it sleeps": ((3e-3, 3.6e-3, 2e-3, 1e-3), (1e-3, 2e-3, 0, 0, 0)),
    # one thread takes 3.2: 2.2 more than its core, of which two threads keep 1.375
    "it reads twice": ((2e-3, 3.2e-3, 0, 1e-3), (1e-3, 0, 0, 0.125e-3, 0.875e-3)),
    # the team could take 0.5 of its core and 0.375 of waiting, which is less than a plain read
    "it uses one thread": ((1.6e-3, 1.6e-3, 0, 1e-3), (1e-3, 0, 0, 0.6e-3, 0)),
    "its core is slow": ((3e-3, 6e-3, 0, 6e-3), (1e-3, 0, 2e-3, 0, 0)),
    "its core is slow and on one thread": ((6e-3, 6e-3, 0, 6e-3), (1e-3, 0, 2e-3, 3e-3, 0)),
    "it waits": ((4e-3, 8e-3, 0, 4e-3), (1e-3, 0, 1e-3, 0, 2e-3)),
    "some of each": ((7e-3, 9e-3, 1e-3, 4e-3), (1e-3, 1e-3, 1e-3, 1.5e-3, 2.5e-3)),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_are_those_that_were_planted(name):
    asked, right = CASES[name]
    found = parts(times(*asked), calls())
    assert [*found] == [*Part]
    assert [*found.values()] == pytest.approx(right, abs=1e-9)
    assert sum(found.values()) == pytest.approx(asked[0])


def test_one_thread_has_no_part_of_threads():
    own = times(4e-3, 0, core=3e-3)
    own = {name: own[name] for name in (ALL, READ, START, START_TWICE, CORE, CORE_HALF)}
    own[START], own[START_TWICE] = own[START] * 2, own[START_TWICE] * 2
    found = parts(own, calls(1, {Part.THREADS: Lacks.ONE_THREAD}))
    assert found == pytest.approx(
        {Part.READ: 1e-3, Part.START: 0, Part.CORE: 2e-3, Part.REST: 1e-3}, abs=1e-9
    )


def test_what_is_not_measured_is_in_the_rest():
    own = times(5e-3, 6e-3, core=6e-3)
    own = {name: seconds for name, seconds in own.items() if name not in (CORE, CORE_HALF)}
    found = parts(own, calls(missing={Part.CORE: Lacks.NO_CACHE}))
    assert Part.CORE not in found and sum(found.values()) == pytest.approx(5e-3)
    # one thread's wait, reduced as much as memory gains by threads
    assert found[Part.THREADS] == pytest.approx(5e-3 - 6e-3 / 1.6)


def test_noise_below_zero_is_no_time():
    own = times(1.2e-3, 1.6e-3) | {START: 1e-5, START_TWICE: 3e-5, CORE: 1e-5, CORE_HALF: 2e-5}
    found = parts(own, calls())
    assert found[Part.START] == found[Part.CORE] == 0


# ---- of a visit ----------------------------------------------------------------------------------


def moved(count):
    return Traffic(0.0, count, count, count, count, 0.0, 0.0, 0.0)


def visit(case, rounds=12, wobble=0.01, lost=()):
    """Plain reads move half of the bytes in half of the time."""
    own = {name: each for name, each in times(*case).items() if name not in lost}
    own |= {READ: MEMORY / 2, READ_ONE: MEMORY_ONE / 2}
    samples = [
        Sample(name, number, 1, each, (each * (1 + wobble * (number % 3 - 1)),), 0.0, 0, 0)
        for number in range(rounds)
        for name, each in own.items()
    ]
    traffic = {name: moved(BYTES) for name in own}
    traffic |= dict.fromkeys((READ, READ_ONE), moved(BYTES / 2))
    return Record(0, POINT, tuple(samples), traffic, {}, slices=7, max_abs_err=1e-4)


def told(visit, calls):
    return split(visit, calls, Known("e", version="1.2"))


def text(facts):
    shown = [said("rest", "of", facts, own) for own in facts.parts]
    return " ".join(
        [said("rest", "sentence", facts), *shown, *paragraphs("rest", "meaning", facts)]
    )


def with_one(calls):
    return replace(calls, points=calls.points | {ONE: replace(POINT, cpus=(0,))})


@pytest.mark.parametrize(
    ("name", "largest", "means"),
    [
        ("it sleeps", Part.START, "The start of a call costs most"),
        ("it reads twice", Part.REST, "The rest costs most"),
        ("it uses one thread", Part.THREADS, "Its threads cost most"),
        ("its core is slow", Part.CORE, "Its core costs most"),
    ],
)
def test_the_largest_part_is_the_planted_one(name, largest, means):
    asked, right = CASES[name]
    found = told(visit(asked), with_one(calls()))
    assert found.largest == largest and found.clear
    for own, seconds in zip(found.parts, right, strict=True):
        assert own.seconds == pytest.approx(seconds, rel=0.02, abs=1e-9)
        assert own.share.low <= own.share.value <= own.share.high
        assert own.share.value == pytest.approx(seconds / asked[0], rel=0.02, abs=1e-9)
    assert means in text(found)


def test_what_is_said():
    found = told(visit(CASES["its core is slow and on one thread"][0]), with_one(calls()))
    assert text(found).startswith(
        "e, position, f16: 17% of the read; its core needs 3.0 times as long as memory; its threads"
        " are 1.0 times as fast as one "
    )
    assert "one thread, 1 KV head, 512 and 1,024 tokens in L2" in text(found)
    assert found.gbps == pytest.approx(BYTES / 6e-3 / 1e9)
    assert found.read_gbps == pytest.approx(BYTES / MEMORY / 1e9)
    assert found.rounds == 12 and found.slices == 7


def test_nothing_is_missing():
    found = told(visit(CASES["a plain read"][0]), with_one(calls()))
    assert found.largest is None and "about as fast as plain reads" in text(found)


def test_two_parts_that_are_alike_are_not_told_apart():
    found = told(visit((5e-3, 7.2e-3, 2e-3, 6e-3)), with_one(calls()))
    assert not found.clear and "Another part may be as large" in text(found)


def test_why_a_part_is_not_measured():
    missing = {Part.CORE: Lacks.NO_CACHE, Part.START: "it has no such shape"}
    lost = (CORE, CORE_HALF, START, START_TWICE, START_ONE, START_ONE_TWICE)
    own = with_one(calls(missing=missing))
    own = replace(own, points={ALL: own.points[ALL], ONE: own.points[ONE]})
    found = told(visit((5e-3, 6e-3), lost=lost), own)
    assert "what its core needs is not known" in text(found)
    assert "not measured: no private cache is known" in text(found)
    assert "not measured: it has no such shape" in text(found)
    assert "The rest contains the parts that are not measured (start and core)." in text(found)
    assert found.core_times is None and found.core.contexts == ()
