"""What padding costs: steps of real requests with planted times."""

import math
from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Basis, Reason, State, Unit
from kvbench.analysis.means.findings import findings
from kvbench.model.geometry import Geometry
from tests.made_run import DECODE, MACHINE, MIB, RUN, beside, visit

MODEL = Geometry("small", 24, 8, 2, 64, 4096)  # six times the layers of a step
NOISE = (0.03, -0.03, 0.02, -0.02, 0.01, -0.01, 0.0)
HELD = (700, 1900, 500, 900)  # tokens: 1,000 on average


def step(lengths, context, **facts):
    own = {"lengths": lengths, "context": context, "capacity": context, "layers": 4}
    shape = replace(DECODE.shape, batch=len(HELD), **own)
    return replace(DECODE, op="step", shape=shape, between=MIB, **facts)


def ways(**facts):
    listed = f"listed:{','.join(map(str, HELD))}"
    return step("even", 1000, **facts), step(listed, 1900, **facts), step("even", 1900, **facts)


def first(**facts):
    point = ways(**facts)[0]
    return replace(point, shape=replace(point.shape, batch=1, context=700, capacity=700))


def alone(point, seconds, launches=7):
    """Visits of one point alone."""
    rate = 256 * MIB / 16 / seconds / 1e9
    return [visit(n, {"point": [rate]}, point) for n in range(launches)]


def timed(of, milliseconds, noise=NOISE):
    """In visits of their own all points take a second. `noise`: of the last point, by launch."""
    found = [record for point in of for record in alone(point, 1.0, 2)]
    for n, each in enumerate(noise):
        last = milliseconds[-1] * math.exp(each)
        times = [[1e-3 * (1 + n) * each] * 2 for each in (*milliseconds[:-1], last)]
        found.append(beside(n, of, times, "lengths"))
    return found


def serving(*records, models=(MODEL,)):
    return findings(RUN, list(records), MACHINE, models=models).answers.serving


def test_what_padding_costs_by_hand():
    """Launches take 1 to 7 times as long as the first, so 4 times in the middle; all layers are 6
    times the timed ones. Launches cancel in ratios of the same rounds.
    """
    found = serving(*timed(ways(), (10.0, 11.0, 19.8)))
    (batch,) = found.batches
    assert [(w.way, w.shortest, w.longest, w.tokens) for w in batch.ways] == [
        ("even", 1000, 1000, 4000),
        ("as they are", 500, 1900, 4000),
        ("padded", 1900, 1900, 7600),
    ]
    even, own, padded = batch.ways
    assert even.step.figure.value == pytest.approx(0.24) and own.step.figure.value == 0.264
    assert (own.step.figure.low, own.step.figure.high) == pytest.approx((0.066, 0.462))
    assert own.sequence.figure.value == pytest.approx(1 / 0.264)
    assert own.whole.figure.value == pytest.approx(4 / 0.264)
    assert own.whole.figure.low == pytest.approx(4 / 0.462) and own.whole.figure.unit == Unit.TOKENS
    assert {own.step.basis, padded.whole.basis} == {Basis.ROUNDS} and own.step.launches == 7
    assert batch.padding.figure.value == pytest.approx(1.8, rel=0.01)
    assert batch.padding.figure.low < 1.8 < batch.padding.figure.high
    assert batch.padding.state is State.DECIDED
    assert batch.raggedness.figure.value == pytest.approx(1.1)
    assert (found.model, found.layers, found.timed, found.threads) == ("small", 24, 4, 2)
    assert found.padding == batch.padding and found.between == MIB


def test_the_usual_setting_comes_first_and_its_first_request_alone():
    other, usual = ways(dtype="i8", layout="paged"), ways()
    records = [*timed(other, (5.0, 5.0, 9.0)), *timed(usual, (9.0, 10.0, 15.0))]
    found = serving(*records, *alone(first(), 0.002), *alone(step("even", 700), 0.5))
    assert [(b.dtype, b.layout, b.batch) for b in found.batches] == [
        ("f16", "head", 1),
        ("f16", "head", 4),
        ("i8", "paged", 4),
    ]
    (one,) = found.batches[0].ways
    assert (one.way, one.tokens, one.step.basis) == ("as they are", 700, Basis.APART)
    assert one.step.figure.value == pytest.approx(0.012) and one.step.launches == 7
    assert one.sequence.figure.value == one.whole.figure.value == pytest.approx(1 / 0.012)
    assert not found.batches[0].padding.tested
    assert found.padding.figure.value == pytest.approx(1.5, rel=0.01)


def test_most_threads_are_told():
    records = [
        *timed(ways(cpus=(0,)), (1.0, 1.0, 9.0)),
        *timed(ways(cpus=(0, 1, 2)), (1.0, 1.0, 3.0)),
    ]
    found = serving(*records)
    assert found.threads == 3 and len(found.batches) == 1
    assert found.padding.figure.value == pytest.approx(3.0, rel=0.01)


def test_too_few_launches_say_no_number_and_level_is_level():
    assert serving(*timed(ways(), (10.0, 10.0, 19.0), NOISE[:2])).padding.reason == Reason.TOO_FEW
    assert serving(*timed(ways(), (10.0, 10.0, 10.1))).padding.state is State.LEVEL


def test_without_the_same_rounds_there_is_no_ratio():
    records = [record for n, point in enumerate(ways(), 1) for record in alone(point, 0.001 * n)]
    found = serving(*records)
    assert [way.step.figure.value for way in found.batches[0].ways] == pytest.approx(
        [0.006, 0.012, 0.018]
    )
    assert {way.step.basis for way in found.batches[0].ways} == {Basis.APART}
    assert not found.padding.tested and not found.batches[0].raggedness.tested


def test_a_suspect_is_left_out():
    """The padded point is ten times as fast as reads of its own rows."""
    of = ways()
    records = [each for each in timed(of, (10.0, 10.0, 19.0)) if each.point != of[2]]
    rate = 256 * MIB / 16 / 0.5 / 1e9
    fast = {"point": [rate], "twin": [0.1 * rate]}
    records += [visit(n, fast, of[2]) for n in range(7)]
    points = findings(RUN, records, MACHINE, models=(MODEL,)).points
    assert points.set_index("name").loc[of[2].name, "suspect"]
    (batch,) = serving(*records).batches
    assert [way.way for way in batch.ways] == ["even", "as they are"]
    assert not batch.padding.tested and batch.raggedness.tested


def test_what_is_no_step_of_a_known_model_is_left_out():
    records = timed(ways(), (10.0, 10.0, 19.0))
    assert serving(*records, models=()).padding.reason == Reason.NO_MODEL
    mixed = Geometry("mixed", 24, 8, 2, 64, 4096, window=512, window_every=6)
    assert serving(*records, models=(mixed,)).padding.reason == Reason.NO_MODEL
    decodes = tuple(replace(point, op="decode", between=0) for point in ways())
    assert serving(*timed(decodes, (10.0, 10.0, 19.0))).padding.reason == Reason.NOT_MEASURED
    assert serving(*alone(first(), 0.002)).batches == ()
