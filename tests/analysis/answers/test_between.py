"""The part of L3's gain that remains after other reads: planted gains, computed by hand; and noise,
in which it neither falls nor rises.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from kvbench.analysis.answers.answer import Basis, Held, State, Unit
from kvbench.analysis.answers.between import Course, Kept
from kvbench.analysis.means.findings import findings
from kvbench.analysis.shown.between import between as drawn
from kvbench.analysis.shown.roofline import roofline
from kvbench.analysis.shown.staircase import staircase
from kvbench.analysis.shown.stores import stores
from kvbench.model.geometry import Geometry
from tests.analysis.answers.test_l3 import HOT, MODEL, NOISE, far
from tests.made_run import MACHINE, MIB, RUN, STORE, visit

# 512 * (20 heads of 64 + 3 * 1024) = 2,228,224 weights; q4_0 has 18 bytes for 32 of them
WEIGHED = Geometry("small", 24, 8, 2, 64, 20000, hidden=512, intermediate=1024)
Q4_0 = 2_228_224 // 32 * 18
QUARTERS = (8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB)  # of an L3 of 32 MiB: 1, 2, 4, 8
MEMORY, READS = 20.0, 100.0  # GB/s


def family(alone, left, noise=NOISE, point=HOT, own=None):
    """Records of a family. `left`: the speed relative to memory, by the bytes between. `own`: the
    noise of each member, by its bytes; 0 for the point without other reads.
    """
    found = []
    for launch, each in enumerate(noise):

        def times(count, gain, launch=launch, each=each):
            return [MEMORY * gain * each * (own[count][launch] if own else 1.0)] * 3

        witnesses = {"core": [200.0] * 3, "slice": [READS] * 3, "memory": [MEMORY] * 3}
        witnesses |= {"rotated": [MEMORY * each] * 3 if own else [MEMORY] * 3}
        rates = {"point": times(0, alone)} | witnesses
        found.append(visit(launch, rates, point, walked=12 * MIB, layers=1, flops=1e9))
        for count, gain in left.items():
            rates = {"point": times(count, gain), "alone": times(0, alone)} | witnesses
            other = replace(point, between=count)
            found.append(visit(launch, rates, other, walked=12 * MIB, layers=1, flops=1e9))
    return found


def told(records, models=(MODEL,)):
    return findings(RUN, [far(), *records], MACHINE, models=models)


def one(*args, models=(MODEL,), **facts):
    (found,) = told(family(*args, **facts), models).answers.l3.families
    return found


def test_each_is_held_against_memory_against_nothing_and_against_the_one_before():
    found = one(3.0, dict(zip(QUARTERS, (2.4, 1.5, 1.0, 0.8), strict=True)))
    assert found.gain.figure.value == pytest.approx(3.0, rel=1e-3)
    values = {
        name: [getattr(each, name).figure.value for each in found.left]
        for name in ("gain", "alone", "step")
    }
    assert values["gain"] == pytest.approx([2.4, 1.5, 1.0, 0.8], rel=1e-3)
    assert values["alone"] == pytest.approx([0.8, 0.5, 1 / 3, 0.8 / 3], rel=1e-3)
    assert values["step"] == pytest.approx([0.8, 0.625, 1 / 1.5, 0.8], rel=1e-3)
    assert [each.kept for each in found.left] == [Kept.SOME, Kept.SOME, Kept.NOTHING, Kept.NOTHING]
    assert [each.share for each in found.left] == [0.25, 0.5, 1.0, 2.0]
    assert found.course is Course.FALLS and not found.rises
    last = found.left[-1]
    assert (last.gain.held, last.alone.held, last.step.held) == (Held.FAR, Held.ALONE, Held.POINT)
    assert {each.gain.basis for each in found.left} == {Basis.ROUNDS}
    assert last.gain.figure.unit is Unit.TIMES and last.gain.launches == 7
    assert (last.gain.figure.low, last.gain.figure.high) == pytest.approx((0.78, 0.82), rel=0.01)


@pytest.mark.parametrize(
    ("alone", "left", "kept", "course"),
    [
        (3.0, (3.0, 3.0), [Kept.ALL] * 2, Course.LEVEL),
        (3.0, (3.0, 2.0), [Kept.ALL, Kept.SOME], Course.FALLS),
        (3.0, (1.5, 2.5), [Kept.SOME] * 2, Course.RISES),
        (3.0, (3.3, 1.0), [Kept.ALL, Kept.NOTHING], Course.RISES),
        (1.5, (1.0, 1.0), [Kept.NOTHING] * 2, Course.FALLS),
    ],
)
def test_words(alone, left, kept, course):
    found = one(alone, dict(zip(QUARTERS, left, strict=False)))
    assert [each.kept for each in found.left] == kept
    assert found.course is course and bool(found.rises) == (course is Course.RISES)


def test_where_it_rises_is_told():
    found = one(3.0, dict(zip(QUARTERS, (2.0, 1.2, 1.6, 1.0), strict=True)))
    assert found.rises == (32 * MIB,)


def test_noise_leaves_it_open():
    wide = np.array([0.6, 0.8, 1.3, 1.0, 1.5, 0.7, 1.1])
    calm = np.ones(7)
    found = one(3.0, {8 * MIB: 1.1}, noise=calm, own={0: calm, 8 * MIB: wide})
    assert found.left[0].kept is Kept.NOT_CLEAR and found.left[0].gain.state is State.OPEN


def test_too_few_launches_say_no_number():
    found = one(3.0, {8 * MIB: 1.0}, noise=NOISE[:3])
    assert found.left[0].gain.state is State.NOT_TESTED and found.left[0].gain.figure is None
    assert found.left[0].kept is Kept.NOT_CLEAR and found.course is Course.NOT_CLEAR


def test_without_a_gain_nothing_can_be_left():
    assert not one(1.0, {8 * MIB: 1.0}).gains and one(3.0, {8 * MIB: 1.0}).gains


def test_weights_of_a_layer_are_named():
    left = {8 * MIB: 1.0, Q4_0: 2.0}
    found = one(3.0, left, models=(WEIGHED,))
    assert [(each.bytes, each.weights) for each in found.left] == [(Q4_0, "q4_0"), (8 * MIB, "")]
    assert found.typical.bytes == Q4_0
    assert one(3.0, left).typical.bytes == 8 * MIB  # of a model whose weights are unknown


def test_the_gain_alone_is_one_number():
    """It is that of the layout that was timed both ways, not of the middle layout."""
    others = {"position": 1.1, "blockt": 1.2}
    records = [
        each
        for layout, gain in others.items()
        for each in family(gain, {}, point=replace(HOT, layout=layout))
    ]
    found = told([*records, *family(1.9, {32 * MIB: 1.0})])
    (gain,), (own,) = found.answers.l3.gains, found.answers.l3.families
    assert gain.layout == "head" and not gain.middle and gain.layouts == 3
    assert found.answers.l3.helps == gain.gain == own.gain
    assert found.answers.l3.family(gain) is own
    points = found.points.set_index("name")
    assert points.loc[own.point, "l3_gain"] == own.gain.figure.value
    assert points.loc[own.left[0].point, "l3_gain"] == own.left[0].gain.figure.value


def test_a_member_is_no_ordinary_decode():
    """All other answers are the same with and without it."""
    store = replace(STORE, op="append")
    base = family(3.0, {})
    kept = [visit(n, {"point": [9.0], "copy": [9.0]}, store) for n in range(7)]
    more = [replace(each, point=replace(store, between=8 * MIB)) for each in kept]
    shared = [each for each in family(3.0, {200 * MIB: 1.0}) if each.point.between]
    lean, rich = told([*base, *kept]), told([*base, *kept, *shared, *more])
    assert len(rich.points) == len(lean.points) + 2
    for name in ("decodes", "factors", "storing", "servers", "prefetch", "workload"):
        assert getattr(rich.answers, name) == getattr(lean.answers, name)
    assert repr(rich.answers.reads) == repr(lean.answers.reads)
    assert rich.answers.l3.helps.figure == lean.answers.l3.helps.figure
    assert rich.tokens.equals(lean.tokens) and rich.saturation.equals(lean.saturation)
    for draw in (roofline, staircase, lambda found: stores(found).table):
        assert len(draw(rich)) == len(draw(lean))
    row = rich.points[rich.points["between"] == 200 * MIB].iloc[0]
    assert (row["regime"], row["bound"], row["l3"]) == ("mixed", "unknown", "")
    assert "200 MiB between" in row["short"]
    assert not any("between" in each.point for each in rich.open)


# ---- the figure ----------------------------------------------------------------------------------


def test_the_figure_begins_with_nothing():
    found = told(family(3.0, dict(zip(QUARTERS, (2.4, 1.5, 1.0, 0.8), strict=True))))
    table = drawn(found)
    assert list(table["share"]) == [0.0, 0.25, 0.5, 1.0, 2.0]
    assert list(table["gain"]) == pytest.approx([3.0, 2.4, 1.5, 1.0, 0.8], rel=1e-3)
    assert list(found.points.loc[table["row"], "between"]) == [0, *QUARTERS]


def test_of_two_values_there_is_no_figure():
    assert drawn(told(family(3.0, {8 * MIB: 2.4}))).empty


# ---- noise ---------------------------------------------------------------------------------------


def said(rng, gains, launches=7):
    """The answers of a run as noisy as a shared host: launches scatter by 8 %, and each point by 3
    % in addition.
    """
    noise = np.exp(rng.normal(0, 0.08, launches))
    own = {count: np.exp(rng.normal(0, 0.03, launches)) for count in (0, *gains)}
    return one(3.0, gains, noise=noise, own=own)


def rising(gains, runs, seed=0):
    rng = np.random.default_rng(seed)
    return sum(said(rng, gains).course is Course.RISES for _ in range(runs))


@pytest.mark.parametrize("runs", [10, pytest.param(200, marks=pytest.mark.full)])
def test_a_gain_that_stays_rises_in_one_run_of_twenty(runs):
    level = dict.fromkeys(QUARTERS, 3.0)
    assert rising(level, runs) <= binom.ppf(0.99, runs, 0.05)


@pytest.mark.parametrize("runs", [5, pytest.param(100, marks=pytest.mark.full)])
def test_a_gain_that_falls_is_said_to_fall(runs):
    falling = dict(zip(QUARTERS, (2.4, 1.5, 1.1, 0.95), strict=True))
    rng = np.random.default_rng(1)
    assert {said(rng, falling).course for _ in range(runs)} == {Course.FALLS}
