"""Whole steps beside their parts, by hand. All times are planted, alone and within the step."""

from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Basis, Held, Reason, State, Unit
from kvbench.analysis.limits import frames
from kvbench.analysis.limits.profile import profile
from kvbench.analysis.means.findings import findings
from kvbench.analysis.measured.results import results
from kvbench.analysis.measured.steps import by_round, whole
from kvbench.model import Probe, tails
from kvbench.model.geometry import Geometry
from kvbench.model.program import APPENDS, DECODES, MEMORY, WEIGHTS
from tests.made_run import DECODE, MACHINE, MIB, RUN, probe, visit
from tests.made_steps import LLAMA, RATE, STEP, WITH, alone, at, step
from tests.made_steps import WEIGHTS as OF_LAYER

MODEL = Geometry("llama", 32, 32, 8, 128, 8192)
ALL = STEP.cpus
LAUNCHES = 8  # the fewest launches that can show one difference among several


def launched(point=WITH, times=None, launches=LAUNCHES, **how):
    made = (step(n, point, times, **how) for n in range(launches))
    return [replace(each, tails=tails(each.samples)) for each in made]


def found_in(*visits, models=(MODEL,)):
    return findings(RUN, [each for own in visits for each in own], MACHINE, models=models)


def steps(*visits, **how):
    return found_in(*visits, **how).answers.steps.rows


def row(*visits, **how):
    return steps(*visits, **how)[0]


def value(answer):
    return pytest.approx(answer.figure.value)


# ---- what it takes -------------------------------------------------------------------------------


def test_what_a_step_takes():
    """32 layers with 16 MiB of tokens and 64 MiB of weights at 18 GB/s, and 20 us of appends."""
    found = row(launched())
    read = 32 * (2 * 8 * 128 * 2 * 4096 + OF_LAYER)
    assert found.seconds.figure.value == pytest.approx(read / 18e9 + 20e-6, rel=0.02)
    assert found.sequence.figure.value == pytest.approx(1 / found.seconds.figure.value)
    assert value(found.tokens) == found.sequence.figure.value
    assert found.sequence.figure.low == pytest.approx(1 / found.seconds.figure.high)
    assert found.memory.figure.value == pytest.approx(18 / RATE, rel=0.01)
    assert (found.memory.held, found.memory.basis) == (Held.MEMORY, Basis.ROUNDS)
    assert found.weights == 32 * OF_LAYER and found.model == "llama"
    assert value(found.p50) == pytest.approx(found.seconds.figure.value, rel=0.02)
    # 12 passes in each of 8 launches are too few
    assert found.p99.reason == Reason.NOT_MEASURED


def test_all_launches_together_have_a_p99():
    found = row(launched(passes=8))
    assert found.p99.figure.value == pytest.approx(found.seconds.figure.value, rel=0.03)


def test_a_batch_has_as_many_tokens_a_step():
    found = row(launched(at(WITH, 4096, batch=4, lengths="ragged:1")))
    assert found.tokens.figure.value == pytest.approx(4 * found.sequence.figure.value)
    assert found.lengths == "ragged:1"


def test_shares_are_of_the_step():
    parts = {part.part: part for part in row(launched()).parts}
    planted, total = alone(WITH), sum(alone(WITH).values())
    for name, seconds in planted.items():
        assert value(parts[name].share) == pytest.approx(seconds / total, rel=0.01)
        assert parts[name].share.held == Held.STEP
    assert list(parts) == [APPENDS, DECODES, WEIGHTS]
    assert [part.part for part in row(launched(STEP)).parts] == [APPENDS, DECODES]


# ---- its parts -----------------------------------------------------------------------------------


def test_a_step_is_the_sum_of_its_parts():
    found = row(launched(uneven=1.01)).whole
    assert found.state is State.LEVEL and found.reason == Reason.NONE
    assert found.figure.value == pytest.approx(1, rel=0.011)
    assert (found.figure.unit, found.held, found.basis) == (
        Unit.LENGTH,
        Held.PARTS,
        Basis.ROUNDS,
    )


def test_a_part_that_takes_longer_within_the_step():
    """Decodes take 1.3 times as long: 8 ms more than 27 ms, beside 119 ms of weights."""
    found = row(launched(times={DECODES: 1.3}, uneven=1.001))
    planted = alone(WITH)
    more = 0.3 * planted[DECODES] / sum(planted.values())
    assert found.whole.state is State.DECIDED and found.whole.reason == Reason.LONGER
    assert found.whole.figure.value == pytest.approx(1 + more, rel=0.002)
    facts = found.whole.facts
    assert (facts["part"], facts["way"], facts["level"]) == (DECODES, "slower", "DRAM")
    assert facts["times"] == pytest.approx(1.3, rel=0.002)
    assert facts["adds"] == pytest.approx(more, rel=0.02)


def test_a_part_that_takes_less_time_within_the_step():
    found = row(launched(times={WEIGHTS: 0.8}, uneven=1.001)).whole
    assert (found.reason, found.facts["part"], found.facts["way"]) == (
        Reason.SHORTER,
        WEIGHTS,
        "faster",
    )


def test_a_part_that_stays_in_a_cache_alone():
    """With 128 tokens the rows of all layers take 16 MiB, in an L3 of 32 MiB. With the weights they
    do not fit.
    """
    found = row(launched(at(WITH, 128), {DECODES: 40.0}, uneven=1.001)).whole
    assert (found.reason, found.facts["level"]) == (Reason.CACHED, "L3")


def test_no_part_alone():
    """The step takes 5 % longer in every launch, alternately because of decodes and of weights."""
    planted = alone(WITH)
    moved = 0.5 * planted[DECODES] / planted[WEIGHTS]
    each = ({DECODES: 1.05 + sign * 0.5, WEIGHTS: 1.05 - sign * moved} for sign in (1, -1) * 4)
    records = [step(n, times=times) for n, times in enumerate(each)]
    found = row(records).whole
    assert found.state is State.DECIDED and found.reason == Reason.NO_PART
    assert found.figure.value == pytest.approx(1.05, rel=0.001)


def test_two_launches_say_no_ratio():
    found = row(launched(launches=2))
    assert found.whole.reason == Reason.TOO_FEW and not found.whole.tested
    assert found.seconds.tested


def test_what_scatters_is_open():
    assert row(launched(uneven=1.1)).whole.state is State.OPEN


def test_rounds_whose_samples_are_unlike_tell_nothing():
    """A step that met other work takes three times its planned length."""
    (good, *_) = launched(launches=1)
    samples = [
        replace(s, seconds=3 * s.seconds) if s.program == "point" and s.round == 0 else s
        for s in good.samples
    ]
    assert whole([replace(good, samples=tuple(samples))]).rounds == 2
    without = [s for s in good.samples if s.program != DECODES]
    assert whole([replace(good, samples=tuple(without))]) is None


def test_parts_are_asked_about_where_the_step_is_not_their_sum():
    """For other steps the parts have intervals, but no correction."""
    found = found_in(launched(uneven=1.001), launched(STEP, {DECODES: 1.2}, uneven=1.001))
    rows = found.contrasts[found.contrasts["factor"] == "part of a step"]
    asked = rows.groupby("visit")["corrected"].agg(lambda own: own.notna().all())
    assert dict(asked) == {WITH.name: False, STEP.name: True}
    assert set(rows["word"]) <= {"slower", "level", "open"}


# ---- which is first ------------------------------------------------------------------------------


def test_the_pages_workload_is_first_then_that_with_weights():
    """The page's context is 4,096 tokens, also without decodes."""
    every = [at(WITH, 512), at(STEP, 4096), at(WITH, 4096), at(WITH, 4096, batch=2)]
    own = [launched(point, launches=1) for point in every]
    assert row(*own).point == every[2].name
    near = replace(DECODE, shape=replace(LLAMA, context=512, capacity=512), cpus=ALL)
    decodes = [visit(n, {"point": [20.0]}, near, walked=512 * MIB) for n in range(2)]
    found = found_in(decodes, *own)
    assert found.answers.workload.context == 512
    assert found.answers.steps.rows[0].point == every[0].name


def test_a_run_without_steps_has_none():
    assert steps([visit(0, {"point": [20.0]})]) == ()


def test_steps_are_no_decodes():
    """Tokens, fits and the workload come from decodes only."""
    point = replace(DECODE, shape=LLAMA, cpus=ALL)
    decodes = [visit(n, {"point": [20.0], "twin": [21.0]}, point) for n in range(6)]
    without, with_ = found_in(decodes), found_in(decodes, launched())
    for name in ("workload", "decodes", "l3", "factors", "storing"):
        assert getattr(with_.answers, name) == getattr(without.answers, name)
    assert with_.tokens.equals(without.tokens)


# ---- tables, and what is made of them ------------------------------------------------------------


def test_a_step_is_held_against_plain_reads_of_memory():
    """At 90 % of them or more memory limits it. Shares of rows and core are unknown."""
    (fast,) = frames.points(launched(times={WEIGHTS: 0.9}, wobble=0.001), MACHINE).to_dict(
        "records"
    )
    assert fast["witness"] == MEMORY and fast["efficiency"] == fast["memory_share"]
    assert (fast["bound"], fast["bound_reason"]) == ("memory", "reached")
    (slow,) = frames.points(launched(times={WEIGHTS: 1.5}), MACHINE).to_dict("records")
    assert (slow["bound"], slow["bound_by"]) == ("unknown", "rows, core")
    assert slow["above"] == "" and not slow["suspect"]


def test_a_step_above_a_roof():
    """Reads of memory reach half of its rate."""
    ceilings = [
        probe(n, 8.0, Probe("read", "scalar", ALL, "thp", 2048 * MIB)) for n in range(LAUNCHES)
    ]
    found = found_in(launched(), ceilings)
    (point,) = found.points.to_dict("records")
    assert point["above"] == "the read ceiling" and point["suspect"]
    assert point["above_reason"] == "plain reads beside it exceed it too"
    assert found.answers.steps.rows == ()


def test_a_history_has_steps():
    (found,) = results(launched())
    assert found.witness == MEMORY and found.efficiency == pytest.approx(18 / RATE, rel=0.01)


def test_a_profile_of_a_step():
    """From one visit, with intervals over its rounds."""
    record = step(0, times={DECODES: 1.2}, rounds=8, uneven=1.0)
    samples = [replace(s, program="ceiling") for s in record.samples if s.program == MEMORY]
    more = {"ceiling": record.traffic[MEMORY]}
    memory = {"page_bytes": 4096, "mapped": 1, "resident_bytes": 1, "huge_bytes": 0}
    found = profile(
        replace(
            record,
            samples=(*record.samples, *samples),
            traffic=record.traffic | more,
            memory=memory,
        )
    )
    own = by_round(record)
    assert found.step_times == own.times.median
    planted = alone(WITH)
    total = sum(planted.values())
    assert found.step_times == pytest.approx(1 + 0.2 * planted[DECODES] / total)
    assert found.parts[DECODES].times == pytest.approx(1.2)
    assert found.parts[WEIGHTS].share == pytest.approx(
        planted[WEIGHTS] / (total + 0.2 * planted[DECODES])
    )
    assert found.tokens_per_second == pytest.approx(1 / found.seconds_per_pass)
    assert found.memory_share == pytest.approx(found.gbps / RATE, rel=0.01)
