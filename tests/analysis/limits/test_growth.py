"""A step's time over the context: planted times, and NumPy's own fit."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.limits.growth import Against, Fit, against, growth
from kvbench.model import Record, Sample, Shape, Traffic
from kvbench.model.program import AGAIN, APPENDS, DECODES, LAST, MEMORY, WEIGHTS
from kvbench.report.words import paragraphs
from tests import made_run

BEGIN, TOKENS, LAYERS = 1000, 160, 4
SHAPE = Shape(
    layers=LAYERS,
    batch=1,
    q_heads=4,
    kv_heads=2,
    head_dim=16,
    context=BEGIN,
    capacity=BEGIN,
    window=0,
)
POINT = replace(made_run.DECODE, op="step", shape=SHAPE)
BYTES = 512  # of a token
# seconds at context 0, and seconds per token
DECODE = (1e-3, 20e-9)
APPEND, WEIGHT = 50e-6, 400e-6


def moved(count):
    return Traffic(0.0, count, count, count, count, 0.0, 0.0, 0.0)


def visit(
    beyond=0.0, more=0.0, noise=0.0, again=1.0, weights=True, drift=0.0, tokens=TOKENS
) -> Record:
    """beyond: seconds of a step outside its parts. more: seconds per token that the step has beyond
    the decodes. drift: the share by which reads of memory are slower at the end.
    """
    rng, samples = np.random.default_rng(3), []

    def add(program, number, seconds):
        taken = seconds * float(np.exp(noise * rng.standard_normal()))
        samples.append(Sample(program, number, 1, taken, (taken,), 0.0, 0, 0))
        return taken

    for number in range(tokens):
        context = BEGIN + 1 + number
        alone = DECODE[0] + DECODE[1] * context
        parts = alone + APPEND + WEIGHT * weights
        own = add("point", number, parts + beyond + more * context)
        if number in (0, tokens - 1):
            continue
        add(DECODES, number, alone)
        if number % 5 == 0 or tokens < 20:
            add(MEMORY, number, 2e-3 * (1 + drift * number / (tokens - 1)))
            samples.append(Sample(AGAIN, number, 1, own / again, (own,), 0.0, 0, 0))
            add(APPENDS, number, APPEND)
            if weights:
                add(WEIGHTS, number, WEIGHT)
    traffic = {"point": moved(BEGIN * BYTES), LAST: moved((BEGIN + tokens - 1) * BYTES)}
    return Record(0, POINT, tuple(samples), traffic, {}, max_abs_err=1e-7, ran="weave")


def said(found):
    return " ".join(paragraphs("growth", "findings", found))


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.2])
def test_the_line_is_that_of_numpy(noise):
    """With its ends: Student's 97.5 % with 158 degrees of freedom is 1.97509."""
    found = growth(visit(noise=noise))
    own = found.samples["point"]
    (slope, start), cov = np.polyfit(own.context, own.seconds, 1, cov=True)
    assert found.step.slope == pytest.approx(slope, rel=1e-6)
    assert found.step.start == pytest.approx(start, rel=1e-6)
    off = 1.97509 * np.sqrt(np.diag(cov))
    close = {"rel": 1e-4, "abs": 1e-15}
    assert found.step.slope_high - found.step.slope == pytest.approx(off[0], **close)
    assert found.step.start - found.step.start_low == pytest.approx(off[1], **close)
    assert found.step.left_out == 0
    assert own.context == tuple(range(BEGIN + 1, BEGIN + 1 + TOKENS))


@pytest.mark.parametrize("stalled", [(3,), (0, 1, 158), (150, 152, 154, 156)])
def test_stalled_steps_are_no_part_of_the_line(stalled):
    """A millisecond each, at one end of the line. The fit is as if they did not exist."""
    usual, seen = visit(noise=0.01), visit(noise=0.01)
    left = [number for number in range(TOKENS) if number not in stalled]
    samples = [
        replace(sample, seconds=sample.seconds + 1e-3 * (sample.round in stalled))
        for sample in seen.samples
    ]
    found, own = growth(replace(seen, samples=tuple(samples))), growth(usual).samples["point"]
    assert found.step.left_out == len(stalled)
    context, seconds = np.array(own.context)[left], np.array(own.seconds)[left]
    assert (found.step.slope, found.step.start) == pytest.approx(np.polyfit(context, seconds, 1))
    assert f"without {len(stalled)} stalled step" in said(found)


def test_planted_numbers_are_found():
    found = growth(visit(beyond=8e-6))
    assert found.step.start == pytest.approx(DECODE[0] + APPEND + WEIGHT + 8e-6)
    assert found.step.slope == pytest.approx(DECODE[1])
    assert (found.decodes.start, found.decodes.slope) == pytest.approx(DECODE)
    assert (found.appends, found.weights) == pytest.approx((APPEND, WEIGHT))
    assert found.rest.seconds == pytest.approx(8e-6) and found.rest.layer == pytest.approx(2e-6)
    assert found.bytes_token == pytest.approx(BYTES)
    assert found.step_rate.gbps == pytest.approx(BYTES / DECODE[1] / 1e9)
    middle = DECODE[0] + DECODE[1] * (BEGIN + 80) + APPEND + WEIGHT
    assert found.whole.value == pytest.approx((middle + 8e-6) / middle, rel=1e-4)
    assert (found.tokens, found.layers, found.max_abs_err) == (TOKENS, LAYERS, 1e-7)


def test_the_table_is_of_stretches_of_the_way():
    found = growth(visit())
    assert len(found.rows) == 8
    assert [row.context for row in found.rows] == [BEGIN + 10.5 + 20 * i for i in range(8)]
    for row in found.rows:
        assert row.seconds == pytest.approx(row.fit, rel=1e-6)
        assert row.decodes == pytest.approx(DECODE[0] + DECODE[1] * row.context, rel=1e-3)
        assert row.again is not None
    few = growth(visit(tokens=8))
    assert len(few.rows) == 8 and few.rows[0].again is None and few.rows[0].decodes is None
    assert few.drift.value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("planted", "word", "sentence"),
    [
        ({}, Against.SAME, "A step takes as long as the sum of its parts"),
        ({"beyond": 40e-6}, Against.SAME, "A step takes as long as the sum of its parts"),
        ({"beyond": 400e-6}, Against.LONGER, "A step does not take as long as the sum of its"),
        ({"beyond": -300e-6}, Against.SHORTER, "A step does not take as long as the sum of its"),
        ({"noise": 0.5}, Against.OPEN, "not decided whether a step takes as long as the sum of"),
    ],
)
def test_whether_the_sum_of_the_parts_is_the_whole(planted, word, sentence):
    found = growth(visit(**planted))
    assert found.whole.word is word
    assert sentence in said(found)


@pytest.mark.parametrize(
    ("planted", "word", "sentence"),
    [
        ({}, Against.SAME, "A token adds as much time to the step as to the decodes alone."),
        (
            {"more": 0.5e-9},
            Against.SAME,
            "A token adds as much time to the step as to the decodes alone.",
        ),
        (
            {"more": 5e-9},
            Against.LONGER,
            "A token adds more time to the step than to the decodes alone, by 5 ns (5 ns",
        ),
        (
            {"more": -5e-9},
            Against.SHORTER,
            "A token adds less time to the step than to the decodes alone, by -5 ns (-5 ns",
        ),
        ({"noise": 0.1}, Against.OPEN, "It is not decided whether a token adds as much time"),
    ],
)
def test_whether_a_step_grows_as_its_decodes_do(planted, word, sentence):
    found = growth(visit(**planted))
    assert found.grows is word
    assert sentence in said(found)


@pytest.mark.parametrize(
    ("again", "word", "sentence"),
    [
        (1.0, Against.SAME, "A growing step takes as long as the same step again"),
        (1.5, Against.LONGER, "A growing step takes longer than the same step again"),
        (0.5, Against.SHORTER, "A growing step takes less time than the same step again"),
    ],
)
def test_a_step_that_grows_beside_the_same_once_more(again, word, sentence):
    found = growth(visit(again=again))
    assert found.again.value == pytest.approx(again) and found.again.word is word
    assert sentence in said(found)


@pytest.mark.parametrize(
    ("planted", "word", "sentence"),
    [
        ({"drift": 0.03, "noise": 0.002}, Against.SAME, "The machine stayed the same"),
        ({"drift": 0.3, "noise": 0.01}, Against.LONGER, "The machine did not stay the same"),
        ({"drift": -0.3, "noise": 0.01}, Against.SHORTER, "The machine did not stay the same"),
        ({"noise": 0.3}, Against.OPEN, "It is not decided whether the machine stayed the same"),
    ],
)
def test_whether_the_machine_stayed_the_same(planted, word, sentence):
    found = growth(visit(**planted))
    assert found.drift.word is word and sentence in said(found)
    if word is not Against.OPEN:
        assert found.drift.low <= 1 + planted["drift"] <= found.drift.high


def test_what_is_not_there_is_not_said():
    """No weights, and a slope that is not surely above 0."""
    found = growth(visit(weights=False, noise=0.5))
    assert found.weights is None and found.step_rate.gbps is None
    assert "weights" not in said(found) and "no sure rate in the step" in said(found)


@pytest.mark.parametrize(
    ("low", "high", "whole", "word"),
    [
        (-0.05, 0.05, 1.0, Against.SAME),
        (0.01, 0.04, 1.0, Against.SAME),
        (0.01, 0.06, 1.0, Against.LONGER),
        (-0.06, -0.01, 1.0, Against.SHORTER),
        (-0.06, 0.01, 1.0, Against.OPEN),
        (0.01, 0.04, 0.1, Against.LONGER),
    ],
)
def test_words_of_an_interval(low, high, whole, word):
    assert against(low, high, whole) is word


def test_a_line_of_three():
    found = Fit.of([1, 2, 3], [1.0, 2.0, 3.0])
    assert (found.start, found.slope) == pytest.approx((0.0, 1.0)) and found.left_out == 0
    assert found.at(10) == pytest.approx(10.0)
