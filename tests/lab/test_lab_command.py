"""kvbench lab as it is called: the list, what it prints and writes, and how it refuses what it
cannot do.
"""

import importlib
import json
import re
import time

import pandas as pd
import pytest

from kvbench.lab.experiment import NAMES, Outcome
from kvbench.report.ruled import Column
from tests.cli.test_cli import call, refused

TABLE = pd.DataFrame(
    {
        "tokens": [1, 2],
        "gbps": [20.5, float("nan")],
        "word": ["fast", "fast"],
        "found": [True, False],
    }
)


def outcome(asked, model: str = "gpt-2", context: int = 64) -> Outcome:
    """Stands for an experiment."""
    time.sleep(0.02)
    columns = (
        Column("tokens", "tokens"),
        Column("gbps", "GB/s", "{:.1f}".format),
        Column("word", "word"),
    )
    return Outcome(TABLE, columns, f"{model} at {context}: two rows.", ("a note",))


@pytest.fixture
def made_up(monkeypatch):
    monkeypatch.setattr("kvbench.lab.quant.experiment", outcome)


def test_the_list(capsys):
    assert call("lab") == 0
    out = capsys.readouterr().out
    for name in NAMES:
        question = importlib.import_module(f"kvbench.lab.{name}").__doc__.splitlines()[0]
        assert f"\n{name}" in f"\n{out}" and question in out and question.endswith("?")
    assert "--model llama-3-8b, --context 4096, --layout head" in out
    assert call("lab", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["experiments"]] == list(NAMES)
    assert found["experiments"][0]["takes"] == {
        "model": "llama-3-8b",
        "context": 4096,
        "layout": "head",
    }


def test_what_is_printed_and_written(made_up, tmp_path, capsys):
    out = tmp_path / "deep" / "lab"
    assert call("lab", "quant", "--context", "128", "--out", str(out)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("quant: model gpt-2, context 128, isa ")
    assert re.search(r", seed 1; \d\S* \S+ in all$", lines[0])
    assert lines[2:5] == ["  tokens  GB/s  word", "       1  20.5  fast", "       2        fast"]
    assert lines[6:] == ["  a note", f"  {out / 'quant.csv'}", "", "gpt-2 at 128: two rows."]
    assert [path.name for path in out.iterdir()] == ["quant.csv"] and pd.read_csv(
        out / "quant.csv"
    ).equals(TABLE)


def test_json(made_up, tmp_path, capsys):
    assert call("lab", "quant", "--json", "--out", str(tmp_path)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["experiment"] == "quant" and found["version"] == 1 and found["notes"] == ["a note"]
    assert found["seconds"] >= 0.02
    assert {"model": "gpt-2", "context": 64, "seed": 1}.items() <= found["asked"].items()
    assert found["rows"] == [
        {"tokens": 1, "gbps": 20.5, "word": "fast", "found": True},
        {"tokens": 2, "gbps": None, "word": "fast", "found": False},
    ]


def test_nobody_waits_for_what_cannot_be_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        "kvbench.lab.quant.experiment", lambda asked, **_: pytest.fail("it was run")
    )
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "lab", "/proc/kvbench"):
        refused(capsys, "lab", "quant", "--out", path)
