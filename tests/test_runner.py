"""Launches as processes: what they answer, how they die, and that nobody stays behind."""

import json
import os
import subprocess
from dataclasses import replace

import pytest

from kvbench.model import Plan, Probe, Record
from kvbench.native import default_library
from kvbench.runner import launch, run
from kvbench.store import plain

READ = Probe("read", "scalar", (min(os.sched_getaffinity(0)),), "base", 6 * 64 * 100)
PLAN = Plan((READ, replace(READ, op="copy"), replace(READ, op="triad")), 2, 2, 0.0005, 7)


def test_a_launch_answers_for_every_point():
    records = list(launch(PLAN, 1))
    assert {record.point for record in records} == set(PLAN.points)
    for record in records:
        assert record.error == "" and record.launch == 1
        assert len(record.samples) == 2 and all(sample.seconds > 0 for sample in record.samples)
        assert record.traffic["point"].compulsory == READ.bytes * record.steps
        assert record.memory["resident_bytes"] > 0


def test_launches_follow_one_another():
    """The executor is the edge: a fake one is enough to see that the order of launches is kept."""
    seen = list(run(PLAN, lambda plan, number: iter([Record(number, plan.points[0], (), {}, {})])))
    assert [record.launch for record in seen] == [0, 1]


ANSWER = json.dumps(plain(Record(0, READ, (), {}, {})))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("import sys; sys.stdin.read(); sys.exit('no such thing')", "exit code 1: no such thing"),
        ("import sys; sys.stdin.read()", "exit code 0: it said nothing"),
        (f"import sys; sys.stdin.read(); print({ANSWER!r}, flush=True); sys.exit(3)", "exit code 3"),
    ],
)
def test_a_worker_that_dies_leaves_error_records(program, said):
    records = list(launch(PLAN, 0, ("-c", program)))
    assert len(records) == len(PLAN.points) == len({record.point for record in records})
    failed = [record for record in records if record.error]
    assert len(failed) == len(PLAN.points) - (ANSWER in program)
    assert all(said in record.error for record in failed)


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "\xff",
        "{}",
        "[1]",
        '{"launch": 0}',
        ANSWER.replace('"traffic": {}', '"traffic": []'),
        ANSWER.replace('"read"', '"write"'),
    ],
)
def test_a_worker_that_talks_nonsense_is_stopped(line):
    program = f"import sys, time; sys.stdin.read(); print({line!r}, flush=True); time.sleep(60)"
    records = list(launch(PLAN, 0, ("-c", program)))
    assert {record.point for record in records} == set(PLAN.points)
    assert all("no record" in record.error for record in records)


def test_an_abandoned_launch_kills_its_worker(tmp_path):
    mark = tmp_path / "pid"
    program = (
        f"import os, sys, time; sys.stdin.read(); open({str(mark)!r}, 'w').write(str(os.getpid()));"
        f"print({ANSWER!r}, flush=True); time.sleep(60)"
    )
    records = launch(PLAN, 0, ("-c", program))
    next(records)
    records.close()
    assert subprocess.run(["kill", "-0", mark.read_text()], capture_output=True).returncode != 0


def test_a_point_that_cannot_be_measured_is_an_error_of_its_own():
    """More memory than any machine has."""
    impossible = replace(READ, bytes=1 << 60)
    records = {r.point: r for r in launch(replace(PLAN, points=(READ, impossible)), 0)}
    assert records[READ].error == ""
    assert records[impossible].error and not records[impossible].samples


def test_every_launch_has_an_order_of_its_own_and_keeps_it():
    points = tuple(replace(READ, bytes=6 * 64 * n) for n in range(1, 9))
    plan = replace(PLAN, points=points, samples=1, seconds=1e-5)
    first, again, second = ([r.point for r in launch(plan, number)] for number in (0, 0, 1))
    assert first == again != second
    assert set(first) == set(second) == set(points)


@pytest.mark.parametrize("op", ["read", "write", "write_nt", "copy", "copy_nt", "triad", "flops", "latency", "clock"])
def test_every_probe(op):
    size = 0 if op in ("flops", "clock") else READ.bytes
    (record,) = launch(replace(PLAN, points=(replace(READ, op=op, bytes=size, isa=default_library().isa()),)), 0)
    assert record.error == ""
    assert record.steps > 0
