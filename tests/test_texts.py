"""Texts from others: nothing that is printed or written makes a terminal, browser or spreadsheet
obey.
"""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from kvbench.cli import _progress
from kvbench.exports import kinds
from kvbench.model import Fact
from kvbench.texts import cell, csv_text, printable, shown, table_csv
from tests.cli.test_cli import call, output_of
from tests.report import made

EVIL = "=1+\x1b]0;owned\x07\x9b31m \u202etxt.\u2066exe\r\x85\x00\u2028ü 中<script>alert(1)</script>"
NAME = EVIL.replace("\x00", "").replace("/", "")  # as a file may be called


def assert_tame(text):
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)


def test_shown():
    text = "a\r\tb\n\x1b[31m\u2028c\xa0 \u202ed \ud800 Zoé 中 🚀 →\n"
    assert shown(text) == "a  b\n\\x1b[31m c  \\u202ed \\ud800 Zoé 中 🚀 →\n"
    assert printable(text) == "a b \\x1b[31m c \\u202ed \\ud800 Zoé 中 🚀 →"


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1-1", "@x", "\t=1", "\r=1", "＝1"])
def test_a_formula_becomes_text(text):
    want = f"'{text.strip()}"
    assert cell(text) == want
    assert list(csv.reader(io.StringIO(csv_text([[text, 1]])))) == [[want, "1"]]
    assert (
        table_csv(pd.DataFrame({text: [text, None], "n": [-1.5, 2]}))
        == f"{want},n\n{want},-1.5\n,2.0\n"
    )


@pytest.mark.parametrize("value", [-1.5, None, True, "-1.5", "+1e9", "-inf", "-", "a=b", ""])
def test_what_is_no_formula_stays(value):
    assert cell(value) is value


def test_a_bar_takes_no_markup(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert list(
        _progress.follow([1, 2], lambda: 2, lambda _: 1, lambda _: f"[/red] [bold]{EVIL}")
    ) == [1, 2]
    assert "\x07" not in capsys.readouterr().err


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of a machine whose every text is hostile."""
    machine = replace(made.NAMED, facts={"brand": Fact(EVIL, EVIL, "high", EVIL)}, warnings=(EVIL,))
    checks = [replace(made.CHECKS[0], value=EVIL, why=EVIL, advice=EVIL)]
    texts = {
        "suite": NAME,
        "question": EVIL,
        "command": EVIL,
        "versions": {"kvbench": EVIL, "hostname": EVIL},
    }
    points = [*made.decodes()[:2], *made.READS[:2]]
    records = [*made.whole(points, 3), made.failed(3, points[1], EVIL)]
    root = tmp_path_factory.mktemp("runs") / NAME
    return [
        str(
            made.directory(
                root / name, records, points, 4, machine, checks, run=f"{EVIL}{name}", **texts
            )
        )
        for name in ("a", "b")
    ]


def test_a_report(runs, tmp_path, capsys):
    asked = [
        [runs[0], "-o", str(tmp_path / NAME)],
        [*runs, "--format", "md"],
        [*runs, "--format", "csv"],
    ]
    for arguments in asked:
        assert call("report", *arguments) == 0
        printed = capsys.readouterr()
        assert_tame(printed.out + printed.err)
    assert {cells[0] for cells in csv.reader(io.StringIO(printed.out))} == {
        "run",
        *(cell(f"{EVIL}{n}") for n in "ab"),
    }
    texts = [
        path for path in (tmp_path / NAME).rglob("*") if path.suffix in (".html", ".svg", ".csv")
    ]
    assert len(texts) > 4
    for path in texts:
        assert_tame(path.read_text())
        assert "<script>alert" not in path.read_text() or path.suffix == ".csv"
    assert json.loads(output_of(capsys, "report", runs[0], "--format", "json"))["run"] == f"{EVIL}a"


def test_a_comparison_and_a_history(runs, tmp_path, capsys):
    exports = [f"--export={kind}={tmp_path / kind}" for kind in kinds()]
    assert call("compare", *runs, *exports) in (0, 3)
    root = str(Path(runs[0]).parent)
    assert call("history", "show", "--root", root, "--report", str(tmp_path / "page")) == 0
    assert call("history", "export", "--root", root) == 0
    printed = capsys.readouterr()
    assert_tame(printed.out + printed.err)
    for path in (*(tmp_path / kind for kind in kinds()), tmp_path / "page" / "index.html"):
        assert_tame(path.read_text())


@pytest.mark.parametrize(
    "asked", [["report"], ["history", "show", "--root"], ["sweep"], ["compare", "x"], ["size"]]
)
def test_a_complaint(asked, capsys):
    assert call(*asked, f"{NAME}.toml") == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1
    assert_tame(err)


def test_figures_ask_for_no_screen_and_no_home(tmp_path):
    """And Matplotlib's complaints about that are not shown."""
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "/dev/null")
    command = [
        sys.executable,
        "-m",
        "kvbench.cli",
        "size",
        "qwen3-0.6b",
        "--plot",
        str(tmp_path / "x.png"),
    ]
    surroundings = {"PATH": os.environ["PATH"], "MPLBACKEND": "nonsense", **nowhere}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, f"plot: {tmp_path / 'x.png'}\n")


def test_whole_numbers_stay_whole_beside_what_is_missing():
    table = pd.DataFrame(
        {
            "count": [1.0, None, 1e9],
            "rate": [1.0, None, 0.5],
            "none": [None, None, None],
            "far": [1e30] * 3,
        }
    )
    assert table_csv(table.astype({"none": float})).splitlines() == [
        "count,rate,none,far",
        "1,1.0,,1e+30",
        ",,,1e+30",
        "1000000000,0.5,,1e+30",
    ]
