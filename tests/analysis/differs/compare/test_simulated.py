"""How often comparisons of made-up runs give a false alarm, and how often they find a real change.
Seeded, and fast.
"""

import math

import numpy as np
import pytest

from kvbench.analysis.differs.compare.views import BESIDE, SECONDS, WITNESS, of_family
from kvbench.analysis.differs.compare.words import LIMITS, between, judged, viewed
from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.model.verdict import CONTAMINATED, IMPROVEMENT, INCONCLUSIVE, REGRESSION
from tests.analysis.noises import DICE, bimodal, lognormal, most, shared

POINTS, FAMILIES, LAUNCHES = 40, 8, 10
POINT_EFFECT, FAMILY_EFFECT = 0.05, 0.03


@pytest.mark.parametrize("noise", [lognormal, bimodal, shared])
def test_a_family_is_tested_exactly(noise):
    """Its launches are medians over points. What is subtracted from each point does not depend on
    the sides.
    """
    chances = []
    for _ in range(1000):
        values = noise((1, 5, 2 * LAUNCHES))[0] + DICE.normal(0, 3, (5, 1))
        members = [
            {BESIDE: (dict(enumerate(own[:LAUNCHES])), dict(enumerate(own[LAUNCHES:])))}
            for own in values
        ]
        chances.append(float(between(*of_family(members)[BESIDE]).slower))
    for level in (0.01, 0.05, 0.2):
        assert sum(chance <= level for chance in chances) <= most(1000, level)
    assert sum(chance <= 0.2 for chance in chances) >= 1000 * 0.2 - 4 * math.sqrt(1000 * 0.16) - 20


# ---- whole suites, with the words ----------------------------------------------------------------


def suite(base, head):
    """The verdicts of points and of families. `base`, `head`: by view, logarithms of points x
    launches.
    """
    views = [
        {view: tuple(dict(enumerate(side[view][place])) for side in (base, head)) for view in base}
        for place in range(POINTS)
    ]
    points = judged(
        [viewed(str(n), str(n % FAMILIES), own, POINT_EFFECT) for n, own in enumerate(views)]
    )
    members = [of_family(views[number::FAMILIES]) for number in range(FAMILIES)]
    families = [
        viewed(str(n), str(n), own, FAMILY_EFFECT, LIMITS.told_family)
        for n, own in enumerate(members)
    ]
    return points, judged(families)


def run(draw, machine=0.0, follows=1.0, noise=0.03, slower=0.0, family=0):
    """The views of one run. The `machine` of each launch moves the witnesses, and moves each point
    by the share that it follows.
    """
    own = draw.normal(0, noise, (POINTS, LAUNCHES))
    own[family::FAMILIES] += math.log1p(slower)
    moved = np.broadcast_to(machine, (POINTS, LAUNCHES))
    return {BESIDE: own + (follows - 1) * moved, SECONDS: own + follows * moved, WITNESS: moved}


def words(rows):
    return {row.verdict for row in rows}


def test_a_machine_that_drifts_from_run_to_run_is_no_regression():
    """Launches follow a random walk, base's first. Their seconds tell the runs apart, as they
    should not; the ratios to witnesses of the same rounds do not.
    """
    draw = np.random.default_rng(1)
    seconds = changed = 0
    for _ in range(60):
        walk = np.cumsum(draw.normal(0, 0.05, 2 * LAUNCHES))
        base, head = run(draw, walk[:LAUNCHES]), run(draw, walk[LAUNCHES:])
        points, families = suite(base, head)
        changed += bool({REGRESSION, CONTAMINATED} & words([*points, *families]))
        seconds += REGRESSION in words(suite({SECONDS: base[SECONDS]}, {SECONDS: head[SECONDS]})[1])
    assert changed <= most(60, 2 * JUDGED.rate)
    assert seconds > 10


@pytest.mark.parametrize("follows", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("within", [0.0, 0.1])
@pytest.mark.parametrize("between", [-0.2, 0.2])
def test_a_memory_that_is_another_in_each_run_is_no_change(between, within, follows):
    """Memory changes by 20% for all witnesses. Points follow it fully or by half, or are core-bound
    and do not follow.
    """
    draw = np.random.default_rng(2)
    alarms = 0
    for _ in range(20):
        machines = draw.normal(0, within, (2, 1, LAUNCHES)) + [[[0.0]], [[between]]]
        points, families = suite(*(run(draw, machine, follows) for machine in machines))
        alarms += bool({REGRESSION, IMPROVEMENT} & words([*points, *families]))
    assert alarms <= most(20, 4 * JUDGED.rate)


@pytest.mark.parametrize("moves", [-0.1, 0.1])
def test_a_slower_family_is_found_on_a_machine_that_moved_by_less(moves):
    """It is 20 % slower; launches differ by 10 %, and so do the runs."""
    draw = np.random.default_rng(7)
    found = 0
    for _ in range(40):
        machines = draw.normal(0, 0.1, (2, 1, LAUNCHES)) + [[[0.0]], [[moves]]]
        _, families = suite(run(draw, machines[0]), run(draw, machines[1], slower=0.2, family=3))
        found += next(row for row in families if row.name == "3").verdict == REGRESSION
        assert all(row.verdict != REGRESSION for row in families if row.name != "3")
    assert found >= 30


@pytest.mark.parametrize(
    "noise", [0.05, *(pytest.param(noise, marks=pytest.mark.full) for noise in (0.02, 0.1))]
)
def test_what_is_said_to_be_detectable_is_detected(noise):
    """A single point is slower by the median of what was said to be detectable. It is found nine
    times in ten.
    """
    draw = np.random.default_rng(5)
    unchanged = [
        row for _ in range(20) for row in suite(run(draw, noise=noise), run(draw, noise=noise))[0]
    ]
    effect = float(np.median([row.detectable for row in unchanged]))
    caught = trials = 0
    for _ in range(120):
        base, head = run(draw, noise=noise), run(draw, noise=noise)
        for view in (BESIDE, SECONDS):
            head[view][0] += math.log1p(effect)
        points, _ = suite(base, head)
        caught += points[0].verdict == REGRESSION
        trials += 1
        assert points[0].verdict in (REGRESSION, INCONCLUSIVE)
    assert 0.83 <= caught / trials <= 0.98
