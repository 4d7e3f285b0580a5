"""Which formats of K and V at which error, and the cost of operations on scores: planted times,
computed by hand.
"""

from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Basis, Held, State, Unit
from kvbench.analysis.answers.mixed import Other, Place
from kvbench.analysis.means.findings import findings
from kvbench.analysis.shown.axes import axes
from kvbench.analysis.shown.mixed import mixed as drawn
from kvbench.analysis.shown.roofline import roofline
from kvbench.results import geometries
from kvbench.sizing.known import measured_decodes
from tests.made_run import MACHINE, RUN
from tests.report import mixing
from tests.report.mixing import BITS, LAUNCHES, alone, point, seconds, side_by_side

MODELS = geometries(("llama-3-8b",))
LAYERS = 32


def told(records, models=MODELS):
    return findings(RUN, records, MACHINE, models=models)


@pytest.fixture(scope="module")
def found():
    return told(mixing.records()).answers.mixed


def of(found, dtype, variant="flash", k_scale="token"):
    (own,) = [
        each
        for each in found.formats
        if (each.dtype, each.variant, each.k_scale) == (dtype, variant, k_scale)
    ]
    return own


def test_every_format_has_its_speed_and_bytes(found):
    assert len(found.formats) == len(mixing.points())
    rates = [each.speed.figure.value for each in found.formats]
    assert rates == sorted(rates, reverse=True)
    for each in found.formats:
        own = point(each.dtype, each.variant, each.k_scale)
        assert each.point == own.name and each.pair is ("+" in each.dtype)
        assert each.speed.figure.value == pytest.approx(1 / (LAYERS * seconds(own)), rel=1e-6)
        assert each.bytes == pytest.approx(LAYERS * 8 * 128 * 2 * BITS[each.dtype] / 8)


@pytest.mark.parametrize("variant", ["flash", "dot"])
def test_a_pair_stands_beside_both_of_its_formats(found, variant):
    """In the same variant and the same rounds."""
    pair, *halves = (of(found, dtype, variant) for dtype in ("q8_0+q4_0", "q8_0", "q4_0"))
    assert [(each.other, each.dtype) for each in pair.against] == [
        (Other.K, "q8_0"),
        (Other.V, "q4_0"),
    ]
    for against, half in zip(pair.against, halves, strict=True):
        times = against.times
        wanted = seconds(point(half.dtype, variant)) / seconds(point(pair.dtype, variant))
        assert times.figure.value == pytest.approx(wanted, rel=0.01)
        assert times.figure.low < wanted < times.figure.high
        assert (times.subject, times.against) == ((pair.point,), half.point)
        assert (times.held, times.basis, times.launches) == (Held.POINT, Basis.ROUNDS, LAUNCHES)
        assert times.state is State.DECIDED and against.speed == half.speed
    assert pair.over(Other.BY_TOKEN) is None and of(found, "f16").against == ()


def test_k_by_channel_stands_beside_k_by_token(found):
    own = of(found, "i8", k_scale="channel")
    (against,) = own.against
    assert (against.other, against.dtype) == (Other.BY_TOKEN, "i8") and own.by_channel
    assert against.times.state is State.LEVEL
    assert against.times.figure.value == pytest.approx(1.0, abs=0.01)


def test_a_half_that_was_not_timed_is_none():
    every = [point(dtype) for dtype in ("f16", "q8_0+q4_0")]
    own = of(told([each for one in every for each in alone(one)]).answers.mixed, "q8_0+q4_0")
    assert own.against == ()


def test_who_leads(found):
    """With normal keys i8+q4_0 and q8_0+q4_0 in dot have the same error and are level; with heavy
    keys the second has the smaller error. There i8 by channel is more exact, and then faster than
    q8_0. In flash the core makes q4_0 slow.
    """
    places = {
        ("f16", "flash"): (Place.LEADS, Place.LEADS),
        ("f16+q8_0", "flash"): (Place.LEADS, Place.LEADS),
        ("q8_0", "flash"): (Place.LEADS, Place.BEHIND),
        ("i8", "flash"): (Place.LEADS, Place.LEVEL),
        ("q8_0+q4_0", "flash"): (Place.BEHIND, Place.BEHIND),
        ("q8_0+q4_0", "dot"): (Place.LEADS, Place.LEADS),
        ("i8+q4_0", "flash"): (Place.LEADS, Place.LEVEL),
        ("q4_0", "flash"): (Place.BEHIND, Place.BEHIND),
        ("q4_0", "dot"): (Place.LEADS, Place.LEADS),
    }
    for (dtype, variant), wanted in places.items():
        own = of(found, dtype, variant)
        assert tuple(each.place for each in own.placed) == wanted, (dtype, variant)
    own = of(found, "i8", k_scale="channel")
    assert [each.place for each in own.placed] == [Place.LEVEL, Place.LEADS]
    assert {of(found, dtype).with_("heavy").by for dtype in ("i8", "q8_0")} == {own.point}
    behind = of(found, "q4_0").with_("normal")
    assert found.of(behind.by) == of(found, "q4_0", "dot")
    assert of(found, "f16").with_("normal").by == ""


def test_errors_are_of_format_and_kernel(found):
    """The rounding of dot equals the loss of an 8-bit format, and is small beside that of 4
    bits.
    """
    for dtype, most in (("q8_0", 3.0), ("q4_0", 1.05)):
        own, rounded = (of(found, dtype, variant).with_("normal") for variant in ("flash", "dot"))
        assert own.error == pytest.approx(own.format_error, rel=1e-3)
        assert rounded.format_error == own.format_error
        assert own.error < rounded.error < most * own.error
    normal, heavy = of(found, "q8_0+q4_0").placed
    assert (normal.keys, heavy.keys) == ("normal", "heavy") and heavy.error > normal.error


def test_what_to_take_at_an_error(found):
    """Of all formats that may be as fast, the one with the least error."""
    told = {(each.keys, each.allowed): each for each in found.choices}
    assert found.of(told["normal", 0.001].point).dtype == "f16"
    one = told["normal", 0.01]
    assert found.of(one.point) == of(found, "i8")
    assert one.level == ()
    assert found.of(told["heavy", 0.01].point).dtype == "f16+q8_0"
    ten = told["normal", 0.1]
    assert {ten.point, *ten.level} == {
        of(found, "i8+q4_0").point,
        of(found, "q8_0+q4_0", "dot").point,
    }
    assert found.of(told["heavy", 0.1].point) == of(found, "q8_0+q4_0", "dot")


def test_where_nothing_is_so_exact_nothing_is_chosen():
    every = [point(dtype) for dtype in ("q8_0+q4_0", "q4_0")]
    found = told([each for one in every for each in alone(one)]).answers.mixed
    first, *_, last = [each for each in found.choices if each.keys == "normal"]
    assert (first.allowed, first.point, first.level) == (0.001, "", ())
    assert found.of(last.point).dtype == "q8_0+q4_0"


def test_without_rounds_in_common_intervals_decide():
    every = [point(dtype) for dtype in ("q8_0", "i8", "f16+q8_0")]
    found = told([each for one in every for each in alone(one)]).answers.mixed
    assert of(found, "q8_0").with_("normal").place is Place.LEADS
    assert of(found, "i8").with_("normal").place is Place.LEVEL  # 3 % of 2 % of noise
    (against,) = of(found, "f16+q8_0").against
    assert against.speed.tested and not against.times.tested


def test_noise_leaves_it_level():
    noise = (0.7, 1.3, 1.0, 0.8, 1.5, 0.9, 1.2)
    every = [point(dtype) for dtype in ("q8_0", "q8_0+q4_0")]
    pair = [
        replace(
            each,
            samples=tuple(
                replace(s, seconds=s.seconds * noise[each.launch])
                if s.program.startswith("q8_0+")
                else s
                for s in each.samples
            ),
        )
        for each in side_by_side(every, "dtype")
    ]
    found = told([*(each for one in every for each in alone(one)), *pair]).answers.mixed
    own = of(found, "q8_0+q4_0")
    assert own.over(Other.K).times.state is State.OPEN
    assert own.with_("normal").place is Place.LEVEL
    assert own.with_("normal").by == of(found, "q8_0").point


def test_a_format_without_pairs_or_channels_says_nothing():
    every = [point(dtype) for dtype in ("f16", "q8_0", "q4_0")]
    assert told([each for one in every for each in alone(one)]).answers.mixed.formats == ()


def test_what_is_done_to_scores_costs(found):
    assert {each.what: each.times.figure.value for each in found.costs} == pytest.approx(
        {"cap 50": 1.25, "sinks": 1.0, "alibi 8": 1.1}, abs=0.005
    )
    own = next(each for each in found.costs if each.what == "cap 50")
    assert own.times.figure.unit is Unit.LENGTH and own.times.state is State.DECIDED
    assert own.times.subject == (own.point,) and own.times.against == point().name
    assert (own.model, own.group, own.dtype, own.level) == ("llama-3-8b", 4, "f16", "DRAM")
    states = {each.what: each.times.state for each in found.costs}
    assert states["sinks"] is State.LEVEL


def test_without_the_plain_one_nothing_is_said():
    own = mixing.costs()
    assert told(own).answers.mixed.costs == ()
    other = [replace(each, launch=each.launch + 20) for each in alone(point())]
    assert told([*own, *other]).answers.mixed.costs == ()


def test_all_else_is_the_same_without_pairs_and_the_like():
    usual = [each for each in mixing.points() if not each.v_dtype and each.k_scale == "token"]
    lean = told([each for one in usual for each in alone(one)])
    rich = told([*(each for one in mixing.points() for each in alone(one)), *mixing.costs()])
    assert len(rich.points) == len(lean.points) + 5 + len(mixing.COSTS)
    for name in ("decodes", "factors", "storing", "servers", "prefetch", "workload", "l3"):
        assert getattr(rich.answers, name) == getattr(lean.answers, name), name
    assert rich.saturation.equals(lean.saturation)
    alone_known, known = (measured_decodes(each, "0-1")["dtype"] for each in (lean, rich))
    assert sorted(alone_known) == sorted(dtype for dtype in known if "+" not in dtype)
    for draw in (roofline, axes):
        assert len(draw(rich)) == len(draw(lean))
    assert {"q8_0+q4_0", "i8+q4_0"} < set(rich.tokens["dtype"])


def test_of_a_format_the_variant_is_drawn_that_is_faster_or_more_exact(found):
    """dot rounds. With 8 bits it is no faster than flash; with 4 bits it is faster."""
    shown = {(each.dtype, each.variant) for each in found.formats if each.drawn}
    assert ("q8_0", "flash") in shown and ("q8_0", "dot") not in shown
    assert ("q4_0", "dot") in shown and ("q4_0", "flash") not in shown


def test_the_figure_has_a_mark_for_each_kind_of_keys():
    every = told(mixing.records())
    table = drawn(every)
    formats = [each for each in every.answers.mixed.formats if each.drawn]
    assert len(table) == 2 * len(formats)
    first = table.iloc[0]
    assert every.points.loc[first["row"], "name"] == formats[0].point
    assert first["error"] == formats[0].placed[0].error
