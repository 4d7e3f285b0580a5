"""Visits by two builds of an engine: each in its own process, in an order decided by coins; both
must be right.
"""

from dataclasses import replace
from importlib.metadata import EntryPoint

import psutil
import pytest

from kvbench.machine import describe
from kvbench.model import BESIDE, SIDES, Record
from kvbench.native import default_library
from kvbench.peers.known import GROUP
from kvbench.plan import Site, expand
from kvbench.suite import load
from kvbench.worker.launch import launch
from tests.made_job import CPU, job
from tests.peers import fakes

ENGINE, PAIRS = "named", 6
PROGRAMS = {*SIDES, *BESIDE.values()}
SUITE = f"""
question = "Which build is faster?"
samples = {PAIRS}
sample_time = 0.0001
[axes]
q_heads = 4
kv_heads = 2
head_dim = 32
context = [63, 64]
layers = 64
threads = 1
cpus = "{CPU}"
pages = "base"
dtype = "f32"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder, and points of an engine; its library's name says which fake it is."""
    folder = tmp_path_factory.mktemp("contest")
    (folder / "x.toml").write_text(SUITE)
    found = expand(load(folder / "x.toml"), Site(describe(), 1 << 40))
    points = tuple(replace(point, engine=ENGINE) for point in found.points)
    entry = EntryPoint(ENGINE, f"{fakes.__name__}:Named", GROUP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kvbench.peers.known.entries", lambda: {ENGINE: entry})
        yield folder, replace(found.plan, points=points, contest=True, patience=8.0)


@pytest.fixture
def met(place, tmp_path):
    """Records of a launch with these two builds."""
    _, plan = place

    def records(base="right", head="right", number=0, **facts):
        peers = {f"{ENGINE}@{side}": name for side, name in zip(SIDES, (base, head), strict=True)}
        asked = job(replace(plan, peers=peers, **facts), number=number, folder=tmp_path)
        before = psutil.Process().children()
        taken = [each for each in launch(default_library(), asked) if isinstance(each, Record)]
        assert psutil.Process().children() == before
        assert not [path for path in tmp_path.rglob("*") if path.suffix == ".ses"]
        return taken

    return records


def order(record):
    """Which side came first, pair by pair."""
    first = {}
    for sample in record.samples:
        first.setdefault(sample.round, sample.program)
    return [first[number] for number in range(PAIRS)]


def test_pairs_are_whole_and_both_sides_do_as_much(met):
    for record in met(head="loud"):
        assert not record.error and 0 < record.max_abs_err < 1e-4
        names = [sample.program for sample in record.samples]
        assert len(names) == 4 * PAIRS and {*names} == PROGRAMS == record.traffic.keys()
        assert names[1::2] == [BESIDE[side] for side in names[::2]]
        passes = {
            name: [s.passes for s in record.samples if s.program == name] for name in PROGRAMS
        }
        assert passes["base"] == passes["head"]
        assert passes[BESIDE["base"]] == passes[BESIDE["head"]]
        rows = 2 * 2 * record.point.shape.context * 32 * 4  # K and V of two heads
        assert record.traffic["base"].bytes_kv == rows


def test_coins_decide_who_is_first(met, place):
    again, same, other = (
        [order(record) for record in met(number=number, points=place[1].points[:1])]
        for number in (0, 0, 1)
    )
    assert again == same != other
    assert {*again[0], *other[0]} == {*SIDES}


@pytest.mark.parametrize(
    ("side", "name", "said"),
    [
        ("base", "liar", "is off by"),
        ("head", "liar", "is off by"),
        ("base", "keeper", "is off by"),
        ("head", "resting", "is off by"),
        ("head", "tired", "is off by"),
        ("base", "dying", "its process ended with exit code 3"),
        ("head", "timeless", "it reports 0 s, but "),
        ("head", "weightless", "it reports that a step reads 0 bytes"),
    ],
)
def test_a_fault_is_an_error_that_names_the_side(met, place, side, name, said):
    (record,) = met(**{side: name}, points=place[1].points[:1])
    assert not record.samples
    assert f"{ENGINE}@{side}" in record.error and said in record.error


def test_a_side_that_hangs_is_told(met, place):
    (record,) = met(head="hanging", points=place[1].points[:1], patience=3.0)
    assert f"{ENGINE}@head: no sign of life" in record.error


def test_a_control_has_base_on_both_sides(met, place):
    """Whatever head answers."""
    one, other = place[1].points
    found = met(head="liar", controls=(one.name,))
    assert {record.point: bool(record.error) for record in found} == {one: False, other: True}


def test_a_point_that_one_side_fails_at_leaves_the_others(met):
    """Head fails at odd numbers of tokens."""
    errors = [record.error for record in sorted(met(head="picky"), key=context)]
    assert "ValueError: 63 tokens" in errors[0] and not errors[1]


def context(record):
    return record.point.shape.context
