"""The choice of a schedule, against NumPy and SciPy, and on made-up rounds of known truth."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from kvbench.model import choose, pooled
from kvbench.model.tuning import MOST, rescheduled

WORDS = ("off", "cross", "weave", "stream")


def found(seed, gains, noise, rounds=9, stalls=0.0):
    """Rounds of presets. The time of each is the default's divided by its gain."""
    dice = np.random.default_rng(seed)
    shape = (rounds, len(WORDS))
    times = np.array([-math.log(gains.get(word, 1.0)) for word in WORDS]) + dice.normal(
        0, noise, shape
    )
    times = times + 2 * (dice.random(shape) < stalls)  # a stall takes seven times as long
    return {
        word: tuple(times[:, at] - times[:, WORDS.index("weave")]) for at, word in enumerate(WORDS)
    }


def test_the_default_stays_where_nothing_differs():
    assert (
        sum(choose(found(seed, {}, 0.03), "weave").preset != "weave" for seed in range(400)) <= 40
    )


@pytest.mark.parametrize("gain", [1.1, 1.5])
def test_what_is_faster_is_chosen_though_rounds_stall(gain):
    right = [
        choose(found(seed, {"stream": gain}, 0.01, stalls=0.02), "weave").preset
        for seed in range(200)
    ]
    assert right.count("stream") >= 190


def test_a_gain_within_two_percent_changes_nothing():
    assert choose(found(1, {"stream": 1.015}, 1e-4), "weave").preset == "weave"


def test_the_simpler_of_two_that_are_as_fast_is_taken():
    assert choose(found(1, {"cross": 1.19, "stream": 1.2}, 1e-4), "weave").preset == "cross"
    assert choose(found(1, {"cross": 1.15, "stream": 1.2}, 1e-4), "weave").preset == "stream"


@pytest.mark.parametrize("rounds", [1, 2, 5, 8, 9, 18, 40])
def test_gain_and_interval_are_of_the_rounds(rounds):
    seen = found(rounds, {"stream": 3.0}, 0.2, rounds)
    chosen, values = choose(seen, "weave"), np.sort(np.exp(-np.array(seen["stream"])))
    assert (chosen.preset, chosen.default, chosen.rounds) == ("stream", "weave", rounds)
    assert math.isclose(math.log(chosen.gain), np.median(np.log(values)))
    out = int(np.argmin(abs(values - chosen.low)))
    assert math.isclose(values[out], chosen.low) and math.isclose(
        values[rounds - 1 - out], chosen.high
    )
    assert out == 0 or 1 - 2 * binom.cdf(out, rounds, 0.5) >= 0.9
    assert 1 - 2 * binom.cdf(out + 1, rounds, 0.5) < 0.9


def test_evidence_is_pooled_and_the_newest_kept():
    one, two = found(1, {}, 0.1), {"off": (1.0,), "new": (2.0,)}
    both = pooled(one, two)
    assert (
        both["off"] == (*one["off"], 1.0)
        and both["new"] == (2.0,)
        and both["weave"] == one["weave"]
    )
    assert pooled(*[{"off": (float(n),)} for n in range(MOST + 9)])["off"] == tuple(
        map(float, range(9, MOST + 9))
    )


def test_one_bad_minute_does_not_decide_for_ever():
    bad, good = found(1, {"off": 1.5}, 0.01), found(2, {"stream": 1.2}, 0.01, rounds=27)
    assert choose(bad, "weave").preset == "off"
    assert choose(pooled(bad, good), "weave").preset == "stream"


def test_a_schedule_that_changed_is_named():
    assert rescheduled("weave", "stream") == "schedule (weave → stream)"
    assert (
        not rescheduled("weave", "weave")
        and not rescheduled("", "weave")
        and not rescheduled("weave", "")
    )
