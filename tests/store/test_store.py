"""Values as JSON and back, and values that do not fit; files that are complete or absent."""

import json

import pytest

from kvbench.model import Job, Needs, Plan, Probe, Record, Sample, Traffic
from kvbench.model.point import Visited
from kvbench.store import plain, read, write_json
from kvbench.store.values import refuse_unfit
from tests.made_run import MACHINE
from tests.store.made import DECODE as POINT

PROBE = Probe("read", "i", (0, 1), "thp", 4096)
SAMPLE = Sample("point", 3, 10, 0.25, (0.1, 0.15), 0.5, 1, 2, 0.01, 3, 0.2)
RECORD = Record(
    4,
    POINT,
    (SAMPLE, SAMPLE),
    {"point": Traffic(*map(float, range(8)))},
    {"resident_bytes": 9, "huge_bytes": 5},
    steps=6,
    slices=7,
    slice_bytes=8,
    max_abs_err=0.5,
    error="e",
    part=1,
    began=1.75e9,
    wall=2.5,
    run="r",
)
NEEDS = Needs(1, 2, 3, 4, 5, 6, 7)
PLAN = Plan((POINT, PROBE), 3, 2, 0.03, 7, "r", 9.5, "lib.so")
JOB = Job(PLAN, 1, 2, (PROBE,), MACHINE, {POINT.name: NEEDS}, "folder")


def through_json(value):
    return json.loads(json.dumps(plain(value)))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Visited, POINT),
        (Visited, PROBE),
        (Record, RECORD),
        (Record, Record(0, PROBE, (), {}, {})),
        (Job, JOB),
    ],
)
def test_values_come_back(kind, value):
    assert read(kind, through_json(value)) == value


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["launch"], "4", "launch: Expected `int`, got `str`"),
        (["launch"], -1, "launch: Expected `int` >= 0"),
        (["wall"], float("inf"), "wall: Expected `float` <= 1000000000.0"),
        (["samples", 1, "passes"], 0, "samples[1].passes: Expected `int` >= 1"),
        (["samples", 0, "seconds"], float("nan"), "samples[0].seconds: Expected `float` >= 1e-09"),
        (
            ["samples", 0, "pass_seconds"],
            [0.1, "x" * 99],
            "samples[0].pass_seconds[1]: Expected `float`, got `str`",
        ),
        (["samples", 1, "program"], "twin", "traffic: that of 'twin' is missing"),
        (["traffic"], {}, "traffic: that of 'point' is missing"),
        (["point", "shape", "kv_heads"], 0, "point: shape.kv_heads: Expected `int` >= 1"),
        (["point"], "decode", "point: Expected `Visited`, got `str`"),
    ],
)
def test_a_value_that_does_not_fit_is_named(path, value, said):
    facts = through_json(RECORD)
    inner = facts
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ValueError) as raised:
        refuse_unfit(read(Record, facts))
    assert said in str(raised.value)
    assert len(str(raised.value)) < 200


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "machine.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    with pytest.raises(ValueError, match=r"'\\udcff' cannot be written as text"):
        write_json(path, {"a": list(range(10000)), "b": "\udcff"})
    assert json.loads(path.read_text()) == {"a": 2}
    assert [file.name for file in path.parent.iterdir()] == ["machine.json"]
