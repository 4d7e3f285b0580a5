"""kvbench machine with probes answered by a made-up machine: what it prints, keeps and draws."""

import json
from dataclasses import replace

import pytest

import kvbench.machine
import kvbench.runner
from kvbench.machine.tree import Files
from kvbench.model import COMPUTE, Point, Record, Sample, Traffic
from tests import chased
from tests.cli.test_cli import call, errors_of, output_of, refused
from tests.machine.healthy import Still
from tests.machine.trees import bare_guest, grow

KIB, MIB = 1 << 10, 1 << 20
# bytes a thread (the last: of all), GB/s a thread
LEVELS = ((32 * KIB, 200.0), (512 * KIB, 100.0), (16 * MIB, 60.0))
DRAM = 20.0  # GB/s of all threads


def rate(probe):
    """GB/s of a probe: a read has the rate of its level, all others half of it."""
    threads = len(probe.cpus)
    for place, (size, gbps) in enumerate(LEVELS):
        if probe.bytes / (threads if place < 2 else 1) <= size:
            return gbps * threads * (1.0 if probe.op == "read" else 0.5)
    return DRAM * (1.0 if probe.op == "read" else 0.5)


def answers(job):
    """One launch. The launches differ by up to 4 %; prefetching does not help."""
    for probe in job.points:
        if isinstance(probe, Point):
            yield replace(chased.record(job.launch, probe), run=job.plan.run)
            continue
        fast = 1 + 0.005 * job.launch
        moved = Traffic(3e9, float(probe.bytes), 0, 0, 0, 0, 0, 0)
        units = dict.fromkeys(COMPUTE, 1 / 50) | {"clock": 1.0, "latency": 100e-9 * 1000}
        seconds = units.get(probe.op) or probe.bytes / rate(probe) / 1e9
        steps = {"clock": 3 * 10**9, "latency": 1000}.get(probe.op, 1)
        samples = tuple(
            Sample("point", n, 1, seconds / fast, (), 0.0, 0, 0) for n in range(job.plan.samples)
        )
        yield Record(job.launch, probe, samples, {"point": moved}, {}, steps=steps)


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """Two cores with 32 KiB, 512 KiB and 32 MiB between them, of which half is really there."""
    tree = tmp_path / "tree"
    monkeypatch.setattr(Files, "live", True)
    grow(
        tree,
        cores=2,
        caches=[(1, "Data", "32K", 1), (2, "Unified", "512K", 1), (3, "Unified", "32768K", 2)],
    )
    monkeypatch.setenv("KVBENCH_ROOT", str(tree))
    monkeypatch.setattr(kvbench.runner, "launch", answers)
    monkeypatch.setattr("kvbench.machine.preflight.Live", lambda: Still(tree))
    return tmp_path


def test_json(made_up, capsys):
    facts = json.loads(output_of(capsys, "machine", "--quick", "--json"))
    assert {
        "version",
        "run",
        "fingerprint",
        "environment",
        "topology",
        "preflight",
        "ceilings",
    } <= facts.keys()
    reads = [c for c in facts["ceilings"] if c["op"] == "read" and c["threads"] == 2]
    for c in reads:
        assert {"pages", "isa", "level", "low", "high", "samples", "cpus", "run"} <= c.keys()
        assert c["run"] == facts["run"] and c["unit"] == "GB/s" and c["stable"]
        assert len(c["samples"]) == 9 and c["low"] < c["gbps"] < c["high"]
    far = max(reads, key=lambda c: c["bytes"])
    assert far["level"] == "DRAM" and far["gbps"] == pytest.approx(DRAM * 1.02), (
        "the median of nine launches"
    )
    by_op = {(c["op"], c["threads"], c["isa"]): c for c in facts["ceilings"]}
    assert by_op["clock", 1, "scalar"]["median"] == pytest.approx(3.0 * 1.02)
    assert by_op["latency", 1, "scalar"]["median"] == pytest.approx(100.0 / 1.02)
    assert by_op["clock", 1, "scalar"]["gbps"] is None


def test_an_l3_that_is_half_there_is_noticed(made_up, capsys):
    """Levels go by what was seen: 24 MiB would be L3 of the declared 32, not of the 16 that
    answer.
    """
    facts = json.loads(output_of(capsys, "machine", "--quick", "--json"))
    held = {c["level"]: c for c in facts["capacities"]}
    assert held[3]["declared"] == 32 * MIB and 10 * MIB < held[3]["effective"] < 0.6 * 32 * MIB
    assert "declares 32 MiB" in held[3]["note"]
    assert held[1]["note"] == held[2]["note"] == ""
    assert held[1]["low"] <= 32 * KIB <= held[1]["high"]
    assert held[2]["low"] <= 512 * KIB <= held[2]["high"]
    levels = {
        c["bytes"]: c["level"] for c in facts["ceilings"] if c["op"] == "read" and c["threads"] == 2
    }
    assert all(level != "L3" for count, level in levels.items() if count > 16 * MIB)


def test_text_names_every_level_and_says_where_the_profile_went(made_up, capsys):
    kept = made_up / "machine.json"
    assert call("machine", "--quick", "--out", str(kept)) == 0
    printed = capsys.readouterr()
    for word in (
        "fingerprint",
        "Test CPU",
        "L1",
        "L2",
        "L3",
        "DRAM",
        "write_nt",
        "latency ns",
        "GFLOP/s",
        "GHz",
    ):
        assert word in printed.out, word
    assert "1 thread on CPU 0" in printed.out and "2 threads on CPUs 0-1" in printed.out
    assert "408 (400..416)" in printed.out, "L1 of two threads: 400 GB/s, 1 to 4 % more"
    assert "█" in printed.out
    assert str(kept) in printed.err and json.loads(kept.read_text())["fingerprint"] in printed.out


def test_latency_beside_loads(made_up, capsys):
    facts = json.loads(output_of(capsys, "machine", "--quick", "--loaded", "--json"))
    (idle,) = facts["idle"]
    assert idle["kernel"].startswith("decode.flash.head.f16.") and idle["threads"] == 1
    assert (idle["cpu"], idle["huge"], idle["few"]) == (1, 0.5, True)
    assert idle["ns"] == pytest.approx(100) and idle["tail"] == pytest.approx(150)
    rows = {(row["load"], row["share"]): row for row in facts["loaded"]}
    assert len(rows) == 3 * 4, "reads, copies and the decode"
    full = rows["read", 100]  # 20 GB/s make a load take 160 ns, in which it moves 64 bytes
    assert full["ns"] == pytest.approx(160) and full["gbps"] == pytest.approx(20 + 64 / 160)
    assert full["times"] == pytest.approx(1.6) and full["tail"] == pytest.approx(240)
    assert rows[idle["kernel"], 50]["ns"] == pytest.approx(100 + 3 * 7.5)
    # by straight lines between shares: 90 % of the reads lie between 15 and 20 GB/s
    at = 0.9 * (20 + 64 / 160)
    low, high = 15 + 64 / 145, 20 + 64 / 160
    assert 100 * idle["busy"]["times"] == pytest.approx(145 + 15 * (at - low) / (high - low))
    assert idle["alike"]["times"] == pytest.approx(1, abs=1e-3)
    assert idle["slowed"]["times"] == pytest.approx(15 / 16)


def test_latency_beside_loads_is_printed(made_up, capsys):
    printed = output_of(capsys, "machine", "--quick", "--loaded", "--threads", "1")
    table = printed[printed.index("Latency of memory beside a load") :].splitlines()
    assert "CPU 1 chases 512 MiB (50% on huge pages) while 1 thread works" in table[0]
    rows = [" ".join(line.split()) for line in table]
    assert rows[2:4] == ["none 100 (100..100) 150", "spin in L1 100"]
    assert "read 100% 20.4 160 (160..160) 240 1.60" in rows
    assert "decode f16 75% 11.7 134 (134..134) 201 1.34" in rows
    assert rows[-3] == (
        "Latency is 1.54x (1.54 to 1.54) idle at 90% of the read bandwidth (beside one core, not"
        " saturated)."
    )
    assert rows[-2].startswith("Beside a decode of f16 latency is 1.00x (1.00 to 1.00) that beside")
    assert rows[-1] == "Beside the chase the decode of f16 has 0.94x (0.94 to 0.94) its own rate."


@pytest.mark.parametrize("asked", [("--threads", "2"), ("--cpus", "0-1", "--threads", "2")])
def test_a_chase_needs_a_core_of_its_own(asked, made_up, monkeypatch, capsys):
    monkeypatch.setattr(kvbench.runner, "launch", None)
    words = ("no thread can chase", "with 2 threads, no core", "leave out --loaded")
    refused(capsys, "machine", "--quick", "--loaded", *asked, words=words)


def test_plot(made_up):
    for name in ("stairs.png", "stairs.svg"):
        assert call("machine", "--quick", "--plot", str(made_up / name)) == 0
    assert (made_up / "stairs.png").read_bytes().startswith(b"\x89PNG")
    drawn = (made_up / "stairs.svg").read_text()
    for word in (
        "GB/s",
        "working set",
        "L3 ",
        "1 thread, CPU 0",
        "2 threads, CPUs 0-1",
        "Test CPU",
    ):
        assert word in drawn


def test_no_cache_declared(made_up, monkeypatch, capsys):
    bare_guest(made_up / "bare", allowed="0-1")
    monkeypatch.setenv("KVBENCH_ROOT", str(made_up / "bare"))
    printed = output_of(capsys, "machine", "--quick")
    assert "No cache is declared" in printed
    assert "256 MiB" in printed
    assert "GB/s\n" in printed[printed.index("No cache is declared") :], (
        "plateaus stand in for levels"
    )


def test_nothing_measured_is_no_profile(made_up, monkeypatch, capsys):
    def broken(job):
        return (Record(job.launch, point, (), {}, {}, error="no memory") for point in job.points)

    monkeypatch.setattr(kvbench.runner, "launch", broken)
    assert call("machine", "--quick", "--plot", str(made_up / "stairs.png")) == 4
    assert not (made_up / "stairs.png").exists()
    assert "visits failed" in capsys.readouterr().err


def test_fewer_launches_are_marked(made_up, monkeypatch, capsys):
    def late(job):
        for record in answers(job):
            failed = record.point.op == "triad" and job.launch > 3
            yield (
                Record(job.launch, record.point, (), {}, {}, error="no memory")
                if failed
                else record
            )

    monkeypatch.setattr(kvbench.runner, "launch", late)
    rows = output_of(capsys, "machine", "--quick", code=4).splitlines()
    assert any(row.startswith("! fewer launches") for row in rows)
    assert all("!" in row for row in rows if row.startswith("  triad"))
    assert not any("!" in row for row in rows if row.startswith("  read"))


def test_a_made_up_machine_is_told_from_the_one_that_is_measured(made_up, monkeypatch, capsys):
    """Its numbers are this machine's."""
    monkeypatch.setattr(Files, "live", False)
    assert "rates are measured on this machine" in errors_of(capsys, "machine", "--quick", code=0)


def test_memory_too_small_for_dram_is_said(made_up, monkeypatch, capsys):
    monkeypatch.setattr(kvbench.machine, "available_memory", lambda files=None: 100 << 20)
    assert "DRAM: not testable, needs 128 MiB" in output_of(capsys, "machine", "--quick")


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(made_up, capsys):
    (made_up / "file").write_text("")
    for place in (made_up, made_up / "file" / "machine.json", "/proc/kvbench/machine.json"):
        refused(capsys, "machine", "--quick", "--out", place, words=[str(place)])
