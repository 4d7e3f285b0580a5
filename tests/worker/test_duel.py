"""Visits by two libraries: both walk the same memory, in an order decided by coins; both must be
right.
"""

import shutil
from dataclasses import replace

import pytest

from kvbench.machine import describe
from kvbench.model import SIDES, Record
from kvbench.native import default_library, library_path
from kvbench.plan import Site, expand
from kvbench.suite import load
from kvbench.worker import duel
from kvbench.worker.launch import launch
from tests.faulty import FAULTS, build, build_plugin
from tests.made_job import CPU, job

PAIRS = 12
SUITE = f"""
question = "Which is faster?"
sample_time = 0.0001
[axes]
q_heads = 4
kv_heads = 2
head_dim = 24
context = 96
threads = 1
cpus = "{CPU}"
pages = "base"
dtype = ["f16", "i8"]

[[grid]]
layout = "all"
residency = "hot"

[[grid]]
variant = ["flash", "twopass"]
layers = 5

[[grid]]
residency = "evicted"
dtype = "f16"

[[grid]]
residency = "hot"
between = [4096, 8192]

[[grid]]
op = ["append", "bulk", "repack", "transpose", "logits"]
layers = 3

[[grid]]
op = "step"
layers = 3
window = 40
full_every = 2
between = 6400
"""
PROGRAMS = {*SIDES, *(f"beside_{side}" for side in SIDES)}


def copy(folder):
    """A library of its own: one file is one library, however often it is opened."""
    folder.mkdir()
    shutil.copy(library_path().with_name("abi.h"), folder)
    return shutil.copy(library_path(), folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("duel")
    (folder / "x.toml").write_text(SUITE)
    sweep = expand(load(folder / "x.toml"), Site(describe(), 1 << 40))
    paths = [str(copy(folder / side)) for side in SIDES]
    plan = replace(
        sweep.plan, points=sweep.points, samples=PAIRS, library=paths[0], against=paths[1]
    )
    return folder, plan


def records(plan, folder, number=0):
    asked = job(plan, number=number, folder=folder)
    return [found for found in launch(default_library(), asked) if isinstance(found, Record)]


@pytest.fixture(scope="module")
def fought(place):
    folder, plan = place
    return records(plan, folder)


def order(record):
    """Which side came first, pair by pair."""
    first = {}
    for sample in record.samples:
        first.setdefault(sample.round, sample.program)
    return [first[number] for number in range(PAIRS)]


def test_both_sides_are_right_and_have_witnesses(fought, place):
    assert {record.point for record in fought} == set(place[1].points)
    for record in fought:
        assert not record.error, record.error
        assert {sample.program for sample in record.samples} == PROGRAMS == record.traffic.keys()
        assert len(record.samples) == 4 * PAIRS
        assert record.traffic["base"] == record.traffic["head"]


def test_a_witness_follows_the_side_that_it_is_beside(fought):
    for record in fought:
        names = [sample.program for sample in record.samples]
        assert names[1::2] == [f"beside_{name}" for name in names[::2]]


def test_coins_decide_who_is_first(fought, place):
    firsts = [side for record in fought for side in order(record)]
    assert 0.3 < firsts.count("base") / len(firsts) < 0.7
    folder, plan = place
    one = replace(plan, points=plan.points[:2])
    again, same, other = (
        records(replace(one, seed=seed), folder, number)
        for seed, number in ((1, 0), (1, 0), (1, 1))
    )
    assert [order(r) for r in again] == [order(r) for r in same] != [order(r) for r in other]


def test_both_sides_do_as_much(fought):
    """In each pair, whatever other work does to their times."""
    for record in fought:
        passes = {
            name: [s.passes for s in record.samples if s.program == name] for name in PROGRAMS
        }
        assert passes["base"] == passes["head"]
        assert passes["beside_base"] == passes["beside_head"]


@pytest.fixture(scope="module")
def lying(place):
    folder = place[0] / "lying"
    folder.mkdir()
    return str(build(folder))


@pytest.mark.parametrize("side", SIDES)
def test_a_side_that_answers_wrongly_is_an_error(place, lying, side):
    """The faulty library's i8 is off by one."""
    folder, plan = place
    points = tuple(
        point
        for point in plan.points
        if (point.op, point.variant, point.dtype) == ("decode", "flash", "i8")
    )
    which = {"base": "library", "head": "against"}[side]
    found = records(replace(plan, points=points[:1], **{which: lying}), folder)
    assert "is off by 1" in found[0].error and not found[0].samples


def test_a_control_has_base_on_both_sides(place, lying):
    """Whatever head answers."""
    folder, plan = place
    i8 = [
        point
        for point in plan.points
        if (point.op, point.variant, point.dtype) == ("decode", "flash", "i8")
    ][:2]
    found = records(replace(plan, points=tuple(i8), against=lying, controls=(i8[0].name,)), folder)
    assert {record.point: bool(record.error) for record in found} == {i8[0]: False, i8[1]: True}


def test_memory_that_head_reads_differently_cannot_be_compared(place, monkeypatch):
    folder, plan = place
    real = duel.GuestRoom.cache

    def other(guest, layer):
        with monkeypatch.context() as patch:
            patch.setattr(guest, "point", replace(guest.point, scale="f16"))
            return real(guest, layer)

    monkeypatch.setattr(duel.GuestRoom, "cache", other)
    point = next(p for p in plan.points if (p.op, p.dtype, p.residency) == ("decode", "i8", "hot"))
    (record,) = records(replace(plan, points=(point,)), folder)
    assert "lays out a" in record.error and "k.scale_bytes" in record.error


def test_a_variant_that_the_installed_library_lacks_has_a_witness_too(place):
    point = next(p for p in place[1].points if p.op == "decode")
    assert duel._known(replace(point, variant="unheard_of"), default_library()).variant == "flash"
    assert duel._known(point, default_library()) is point


@pytest.mark.parametrize("variant", ["right", "glances", "nudges"])
def test_a_plug_in_on_both_sides_is_looked_after(place, variant):
    """As in a sweep: it must not remember its answers, nor write to its inputs."""
    folder, plan = place
    made = [
        str(build_plugin(folder / f"{variant}-{side}.so", f"-DLISTED=ONE({variant})"))
        for side in SIDES
    ]
    isa = default_library().isa()
    point = next(
        p
        for p in plan.points
        if (p.op, p.variant, p.layout, p.dtype) == ("decode", "flash", "head", "f16")
    )
    point = replace(point, variant=variant, dtype="f32", isa=isa)
    plan = replace(
        plan,
        points=(point,),
        samples=2,
        plugin=(made[0],),
        against_plugin=(made[1],),
        foreign=(variant,),
    )
    (found,) = records(plan, folder)
    assert not found.error if variant == "right" else FAULTS[variant] in found.error, found.error
