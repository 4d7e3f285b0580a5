"""kvbench lab as it is called: the list, what it prints and writes, and how it refuses what it cannot do."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from kvbench.lab import Outcome, about, names
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.ruled import Column
from tests.cli.test_cli import call, refused

TABLE = pd.DataFrame({"tokens": [1, 2], "gbps": [20.5, float("nan")], "word": ["fast", "fast"], "found": [True, False]})


def outcome(asked, model: str = "gpt-2", context: int = 64, cold: float | None = None) -> Outcome:
    """Stands for an experiment."""
    time.sleep(0.02)
    figure = chart("quant", "Made up", "Nothing.", TABLE, (Panel("tokens", "gbps", "tokens", "GB/s"),))
    columns = (Column("tokens", "tokens"), Column("gbps", "GB/s", "{:.1f}".format), Column("word", "word"))
    return Outcome(TABLE, columns, figure, f"{model} at {context}: two rows.", ("a note",))


@pytest.fixture
def made_up(monkeypatch):
    monkeypatch.setattr("kvbench.lab.experiments.quant.experiment", outcome)


def test_the_list(capsys):
    assert call("lab") == 0
    out = capsys.readouterr().out
    for name in names():
        assert f"\n{name}" in f"\n{out}" and about(name) in out and about(name).endswith("?")
    assert "--model qwen3-0.6b, --context 2048, --cold" in out
    assert "None" not in out


def test_the_list_as_json(capsys):
    assert call("lab", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["experiments"]] == names()
    (quant,) = (each for each in found["experiments"] if each["name"] == "quant")
    assert quant["takes"] == {"model": "llama-3-8b", "context": 4096, "layout": "head"}


def test_what_is_printed_and_written(made_up, tmp_path, capsys):
    out = tmp_path / "deep" / "lab"
    assert call("lab", "quant", "--context", "128", "--out", str(out)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "quant: Made up" and lines[1].startswith("  model gpt-2, context 128, isa ")
    assert re.search(r", seed 1; \d\S* \S+ in all$", lines[1]) and "cold" not in lines[1]
    assert lines[3:6] == ["  tokens  GB/s  word", "       1  20.5  fast", "       2        fast"]
    assert lines[7:] == ["  a note", f"  {out / 'quant'}.csv, .svg and .png", "", "gpt-2 at 128: two rows."]
    assert sorted(path.name for path in out.iterdir()) == ["quant.csv", "quant.png", "quant.svg"]
    assert pd.read_csv(out / "quant.csv").equals(TABLE)
    assert (out / "quant.png").read_bytes().startswith(b"\x89PNG") and "<svg" in (out / "quant.svg").read_text()


def test_json(made_up, tmp_path, capsys):
    assert call("lab", "quant", "--json", "--out", str(tmp_path)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["experiment"] == "quant" and found["version"] == 1 and found["notes"] == ["a note"]
    assert found["seconds"] >= 0.02
    assert {"model": "gpt-2", "context": 64, "cold": None, "seed": 1}.items() <= found["asked"].items()
    assert found["rows"] == [
        {"tokens": 1, "gbps": 20.5, "word": "fast", "found": True},
        {"tokens": 2, "gbps": None, "word": "fast", "found": False},
    ]


def test_nobody_waits_for_what_cannot_be_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("kvbench.lab.experiments.quant.experiment", lambda asked, **_: pytest.fail("it was run"))
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "lab", "/proc/kvbench"):
        refused(capsys, "lab", "quant", "--out", path)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "no space left")])
def test_it_leaves_nothing_where_its_folder_was_just_made(monkeypatch, tmp_path, capsys, error):
    def fails(dir):
        assert dir.is_dir()
        raise error

    monkeypatch.setattr("kvbench.cli.measure.lab.TemporaryFile", fails)
    assert call("lab", "quant", "--out", str(tmp_path / "out" / "lab")) != 0
    assert not list(tmp_path.iterdir()) and capsys.readouterr().err.strip().startswith("kvbench: ")


def test_killed_it_leaves_nothing(tmp_path):
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "kvbench.cli", "lab", "users", "--model", "gpt-2", "--out", "out/lab"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | {"TMPDIR": str(tmp_path / "tmp")}, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (tmp_path / "out").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.strip().startswith("kvbench: interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"] and not list((tmp_path / "tmp").iterdir())
