"""One process visits every kind of point: what one leaves in memory must not harm the next."""

from dataclasses import replace

import pytest

from kvbench.errors import WrongAnswer
from kvbench.machine import describe
from kvbench.model import Plan, Point, Record
from kvbench.model.contrast import value
from kvbench.native import default_library
from kvbench.plan import Site, expand
from kvbench.suite import load
from kvbench.worker import queries
from kvbench.worker.launch import launch
from kvbench.worker.loop import rounds
from kvbench.worker.steproom import room_of
from tests.made_job import CPU, job

SUITE = f"""
question = "Do they get along?"
samples = 1
sample_time = 0.0002
[axes]
q_heads = 4
kv_heads = 2
head_dim = 24
context = 96
threads = 1
cpus = "{CPU}"
layers = 1
pages = "base"
residency = "hot"

[[grid]]
variant = "all"
layout = "all"
dtype = "all"

[[grid]]
q_heads = [2, 8]
window = [0, 32]
batch = [1, 3]
capacity = 128

[[grid]]
residency = "evicted"
schedule = ["off", "cross", "auto"]

[[grid]]
op = ["append", "bulk", "repack", "transpose", "logits"]
variant = "all"
layout = "all"
dtype = "all"

[[grid]]
batch = 3
lengths = ["ragged:1", "ragged:2"]
"""


@pytest.fixture(scope="module")
def visited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("launch")
    (folder / "x.toml").write_text(SUITE)
    sweep = expand(load(folder / "x.toml"), Site(describe(), 1 << 40))
    rooms, real = [], room_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "kvbench.worker.launch.room_of",
            lambda point, *of: rooms.append(point) or real(point, *of),
        )
        asked = job(sweep.plan, sweep.points, folder=folder)
        seen = list(launch(default_library(), asked))
    return sweep.points, seen, rooms, folder


def test_all_are_right(visited):
    points, seen, _, _ = visited
    records = [found for found in seen if isinstance(found, Record)]
    assert not {record.error for record in records if record.error}
    assert {record.point for record in records} == set(points)


def test_each_is_announced_before_its_record(visited):
    seen = visited[1]
    assert all(isinstance(found, Record) == bool(number % 2) for number, found in enumerate(seen))
    assert list(seen[::2]) == [found.point for found in seen[1::2]]


def test_programs_timed_beside_a_point(visited):
    for record in visited[1][1::2]:
        programs = {sample.program for sample in record.samples}
        decodes = record.point.op == "decode"
        beside = {"twin", "twin_ahead", "core"} if decodes else {"copy", "copy_nt"}
        beside |= {"core_off"} if decodes and record.ran != "off" else set()
        # all other slices stay in a cache
        far = {"memory"} if decodes and record.point.residency == "evicted" else set()
        assert programs == {"point", "fma"} | beside | far
        assert programs == record.traffic.keys()
        assert record.slices == 1 and record.slice_bytes > 0
        assert all(not sample.pass_seconds for sample in record.samples)


@pytest.fixture(scope="module")
def contrasted(tmp_path_factory):
    """A launch of only the contrasts, each point in its own arena."""
    folder = tmp_path_factory.mktemp("contrasts")
    (folder / "x.toml").write_text(SUITE.replace("samples = 1", "samples = 3"))
    sweep = expand(load(folder / "x.toml"), Site(describe(), 1 << 40))
    seen = list(launch(default_library(), job(sweep.plan, sweep.contrasts, folder=folder)))
    return sweep.contrasts, seen[1::2], folder


def test_a_round_of_a_contrast_has_each_of_its_points(contrasted):
    contrasts, records, _ = contrasted
    assert {record.point for record in records} == set(contrasts) and len(contrasts) > 5
    assert {each.factor for each in contrasts} >= {"layout", "dtype", "variant", "group"}
    for record in records:
        names = sorted(value(point, record.point.factor) for point in record.point.points)
        assert not record.error and sorted(record.traffic) == names
        for number in range(3):
            own = [sample for sample in record.samples if sample.round == number]
            assert sorted(sample.program for sample in own) == names
            assert (
                len({round(sample.sample_time, 9) for sample in own}) == 1
                or "evicted" in record.point.name
            )


def test_a_wrong_answer_of_one_is_an_error_of_the_contrast(contrasted, monkeypatch):
    contrasts, _, folder = contrasted
    sweep_of = next(
        each for each in contrasts if each.factor == "dtype" and each.points[0].op == "decode"
    )
    right = queries.Queries.right
    wrong = lambda own: replace(
        right(own), out=right(own).out + (own._point == sweep_of.points[-1])
    )
    monkeypatch.setattr(queries.Queries, "right", wrong)
    _, record = launch(default_library(), job(Plan((sweep_of,), 1, 1, 0.0002, 1), folder=folder))
    assert "is off by" in record.error and not record.samples


def test_points_that_walk_the_same_memory_share_it(visited):
    points, _, rooms, _ = visited
    own = {
        (p.op, p.layout, p.dtype, s.batch, s.capacity, s.window, s.lengths)
        for p in points
        if isinstance(p, Point)
        for s in (p.shape,)
    }
    assert len(rooms) == len(own) < len(points)


def test_an_answer_is_computed_once(visited):
    """One answer for each set of data and queries, for all layouts and variants; a variant that
    rounds has its own. One more for the queries asked last.
    """
    points, _, _, folder = visited
    decodes = [p for p in points if p.op == "decode"]
    rounding = ("round16", "dot")
    kinds = ((p.dtype, p.variant if p.variant in rounding else "", p.shape) for p in decodes)
    own = {(*kind, s.q_heads, s.batch, s.window, s.lengths) for *kind, s in kinds}
    assert len(list(folder.glob("*.npy"))) == 2 * len(own) < 2 * len(decodes)


def test_seconds_of_passes_are_dropped_as_they_come(visited, monkeypatch):
    """Only one sample's are in memory at a time: a small point has millions."""
    alive = []

    class Passes(tuple):
        def __del__(self):
            alive.pop()

    def told(*args, **how):
        for sample in rounds(*args, **how):
            alive.append("seconds")
            yield replace(sample, pass_seconds=Passes(sample.pass_seconds))
            del sample
            most.append(len(alive))

    most, point = [], next(point for point in visited[0] if point.op == "decode")
    monkeypatch.setattr("kvbench.worker.bench.rounds", told)
    _, record = launch(default_library(), job(Plan((point,), 1, 3, 0.0002, 1)))
    assert not record.error and len(most) == 3 * 6 and max(most) <= 1


def refused(*_):
    raise WrongAnswer("off by 3", "see verify")


@pytest.mark.parametrize(
    ("name", "does", "short", "said"),
    [
        ("room.available_memory", lambda: 0, True, "of memory, 0 B are free"),
        ("decoding.Decoding.verify", refused, False, "off by 3 (see verify)"),
    ],
)
def test_memory_that_is_short_is_told_from_other_failures(
    visited, monkeypatch, name, does, short, said
):
    point = next(point for point in visited[0] if point.op == "decode")
    monkeypatch.setattr(f"kvbench.worker.{name}", does)
    _, record = launch(default_library(), job(Plan((point,), 1, 1, 0.0002, 1)))
    assert record.short is short and said in record.error
