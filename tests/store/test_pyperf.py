"""run.json.gz as pyperf reads it: its commands succeed, and its values are those of the journal."""

import gzip
import json
import random
import sys
from dataclasses import replace
from datetime import datetime
from statistics import median

import pyperf
import pytest

from kvbench.store import RunDirectory
from tests.processes import succeeds
from tests.store.made import APPEND, DECODE, POINTS, READ, failed, manifest, visit, visits

BAD, WRONG = replace(READ, op="triad"), replace(READ, op="copy")  # fail once


def kept(path, records, **facts):
    with RunDirectory.create(path, manifest(**facts)) as run:
        for record in records:
            run.append(record)
        assert run.export()
    return path / "run.json.gz"


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """Three launches, the start of a fourth, and two points that fail once. The other run is half
    as slow again.
    """
    folder = tmp_path_factory.mktemp("runs")
    points = (*POINTS, BAD, WRONG)
    chance = random.Random(5)
    wrong = visit(chance, 2, WRONG, error="it was off by 0.5 after the last sample")
    first = [
        *visits(1),
        visit(chance, 3, APPEND),
        visit(chance, 0, BAD),
        failed(1, BAD),
        visit(chance, 2, BAD),
        wrong,
    ]
    second = list(visits(2, scale=1.5))
    return kept(folder / "first", first, points=points), kept(
        folder / "second", second, run="20260102-040000-cafe"
    )


def pyperf_says(*arguments):
    command = [sys.executable, "-m", "pyperf", *map(str, arguments)]
    done = succeeds(command)
    assert not done.stderr
    assert "ERROR" not in done.stdout and "Traceback" not in done.stdout
    return done.stdout


def loaded(path):
    return {benchmark.get_name(): benchmark for benchmark in pyperf.BenchmarkSuite.load(str(path))}


@pytest.mark.parametrize("command", ["show", "stats", "metadata", "check", "dump", "hist"])
def test_its_commands_succeed(two_runs, command):
    said = pyperf_says(command, two_runs[0])
    for point in POINTS:
        assert point.name in said or command == "metadata"


def test_two_runs_are_compared(two_runs):
    said = pyperf_says("compare_to", "--table", *two_runs)
    assert all(point.name in said or "hidden" in said for point in POINTS)
    said = pyperf_says("compare_to", "-v", *two_runs)
    assert said.count("Mean +- std dev") == len(POINTS)
    assert said.count("x slower") >= len(POINTS) and "faster" not in said


def test_values_are_those_of_the_journal(two_runs):
    """Read without any code of ours."""
    wanted = {}
    for line in (two_runs[0].parent / "journal.jsonl").read_text().splitlines():
        facts = json.loads(line)
        values = [s["seconds"] / s["passes"] for s in facts["samples"] if s["program"] == "point"]
        wanted.setdefault(facts["point"], {})[facts["launch"]] = values
    found = json.loads(gzip.decompress(two_runs[0].read_bytes()))
    assert found["version"] == "1.0"
    benchmarks = {}
    for benchmark in found["benchmarks"]:
        benchmarks[benchmark["metadata"]["name"]] = [run["values"] for run in benchmark["runs"]]
    assert benchmarks == {p.name: [wanted[p.name][launch] for launch in range(3)] for p in POINTS}


def test_facts_are_metadata(two_runs):
    benchmarks = loaded(two_runs[0])
    common = benchmarks[DECODE.name].get_metadata()
    wanted = {
        "kvb_schema": 6,
        "kvb_run": "20260102-030405-beef",
        "kvb_suite": "made-up",
        "kvb_seed": 7,
        "kvb_build_id": "b1",
        "kvb_machine_id": "m1",
        "kvb_environment_id": "e1",
        "kvb_kernel": "decode.flash.paged.q8_0.best",
        "kvb_op": "decode",
        "kvb_layout": "paged",
        "kvb_threads": 2,
        "kvb_cpus": "0-1",
        "kvb_pages": "thp",
        "kvb_residency": "rotate",
        "kvb_schedule": "cross",
        "kvb_context": 100,
        "kvb_capacity": 128,
        "kvb_q_heads": 8,
        "kvb_kv_heads": 2,
        "kvb_head_dim": 64,
        "kvb_batch": 1,
        "kvb_order": 7,
        "kvb_deterministic": 1,
        "kvb_resident_bytes": 1 << 20,
        "kvb_huge_bytes": 0,
        "hostname": "somewhere",
        "platform": "Linux 6.1",
        "python_version": "3.11",
        "loops": 60,
        "inner_loops": 1,
        "unit": "second",
    }
    assert {name: common.get(name) for name in wanted} == wanted
    assert "kvb_pad" not in common and "cpu_model_name" not in common
    probe = benchmarks[READ.name].get_metadata()
    assert (probe["kvb_bytes"], probe["kvb_steps"]) == (1 << 20, 3)


def test_facts_of_a_launch_are_metadata_of_its_run(two_runs):
    records = [record for record in visits(1) if record.point == DECODE]
    for record, run in zip(records, loaded(two_runs[0])[DECODE.name].get_runs(), strict=True):
        facts = run.get_metadata()
        own = [sample for sample in record.samples if sample.program == "point"]
        assert facts["kvb_launch"] == record.launch
        assert facts["kvb_bytes_compulsory"] == record.traffic["point"].bytes_compulsory
        assert (
            facts["kvb_slices"] == record.slices and facts["kvb_slice_bytes"] == record.slice_bytes
        )
        assert facts["duration"] == record.wall
        for name in ("switches", "faults", "steal", "throttled"):
            assert facts[f"kvb_{name}"] == pytest.approx(
                sum(getattr(sample, name) for sample in own)
            )
        for program in ("twin", "twin_ahead", "core"):
            taken = [
                sample.seconds / sample.passes
                for sample in record.samples
                if sample.program == program
            ]
            assert facts[f"kvb_{program}_seconds"] == median(taken)
        began = datetime.fromisoformat(facts["date"] + "+05:30")
        assert began.timestamp() == pytest.approx(record.began, abs=1e-5)


def test_a_run_without_a_whole_launch_has_no_file(tmp_path):
    chance = random.Random(1)
    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        assert not run.export()
        for point in POINTS[:2]:
            run.append(visit(chance, 0, point))
        assert not run.export()  # READ may still come
        assert not (tmp_path / "run" / "run.json.gz").exists()
        run.append(failed(0, READ))
        assert run.export()
    assert set(loaded(tmp_path / "run" / "run.json.gz")) == {DECODE.name, APPEND.name}


def test_a_visit_with_too_few_samples_is_left_out(tmp_path):
    chance = random.Random(1)
    records = [
        visit(chance, 0, DECODE),
        visit(chance, 0, APPEND, samples=2),
        visit(chance, 0, READ),
    ]
    assert set(loaded(kept(tmp_path / "run", records))) == {DECODE.name, READ.name}


def test_what_is_kept_decides_every_byte(tmp_path):
    path = kept(tmp_path / "run", visits(3))
    before = path.read_bytes()
    with RunDirectory.open(tmp_path / "run", write=True) as run:
        path.unlink()
        assert run.export()
    assert path.read_bytes() == before
