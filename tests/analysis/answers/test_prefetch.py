"""What prefetches gain: rounds of a tuning with planted times."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.answers.answer import Held, Reason, State
from kvbench.analysis.means.findings import findings
from kvbench.model import Tuned
from kvbench.model.geometry import Geometry
from kvbench.model.tuning import choose
from tests.made_run import DECODE, MACHINE, MIB, RUN, visit

MODEL = Geometry("small", 24, 8, 2, 64, 4096)
HOT = replace(DECODE, residency="hot")
NOISE = np.array([0.01, -0.01, 0.02, -0.02, 0.0, 0.015, -0.015])
LATER = [-9.0] * 28  # rounds without some of the schedules


def tuned(level, layout="head", default="weave", kernel="flash.f16", **logs):
    """`logs`: of a schedule's time over the default's; `off` has its own noise."""
    ratios = {"off": tuple(logs.pop("off") + NOISE), default: (0.0,) * 35}
    ratios |= {preset: (*np.full(7, log), *LATER) for preset, log in logs.items()}
    parts = ("scalar", kernel, layout, "d<=64", "g<=4", "threads of one L3", level)
    return Tuned("/".join(parts), parts, choose(ratios, default), ratios)


def prefetch(*found):
    far = [visit(n, {"point": [9.0]}) for n in range(2)]
    near = [visit(n, {"point": [9.0]}, HOT, walked=9 * MIB, layers=1) for n in range(2)]
    far[0] = replace(far[0], tuned=found)
    return findings(RUN, [*far, *near], MACHINE, models=(MODEL,)).answers.prefetch


def test_over_none_by_round():
    """weave is the default and takes exp(-0.3) times as long as off."""
    (answer,) = prefetch(tuned("memory", off=0.3))
    assert answer.figure.value == pytest.approx(np.exp(0.3)) and answer.state is State.DECIDED
    assert (answer.question, answer.of, answer.held) == ("prefetch", "memory", Held.OFF)
    facts = {"schedule": "weave", "dtype": "f16", "layout": "head", "rounds": 7}
    assert answer.facts == facts and answer.launches == 1
    assert answer.chance == pytest.approx(2 / 2**7)


def test_what_was_chosen_is_told_of_rounds_that_all_took_part_in():
    """In the first seven rounds stream takes exp(0.05) times as long as weave, later much less."""
    (answer,) = prefetch(tuned("memory", off=0.3, stream=0.05))
    assert answer.facts["schedule"] == "stream"
    assert answer.figure.value == pytest.approx(np.exp(0.25))


def test_memory_and_l3_of_the_layout_that_has_both():
    found = prefetch(
        tuned("memory", "blockt", off=0.9),
        tuned("memory", off=0.3),
        tuned("L3", off=0.001),
        tuned("most of L3", off=0.9),
        tuned("L2", off=0.9),
    )
    assert [answer.of for answer in found] == ["memory", "L3"]
    assert [answer.state for answer in found] == [State.DECIDED, State.LEVEL]


def test_another_kernel_or_team_says_nothing():
    assert prefetch(tuned("memory", kernel="dot.i8", off=0.3)) == ()
    assert prefetch() == ()


def test_too_few_rounds():
    few = tuned("memory", off=0.3)
    few = replace(few, ratios={name: each[:4] for name, each in few.ratios.items()})
    (answer,) = prefetch(few)
    assert (answer.state, answer.reason) == (State.NOT_TESTED, Reason.TOO_FEW)
