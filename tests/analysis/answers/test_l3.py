"""Whether L3 helps, and what fits: planted gains, and numbers of tokens computed by hand."""

from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Basis, Held, Reason, State
from kvbench.analysis.means.findings import findings
from kvbench.model.geometry import Geometry
from tests.made_run import DECODE, MACHINE, MIB, RUN, machine, traffic, visit

MODEL = Geometry("small", 24, 8, 2, 64, 20000)
OTHER = Geometry("other", 12, 8, 8, 64, 20000)
HOT = replace(DECODE, residency="hot", shape=replace(DECODE.shape, context=12288, capacity=12288))
NOISE = (0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03)


def inside(times, point=HOT, noise=NOISE, near=5.0):
    """A point in L3 with this speed relative to memory, by launch."""
    return [
        visit(
            launch,
            {
                "point": [20.0 * times * each],
                "core": [200.0],
                "slice": [20.0 * near],
                "memory": [20.0],
                "rotated": [20.0],
            },
            point,
            walked=12 * MIB,
            layers=1,
        )
        for launch, each in enumerate(noise)
    ]


def slower(sample):
    return replace(sample, seconds=5 * sample.seconds, sample_time=5 * sample.sample_time)


def far(dtype="f16"):
    """A point in memory, with 512 bytes per token for any dtype."""
    point = replace(DECODE, dtype=dtype)
    made = visit(0, {"point": [15.0]}, point)
    own = replace(traffic(16.0 * MIB), bytes_kv=512 * 1024)
    return replace(made, traffic={"point": own})


def answer(records, host=MACHINE, models=(MODEL, OTHER)):
    return findings(RUN, [far(), *records], host, models=models).answers.l3


def test_of_the_layouts_the_middle_one_counts():
    gains = {"head": 1.3, "position": 1.1, "blockt": 1.6}
    records = [
        each
        for layout, times in gains.items()
        for each in inside(times, replace(HOT, layout=layout))
    ]
    found = answer(records)
    (gain,) = found.gains
    assert (gain.layout, gain.dtype, gain.group, gain.context) == ("head", "f16", 4, 12288)
    assert found.helps == gain.gain and found.helps.figure.value == pytest.approx(1.3, rel=1e-3)
    assert found.helps.held == Held.FAR and found.helps.basis == Basis.ROUNDS
    assert found.helps.state == State.DECIDED and found.helps.launches == 7
    # seven launches, all on one side: a coin has a chance of 2 / 2**7
    assert found.helps.chance == pytest.approx(2 / 128)


@pytest.mark.parametrize(
    ("times", "noise", "state"),
    [
        (1.5, NOISE, State.DECIDED),
        (0.5, NOISE, State.DECIDED),
        (1.0, NOISE, State.LEVEL),
        (1.05, (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3), State.OPEN),
        (1.5, (1.0, 1.0), State.NOT_TESTED),
    ],
)
def test_states(times, noise, state):
    assert answer(inside(times, noise=noise)).helps.state == state


def test_the_page_is_about_its_model():
    """The other model gains more. Of three dtypes the middle one comes first."""
    other = replace(HOT, shape=replace(HOT.shape, kv_heads=8))
    i8, f32 = replace(HOT, dtype="i8"), replace(HOT, dtype="f32")
    found = answer([*inside(4.0, other), *inside(1.2), *inside(1.4, i8), *inside(1.7, f32)])
    assert [(gain.model, gain.dtype) for gain in found.gains] == [
        ("small", "i8"),
        ("small", "f32"),
        ("small", "f16"),
        ("other", "f16"),
    ]
    assert found.helps.figure.value == pytest.approx(1.4, rel=1e-3)


def test_without_the_pages_model_the_middle_of_the_others_counts():
    shapes = [replace(HOT.shape, kv_heads=heads) for heads in (1, 4, 8)]
    records = [
        each
        for shape, times in zip(shapes, (1.5, 3.0, 2.0), strict=True)
        for each in inside(times, replace(HOT, shape=shape))
    ]
    found = answer(records)
    assert found.helps.figure.value == pytest.approx(2.0, rel=1e-3)
    assert [gain.group for gain in found.gains] == [1, 2, 8]


def test_a_level_that_is_read_no_faster_tells_nothing():
    found = answer(inside(1.3, near=0.9))
    assert found.helps.reason == Reason.NOT_FASTER and not found.gains
    assert found.helps.facts["times"] == pytest.approx(0.9)


def test_suspects_are_left_out():
    """One point decodes at 120 GB/s, but at 40 in a private cache."""
    records = inside(1.3)
    beyond = inside(6.0, replace(HOT, layout="position"))
    beyond = [
        replace(each, samples=tuple(slower(s) if s.program == "core" else s for s in each.samples))
        for each in beyond
    ]
    found = answer([*records, *beyond])
    assert [gain.layout for gain in found.gains] == ["head"]
    assert answer(beyond).helps.reason == Reason.SUSPECT


# ---- why it was not tested -----------------------------------------------------------------------


def test_no_point_in_l3():
    assert answer([]).helps.reason == Reason.NO_L3


def test_nothing_beside_it():
    records = [visit(n, {"point": [50.0]}, HOT, walked=12 * MIB, layers=1) for n in range(3)]
    assert answer(records).helps.reason == Reason.NOT_MEASURED


def test_caches_before_l3_hold_too_much():
    """Two threads with 24 MiB of L2 each share an L3 of 32 MiB: no window is left."""
    found = answer([], machine(4, l2=24 * MIB))
    assert found.helps.reason == Reason.CLOSED and found.helps.facts["threads"] == 2
    assert {(each.layer, each.model_wide) for each in found.fits} == {(None, None)}


def test_no_l3_is_known():
    assert answer([], machine(4, l3=0)).helps.reason == Reason.NO_CACHE


# ---- what fits -----------------------------------------------------------------------------------


def test_tokens_by_bytes():
    """2 threads share 32 MiB, of which 70 % count. A layer has 512 bytes per token, 24 layers 24
    times that. The model's longest context, 20,000 tokens, is ignored here.
    """
    found = answer([far("i8")])
    assert [(each.dtype, each.layer, each.model_wide) for each in found.fits] == [
        (dtype, int(0.7 * 32 * MIB / 512), int(0.7 * 32 * MIB / 512 / 24))
        for dtype in ("f16", "i8")
    ]
    assert {each.bytes_per_token for each in found.fits} == {512}
    assert found.fits[0].layer > MODEL.max_context


def test_without_a_model_nothing_fits():
    assert answer([], models=()).fits == ()
