"""Values as JSON and back; files that are whole or not there."""

import json

import pytest

from kvbench.model import Point, Probe, Record, Sample, Shape, Traffic
from kvbench.store import plain, point, record, write_json

SHAPE = Shape(layers=2, batch=1, q_heads=8, kv_heads=2, head_dim=64, context=10, capacity=16)
POINT = Point(
    op="decode", variant="v", layout="l", dtype="d", isa="i", shape=SHAPE, cpus=(1, 0), pages="base", residency="hot",
    prefetch="off", distance=0, scale="s", inner="n", block_tokens=16, shuffle=None, pad=64, deterministic=True,
)  # fmt: skip
PROBE = Probe("read", "i", (0, 1), "thp", 4096, 2048)


@pytest.mark.parametrize("value", [POINT, PROBE])
def test_points_come_back(value):
    assert point(json.loads(json.dumps(plain(value)))) == value


@pytest.mark.parametrize("value", [POINT, PROBE])
def test_records_come_back(value):
    sample = Sample("point", 3, 10, 0.25, (0.1, 0.15), (0.2, 0.25), 1, 2)
    whole = Record(4, value, (sample, sample), {"point": Traffic(*range(8))}, {"huge_bytes": 5}, steps=6, error="e")
    assert record(json.loads(json.dumps(plain(whole)))) == whole


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "machine.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    with pytest.raises(TypeError):
        write_json(path, {"a": list(range(10000)), "b": object()})
    assert json.loads(path.read_text()) == {"a": 2}
    assert [file.name for file in path.parent.iterdir()] == ["machine.json"]
