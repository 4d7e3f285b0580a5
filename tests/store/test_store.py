"""Values as JSON and back, and what does not fit; files that are whole or not there."""

import json
from dataclasses import replace

import pytest

from kvbench.model import Job, Plan, Point, Probe, Record, Sample, Shape, Traffic
from kvbench.store import job, plain, point, record, write_json

SHAPE = Shape(layers=2, batch=1, q_heads=8, kv_heads=2, head_dim=64, context=10, capacity=16, window=0)
POINT = Point(
    op="decode", variant="v", layout="l", dtype="d", isa="i", shape=SHAPE, cpus=(1, 0), pages="base", residency="hot",
    schedule="off", scale="s", inner="n", block_tokens=16, shuffle=None, pad=64, deterministic=True,
)  # fmt: skip
PROBE = Probe("read", "i", (0, 1), "thp", 4096, 2048)
SAMPLE = Sample("point", 3, 10, 0.25, (0.1, 0.15), 0.5, 1, 2, 0.01, 3)
RECORD = Record(
    4, POINT, (SAMPLE, SAMPLE), {"point": Traffic(*map(float, range(8)))}, {"resident_bytes": 9, "huge_bytes": 5}, steps=6, layers=7,
    slice_bytes=8, max_abs_err=0.5, error="e", part=1, began=1.75e9, wall=2.5, run="r",
)  # fmt: skip


def through_json(value):
    return json.loads(json.dumps(plain(value)))


@pytest.mark.parametrize("value", [POINT, PROBE])
def test_points_come_back(value):
    assert point(through_json(value)) == value


@pytest.mark.parametrize("value", [RECORD, Record(0, PROBE, (), {}, {})])
def test_records_come_back(value):
    assert record(through_json(value)) == value


def test_jobs_come_back():
    plan = Plan((POINT, PROBE), 3, 2, 0.03, 7, "r", 9.5, "lib.so")
    value = Job(plan, 1, 2, (PROBE,), {PROBE.name: {"point": 64}}, "folder")
    assert job(through_json(value)) == value


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["samples", 0, "strange"], 1, "strange: is not known"),
        (["launch"], "4", "launch: Expected `int`, got `str`"),
        (["launch"], True, "launch: Expected `int`, got `bool`"),
        (["launch"], -1, "launch: Expected `int` >= 0"),
        (["layers"], 1 << 63, "layers: Expected `int` <= 9223372036854775807"),
        (["wall"], float("inf"), "wall: Expected `float` <= 1000000000.0"),
        (["wall"], 1e29, "wall: Expected `float` <= 1000000000.0"),
        (["began"], 1e12, "began: Expected `float` <= 100000000000.0"),
        (["error"], None, "error: Expected `str`, got `null`"),
        (["surprise"], 1, "surprise: is not known"),
        (["samples"], {}, "samples: Expected `array`, got `object`"),
        (["samples", 1, "passes"], 1.5, "samples[1].passes: Expected `int`, got `float`"),
        (["samples", 1, "passes"], 0, "samples[1].passes: Expected `int` >= 1"),
        (["samples", 0, "seconds"], 0.0, "samples[0].seconds: Expected `float` >= 1e-09"),
        (["samples", 0, "seconds"], float("nan"), "samples[0].seconds: Expected `float` >= 1e-09"),
        (["samples", 0, "pass_seconds"], [0.1, "x" * 99], "samples[0].pass_seconds[1]: Expected `float`, got `str`"),
        (["traffic", "point"], 3, "traffic[...]: Expected `object`, got `int`"),
        (["memory"], [], "memory: Expected `object`, got `array`"),
        (["memory"], {"resident_bytes": 5}, "memory: one of huge_bytes, resident_bytes is missing"),
        (["samples", 1, "program"], "twin", "traffic: that of 'twin' is missing"),
        (["traffic", "point", "compulsory"], 0, "traffic: a program of a point moves no byte"),
        (["traffic"], {}, "traffic: that of 'point' is missing"),
        (["point", "cpus"], [], "point: cpus: Expected `array` of length >= 1"),
        (["point", "shape", "kv_heads"], 0, "point: shape.kv_heads: Expected `int` >= 1"),
        (["point", "deterministic"], 1, "point: deterministic: Expected `bool`, got `int`"),
        (["point", "pad"], "64", "point: pad: Expected `int | null`, got `str`"),
        (["point"], "decode", "point: Expected `Measured`, got `str`"),
    ],
)
def test_what_does_not_fit_is_named(path, value, said):
    facts = through_json(RECORD)
    inner = facts
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ValueError) as raised:
        record(facts)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("name", ["launch", "point", "samples", "memory"])
def test_what_is_missing_is_named(name):
    facts = through_json(RECORD)
    del facts[name]
    with pytest.raises(ValueError, match=f"missing required field `{name}`"):
        record(facts)


def test_a_probe_counts_its_steps():
    facts = through_json(replace(RECORD, point=PROBE, steps=0))
    with pytest.raises(ValueError, match="steps"):
        record(facts)
    assert record(facts | {"samples": []}).steps == 0


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "machine.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    with pytest.raises(ValueError, match=r"'\\udcff' is no text"):
        write_json(path, {"a": list(range(10000)), "b": "\udcff"})
    assert json.loads(path.read_text()) == {"a": 2}
    assert [file.name for file in path.parent.iterdir()] == ["machine.json"]
