"""Tuning in a launch: each class once, on the memory of its first point. A schedule asked for by
name is kept.
"""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kvbench.machine import describe
from kvbench.model import Record, Sample
from kvbench.model.tuning import called
from kvbench.native import default_library
from kvbench.plan import Site, expand, needs_here
from kvbench.plan.classes import class_of
from kvbench.runner import run
from kvbench.suite import load
from kvbench.worker import tuning
from kvbench.worker.launch import launch
from tests.made_job import CPU, job
from tests.made_run import DECODE, MACHINE

SUITE = f"""
question = "Which schedule?"
launches = 2
samples = 1
sample_time = 0.0002
[axes]
q_heads = 4
kv_heads = 2
head_dim = 32
threads = 1
cpus = "{CPU}"
pages = "base"
residency = "hot"

[[grid]]
context = [64, 96]
layout = ["head", "position"]
schedule = ["auto", "off"]

[[grid]]
context = 96
variant = "twopass"

[[grid]]
op = "append"
context = 96
"""
TIMES = {"off": 2.0, "cross": 0.9, "weave": 1.0, "stream": 0.5}  # of the default's


def replayed(programs, samples, seconds, seed):
    """A round on a stopped clock: presets take the times written above."""
    assert seed == 0 or {program.name for program in programs} == {"weave", "stream"}
    for number in range(samples):
        for program in programs:
            passes = round(10 / TIMES[program.name])
            taken = TIMES[program.name] * passes * (1 + 0.3 * (number == 3))
            yield Sample(program.name, number, passes, taken, (), 0.0, 0, 0)


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    file = tmp_path_factory.mktemp("tuning") / "x.toml"
    file.write_text(SUITE)
    sweep = expand(load(file), Site(describe(), 1 << 40))
    return replace(sweep.plan, points=sweep.points, tuning={})


def launched(plan, folder, patch):
    patch.setattr(tuning, "rounds", replayed)
    found = launch(default_library(), job(plan, folder=folder))
    return [each for each in found if isinstance(each, Record)]


def test_each_class_is_tuned_once_and_all_its_points_follow(plan, tmp_path, monkeypatch):
    records = launched(plan, tmp_path, monkeypatch)
    assert not any(record.error for record in records)
    auto = [
        record
        for record in records
        if record.point.op == "decode" and record.point.schedule == "auto"
    ]
    needs, machine = needs_here(plan.points, describe()), describe()
    names = [called(class_of(record.point, needs[record.point], machine)) for record in auto]
    assert {record.ran for record in auto} == {"stream"}
    assert sorted(tuned.of for record in auto for tuned in record.tuned) == sorted(set(names))
    assert len(set(names)) == 3
    for tuned in (tuned for record in auto for tuned in record.tuned):
        ratios = {word: np.median(values) for word, values in tuned.ratios.items()}
        assert ratios == pytest.approx({word: math.log(time) for word, time in TIMES.items()})
        assert tuned.choice.gain == pytest.approx(2.0)
    others = [record for record in records if record not in auto]
    assert {record.ran for record in others} == {"", "off"} and not any(
        record.tuned for record in others
    )


def test_evidence_of_earlier_runs_counts(plan, tmp_path, monkeypatch):
    first = launched(plan, tmp_path, monkeypatch)
    seen = {"off": (-2.0,) * 40, "cross": (0.0,) * 40, "weave": (0.0,) * 40, "stream": (0.0,) * 40}
    known = {tuned.of: seen for record in first for tuned in record.tuned}
    records = launched(replace(plan, tuning=known), tmp_path, monkeypatch)
    assert {record.ran for record in records if record.point.op == "decode"} == {"off"}
    assert {tuned.choice.rounds for record in records for tuned in record.tuned} == {
        40 + tuning.ROUNDS
    }


def test_an_earlier_choice_is_kept(plan, tmp_path, monkeypatch):
    first = launched(plan, tmp_path, monkeypatch)
    chosen = {tuned.of: "cross" for record in first for tuned in record.tuned}
    records = launched(replace(plan, chosen=chosen), tmp_path, monkeypatch)
    assert not any(record.tuned for record in records)
    assert {record.ran for record in records if record.point.op == "decode"} == {
        "cross",
        "off",
    }


def test_without_tuning_all_have_the_default(plan, tmp_path, monkeypatch):
    records = launched(replace(plan, tuning=None), tmp_path, monkeypatch)
    assert not any(record.tuned for record in records)
    default = default_library().schedule("auto")
    assert {record.ran for record in records if record.point.op == "decode"} == {
        default,
        "off",
    }


def test_later_launches_and_a_run_that_goes_on_have_the_same(plan):
    """Really measured, in processes of their own."""
    here = (machine := describe()), needs_here(plan.points, machine)
    records = list(run(plan, *here))
    assert not any(record.error for record in records)
    chosen = {tuned.of: tuned.choice.preset for record in records for tuned in record.tuned}
    assert len(chosen) == 3 and not any(record.tuned for record in records if record.launch)
    by_point = {}
    for record in records:
        by_point.setdefault(record.point, set()).add(record.ran)
    assert all(len(schedules) == 1 for schedules in by_point.values())
    first = [record for record in records if record.launch == 0]
    rest = list(run(plan, *here, done=first))
    assert {(record.point, record.ran) for record in rest} == {
        (each.point, each.ran) for each in first
    }
    assert not any(record.tuned for record in rest)


def test_copies_in_memory_have_the_schedule_that_is_best_there(monkeypatch):
    """A slice of 8 MiB in an L3 of 32 MiB; a slice in memory has no such copies."""
    monkeypatch.setattr(tuning, "rounds", replayed)
    point = replace(
        DECODE,
        schedule="auto",
        residency="hot",
        shape=replace(DECODE.shape, context=16384, capacity=16384),
    )
    for each, far in ((point, "stream"), (replace(point, residency="rotate"), "")):
        needed, room = needs_here([each], MACHINE)[each], SimpleNamespace(library=default_library())
        bench = SimpleNamespace(point=each, needs=needed, room=room, ran="weave", far_schedule="")
        bench.rotated = lambda name, schedule: SimpleNamespace(name=name)
        tuner = tuning.Tuner(MACHINE, {})
        tuner.choose_far(bench)
        assert (bench.ran, bench.far_schedule) == ("weave", far)
        assert [tuned.of.rpartition("/")[2] for tuned in tuner.taken()] == ["memory"] * bool(far)
