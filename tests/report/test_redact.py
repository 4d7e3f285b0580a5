"""Private facts stand in no file of a redacted report, but in the files of a plain one."""

from dataclasses import replace

import pytest

import kvbench
from kvbench.model import Engine, Fact
from kvbench.report.redact import HIDDEN, redact
from tests.cli.test_cli import call, output_of
from tests.report import made
from tests.report.texts import plain_text

SECRET = made.SECRET


def told(folder):
    """All files that hold the secret, whatever they are."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    return [
        path.name
        for path in files
        if SECRET.encode() in path.read_bytes().lower() + path.name.lower().encode()
    ]


def test_no_file_tells_but_those_of_another(small, both, tmp_path, capsys):
    assert call("report", str(small), "--redact", "-o", str(tmp_path / "out")) == 0
    assert told(tmp_path / "out") == told(both) == []
    assert SECRET not in capsys.readouterr().out
    text = plain_text((tmp_path / "out" / "index.html").read_text())
    assert HIDDEN in text and "Memory" in text and "DRAM" in text
    assert call("report", str(small)) == 0
    assert sorted(told(small / "report")) == ["index.html", "roofline.svg"]
    text = plain_text((small / "report" / "index.html").read_text())
    for word in (" 9000 64-Core", "-7.example", "/core.c"):
        assert SECRET + word in text, word


@pytest.mark.parametrize("form", ["md", "json", "csv"])
def test_no_form_tells(small, form, capsys):
    assert (
        SECRET not in output_of(capsys, "report", str(small), "--redact", "--format", form).lower()
    )
    assert SECRET in output_of(capsys, "report", str(small), "--format", form).lower()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("see /home/me/x.txt for it", f"see {HIDDEN} for it"),
        ("see ~/x and ../y, or ./z/a", f"see {HIDDEN} and {HIDDEN}, or {HIDDEN}"),
        ("from parts/new.toml, and mine.so", f"from {HIDDEN}, and {HIDDEN}"),
        ("/sys/devices/system and /proc/cpuinfo", "/sys/devices/system and /proc/cpuinfo"),
        ("20 GB/s and 4 FLOP/byte, and/or 1/3", "20 GB/s and 4 FLOP/byte, and/or 1/3"),
        ("on host-7, not on host-77", f"on {HIDDEN}, not on host-77"),
        ("on HOST-7.example.org", f"on {HIDDEN}"),
        ("a+/b/c@d/e.so.so, x.sound and /y/z.so.1", f"{HIDDEN}, x.sound and {HIDDEN}.1"),
    ],
)
def test_words(text, left, rich):
    run = kvbench.load(rich)
    manifest = replace(run.manifest, versions={"hostname": "host-7.example.org"})
    machine = replace(run.machine, facts={"sockets": Fact(1, "here", "high", text)}, warnings=())
    assert redact(manifest, machine, (), ())[1].facts["sockets"].note == left


def test_what_is_measured_stays(small):
    run = kvbench.load(small)
    manifest, machine, _, records = redact(run.manifest, run.machine, run.checks, run.records)
    assert manifest.plan.points == run.manifest.plan.points and machine.caches == run.machine.caches
    assert [replace(record, error="") for record in records] == [
        replace(record, error="") for record in run.records
    ]
    assert manifest.command == HIDDEN and manifest.options["seed"] == 7


def test_what_an_engine_was_given_tells_no_path(small):
    run = kvbench.load(small)
    given = replace(run.records[0], flags="isa vec, from /home/me/x.so")
    own = {"ggml": "/home/me/x.so", "numpy": ""}
    engine = Engine("vllm", "1.0", "", "", "/home/me/bin/python")
    plan = replace(run.manifest.plan, peers=own, pythons={"vllm": engine.python})
    manifest = replace(run.manifest, plan=plan, engines=(engine,))
    told, _, _, (record,) = redact(manifest, run.machine, (), [given])
    assert record.flags == f"isa vec, from {HIDDEN}"
    assert told.plan.peers == {"ggml": HIDDEN, "numpy": ""} and told.plan.pythons == {
        "vllm": HIDDEN
    }
    assert told.engines == (replace(engine, python=HIDDEN),)


def test_a_long_word_takes_no_longer_than_many_short_ones(small):
    """A million letters would take half an hour if the pattern could begin at each of them."""
    run = kvbench.load(small)
    machine = replace(run.machine, facts={}, warnings=("x" * 1_000_000, "+@" * 500_000))
    assert redact(run.manifest, machine, (), ())[1] == machine
