"""Steps of made-up series: planted steps are found at their places, and noise of many kinds has no
steps.
"""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.differs.trend import ACCEPTED, OPEN, Past, Ran, Series, trends
from kvbench.errors import Unsupported

LEVEL = 0.7


def normal(chance, size, spread=0.02):
    return spread * chance.normal(size=size)


def following(chance, size, spread=0.03, like=0.3):
    """Noise in which each run is correlated with the one before: `like` is the correlation."""
    fresh, found = chance.normal(size=size), np.empty(size)
    found[0] = fresh[0]
    for place in range(1, size):
        found[place] = like * found[place - 1] + math.sqrt(1 - like**2) * fresh[place]
    return spread * found


def spiky(chance, size):
    """One run in twenty is up to 30 % slower."""
    return normal(chance, size) - np.where(
        chance.random(size) < 0.05, 0.3 * chance.random(size), 0.0
    )


def bimodal(chance, size):
    """A third of the runs are 6 % lower, in a mode of their own."""
    return normal(chance, size, 0.01) - np.where(chance.random(size) < 0.3, 0.06, 0.0)


def heavy(chance, size):
    return 0.02 * chance.standard_t(3, size=size)


NOISE = [normal, following, spiky, bimodal, heavy]


def series(logs, name="point", accepted=()):
    return Series(name, tuple(range(len(logs))), tuple(LEVEL * np.exp(logs)), frozenset(accepted))


def one(logs, accepted=()):
    (found,) = trends([series(np.asarray(logs, dtype=float), accepted=accepted)])
    return found


# ---- noise alone ---------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("runs", [12, 40, 120])
def test_flat_noise_has_no_step(noise, runs):
    """The stated rate: of points with pure noise, at most one in a hundred has a step."""
    chance = np.random.default_rng(runs)
    found = trends([series(noise(chance, runs)) for _ in range(200)])
    assert sum(bool(each.steps) for each in found) <= 0.01 * len(found)


def test_a_series_without_any_noise_has_no_step():
    assert one([0.0] * 50).steps == ()


# ---- planted steps -------------------------------------------------------------------------------


def known(logs, size):
    """The place of a step as found by someone who knows that there is one, and both levels. No
    method can do better.
    """
    errors = [np.sum(logs[:at] ** 2) + np.sum((logs[at:] - size) ** 2) for at in range(len(logs))]
    return int(np.argmin(errors))


@pytest.mark.parametrize(
    ("noise", "spread", "share"),
    [(normal, 0.01, 1.0), (normal, 0.02, 0.95), (normal, 0.03, 0.85), (following, 0.02, 0.85)],
)
@pytest.mark.parametrize("sign", [-1, 1])
def test_planted_steps_are_found_where_they_are(noise, spread, share, sign):
    """Steps of 5 % in one of ten points are found within one run of their place. `spread`: of the
    noise of a run. If it is at least half of the step, the values do not show which run was the
    first; then nearly all that could be found is found.
    """
    chance, size, every = np.random.default_rng(5), math.log1p(sign * 0.05), range(0, 400, 10)
    logs = [noise(chance, 120, spread) for _ in range(400)]
    planted = {point: int(chance.integers(30, 90)) for point in every}
    for point, at in planted.items():
        logs[point][at:] += size
    found = trends([series(each) for each in logs])
    steps = [
        (step.run - planted.get(point, -99), step.effect)
        for point, each in enumerate(found)
        for step in each.steps
    ]
    meant = [effect for late, effect in steps if abs(late) <= 10 and effect * sign > 0]
    assert len(steps) - len(meant) <= 0.01 * len(found)
    assert len(meant) >= share * len(planted)
    assert all(0.03 <= abs(effect) < 0.1 for effect in meant)
    near = [
        point
        for point in every
        if any(abs(step.run - planted[point]) <= 1 for step in found[point].steps)
    ]
    can_be = [point for point in every if abs(known(logs[point], size) - planted[point]) <= 1]
    assert len(near) >= 0.8 * len(can_be) and (spread > 0.01 or len(near) == len(every))


def test_the_interval_of_a_step_holds_its_size():
    chance = np.random.default_rng(6)
    logs = [
        np.concatenate([normal(chance, 40), normal(chance, 40) + math.log(0.9)]) for _ in range(100)
    ]
    steps = [step for each in trends([series(each) for each in logs]) for step in each.steps]
    assert len(steps) == 100
    assert sum(step.low <= -0.1 <= step.high for step in steps) >= 88  # of 95 expected


def test_two_steps_and_runs_far_out_between_them():
    logs = normal(np.random.default_rng(7), 150, 0.01)
    logs[50:] += math.log(0.92)
    logs[100:] += math.log(1.06)
    logs[[10, 75, 76, 120]] -= 0.4
    found = one(logs)
    assert [step.run for step in found.steps] == [50, 100]
    assert [round(step.effect, 2) for step in found.steps] == [-0.08, 0.06]
    assert [step.state for step in found.steps] == [OPEN, OPEN]


def test_many_points_ask_for_more_than_one():
    """A step that is just clear for one point alone is not clear among many points."""
    logs = np.array([0.0, 0.001] * 4 + [-0.1, -0.101] * 4)
    assert [step.run for step in one(logs).steps] == [8]
    still = [series(np.array([0.0, 0.001] * 8), f"{number}") for number in range(50)]
    assert not any(each.steps for each in trends([series(logs), *still]))


# ---- the baseline --------------------------------------------------------------------------------


def stepped():
    logs = normal(np.random.default_rng(11), 80, 0.01)
    logs[40:] += math.log(0.9)
    return logs


def test_an_open_step_leaves_the_baseline_before_it():
    found = one(stepped())
    assert found.baseline == (0, 39)
    assert found.level == pytest.approx(LEVEL, rel=0.01) and found.change == pytest.approx(
        -0.1, abs=0.03
    )
    assert found.worst() == pytest.approx(-0.1, abs=0.015)


@pytest.mark.parametrize("at", [39, 40, 41])
def test_an_accepted_step_is_the_new_baseline(at):
    """Also if it was accepted at a neighbouring run."""
    found = one(stepped(), accepted=[at])
    assert [(step.run, step.state, step.q) for step in found.steps] == [(at, ACCEPTED, None)]
    assert found.baseline == (at, 79) and found.level == pytest.approx(0.9 * LEVEL, rel=0.01)
    assert found.open() == () and found.worst() == 0.0


def test_after_an_accepted_step_the_next_is_open():
    found = one(np.concatenate([stepped(), stepped()[40:] + math.log(0.9)]), accepted=[40])
    assert [(step.run, step.state) for step in found.steps] == [(40, ACCEPTED), (80, OPEN)]
    assert found.baseline == (40, 79)


def test_too_few_runs_are_said_to_be():
    assert one([0.0]).few and one([0.0, -0.5]).few and one([0.0] * 6 + [-0.5] * 6).few
    assert not one(stepped()).few
    assert one(stepped(), accepted=[75]).few


def test_few_means_that_no_step_is_seen_however_large():
    for runs in range(1, 30):
        found = one(
            np.array([0.0, 0.001] * 15)[:runs] - np.where(np.arange(runs) < runs // 2, 0.0, 0.5)
        )
        assert found.few == (found.steps == ()), runs


def test_a_point_that_some_runs_lack():
    """Places count all runs of the machine."""
    every = np.flatnonzero(np.arange(160) % 2)
    (found,) = trends([Series("point", tuple(map(int, every)), tuple(LEVEL * np.exp(stepped())))])
    assert [step.run for step in found.steps] == [every[40]]


def test_what_changed_with_a_step():
    found = one(stepped())
    runs = tuple(
        Ran(f"r{n}", "", "s", "b1" if n < 40 else "b2", "e1" if n < 45 else "e2") for n in range(80)
    )
    assert Past("m", "", runs, (found,), {}, {}).beside(found, found.steps[0]) == ("build",)
    (found,) = trends([replace(found.series, schedules=("weave",) * 40 + ("stream",) * 40)])
    changed = Past("m", "", runs, (found,), {}, {}).beside(found, found.steps[0])
    assert changed == ("build", "schedule (weave → stream)")


def test_without_ruptures_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)
    with pytest.raises(Unsupported, match="ruptures") as caught:
        one(stepped())
    assert "pip install" in caught.value.hint
