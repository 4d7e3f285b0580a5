"""kvbench compare as it is called: what it prints, its exit codes, and how it fails."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from kvbench.model import Point
from tests.cli.test_cli import call, output_of, refused
from tests.report import made

PROBES = [probe for probe in made.PROBES if not probe.op.startswith("copy")]
POINTS = [*made.decodes(made.CONTEXTS[:1]), *PROBES]
IDENTITY = {"suite": "s1", "build": "b1", "machine": "m1", "environment": "e1"}
LAUNCHES = 10


def times(factor, record, programs):
    """The record, with `factor` times the seconds for these programs."""
    taken = (
        replace(s, seconds=s.seconds * factor) if s.program in programs else s
        for s in record.samples
    )
    return replace(record, samples=tuple(taken))


def records(launches=LAUNCHES, slower=None, by=1.0, memory=1.0, point_alone=True, points=POINTS):
    """Decodes of layout `slower` take `by` times as long; and everything that walks memory `memory`
    times.
    """
    found = []
    for record in made.whole(points, launches):
        point = record.point
        if point.op != "flops":
            record = times(memory, record, {sample.program for sample in record.samples})
        if isinstance(point, Point) and point.layout == slower:
            record = times(by, record, {"point"})
        found.append(record)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """By name: run directories."""
    folder = tmp_path_factory.mktemp("compare")
    slow = {"slower": "paged", "by": 1.3}
    one = POINTS[:1] + PROBES
    kinds = {
        "base": (records(), {}),
        "again": (records(), {}),
        "noise": (records(slower="paged", by=1.25), {}),
        "slow": (records(**slow), {"build": "b2"}),
        "fast": (records(slower="paged", by=0.7), {"build": "b2"}),
        "few": (records(1), {}),
        "contaminated": (records(**slow, memory=2.0), {"build": "b2"}),
        "elsewhere": (records(), {"machine": "m2"}),
        "updated": (records(memory=1.5), {"environment": "e2"}),
        "other": (records(points=[*made.decodes(made.CONTEXTS[1:2]), *PROBES]), {}),
        "wrong": (
            [
                replace(r, samples=(), error="a wrong answer") if isinstance(r.point, Point) else r
                for r in records()
            ],
            {"build": "b2"},
        ),
        "partly": (
            [
                replace(r, samples=(), error="a wrong answer") if r.point == POINTS[0] else r
                for r in records()
            ],
            {"build": "b2"},
        ),
        "begun": ([r for r in records() if r.point != POINTS[0]], {"build": "b2"}),
        "one": (records(points=one), {}),
    }
    return {
        name: made.directory(
            folder / name,
            own,
            list(dict.fromkeys(r.point for r in own)) if name in ("other", "one") else POINTS,
            LAUNCHES,
            run=f"run-{name}",
            identity=IDENTITY | facts,
        )
        for name, (own, facts) in kinds.items()
    }


# ---- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "head", "word", "gate"),
    [
        ("base", "again", "EQUIVALENT", 0),
        ("base", "slow", "REGRESSION", 1),
        ("slow", "base", "IMPROVEMENT", 0),
        ("base", "fast", "IMPROVEMENT", 0),
        ("base", "few", "INCONCLUSIVE", 3),
        ("base", "contaminated", "CONTAMINATED", 3),
        ("base", "updated", "EQUIVALENT", 0),
        ("base", "partly", "INCONCLUSIVE", 3),
        ("base", "begun", "INCONCLUSIVE", 3),
        ("base", "one", "EQUIVALENT", 0),
    ],
)
def test_exit_codes(runs, capsys, base, head, word, gate):
    """Only with --gate does the exit code tell the verdict."""
    arguments = ["compare", str(runs[base]), str(runs[head])]
    text = output_of(capsys, *arguments)
    assert text.startswith(f"{word}: ") and f"\nhead run-{head} against base run-{base}" in text
    assert (
        json.loads(output_of(capsys, *arguments, "--gate", "--json", code=gate))["verdict"] == word
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["{base}", "{base}"], 6, ["the same run", "run-base"]),
        (["{base}", "{other}"], 6, ["no point in common"]),
        (
            ["{base}", "{wrong}"],
            6,
            ["no point that both runs have can be compared", "a wrong answer"],
        ),
        (["{base}", "{slow}", "--noise", "{elsewhere}"], 6, ["two machines"]),
        (["{base}", "{again}", "--noise", "{slow}"], 6, ["two builds"]),
        (["{base}", "{again}", "--min-effect", "much"], 2, ["much", "1%"]),
        (["{base}", "{again}", "--min-effect", "nan"], 2, ["nan"]),
        (["{base}", "{again}", "--noise", "{base}"], 2, ["--noise", "run-base"]),
        (
            ["{base}", "{again}", "--noise", "{noise}", "--noise", "{noise}"],
            2,
            ["--noise", "run-noise"],
        ),
        (["{base}", "{again}", "--export", "pdf=x"], 2, ["--export", "pdf", "junit"]),
        (["{base}", "{again}", "--export", "junit"], 2, ["--export junit", "junit=FILE"]),
        (["{base}", "{again}", "--export", "junit="], 2, ["junit=FILE"]),
        (["{base}", "{again}", "--export", "junit=-", "--json"], 2, ["--json"]),
    ],
)
def test_what_cannot_be_is_one_line(runs, capsys, arguments, code, words):
    refused(
        capsys,
        "compare",
        *(word.format(**runs) for word in arguments),
        "--gate",
        words=words,
        code=code,
    )


# ---- what it says --------------------------------------------------------------------------------


def test_the_table(runs, capsys):
    assert call("compare", str(runs["base"]), str(runs["slow"])) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert not err and max(map(len, lines)) <= 120
    assert "machine" in out and "m1" in lines[1]
    sides = [
        next(at for at, line in enumerate(lines) if line.startswith(f"  {side}"))
        for side in ("base", "head")
    ]
    table = next(at for at, line in enumerate(lines) if line.split() == ["unit", "base", "head"])
    assert 1 < sides[0] < sides[1] < table and re.search(
        r"memory read +GB/s +[\d.]+ +[\d.]+ \(1\.00x\)", out
    )
    assert table < next(
        at for at, line in enumerate(lines) if "points are 30.0 % slower" in line and at
    )
    assert lines[0].startswith(
        "REGRESSION: all 2 decode.flash.paged.f32 DRAM points are 30.0 % slower ("
    )
    assert re.search("2 decode.flash.head.f32 DRAM points: no change, [+-]", out)
    first = next(line for line in lines if line.startswith("  REGRESSION") and "paged" in line)
    assert "+30.0" in first
    assert "GB/s base → head" in out and "% of base’s" in out
    assert "24 points: 12 REGRESSION, 12 EQUIVALENT" in out
    said = " ".join(out.split())
    assert "its witness (reads of the same rows, a copy or a plain read) in the same" in said
    assert "of base's time: 5.0% for a point" in said


def test_a_point_that_failed_is_said(runs, capsys):
    call("compare", str(runs["base"]), str(runs["partly"]))
    out = capsys.readouterr().out
    assert (
        "not compared: 1 point" in out
        and "failed in 10 of 10 launches of head: a wrong answer" in " ".join(out.split())
    )
    call("compare", str(runs["base"]), str(runs["begun"]))
    assert "never visited in head" in capsys.readouterr().out
    call("compare", str(runs["base"]), str(runs["one"]))
    out = capsys.readouterr().out
    assert "not compared: 23 points" in out and "and 18 more: --json" in out


def test_json(runs, capsys):
    found = json.loads(output_of(capsys, "compare", str(runs["base"]), str(runs["slow"]), "--json"))
    assert (found["version"], found["command"], found["verdict"]) == (1, "compare", "REGRESSION")
    assert (found["base"], found["head"]) == ("run-base", "run-slow")
    assert {"families", "missing", "notes", "machine", "created"} <= found.keys()
    keys = {
        "family",
        "verdict",
        "effect",
        "low",
        "high",
        "p",
        "q",
        "detectable",
        "base_gbps",
        "launches",
        "note",
    }
    names = {point.name for point in POINTS if isinstance(point, Point)}
    assert {row["point"] for row in found["points"]} == names
    for row in found["points"]:
        assert keys <= row.keys()
        paged = row["family"].startswith("decode.flash.paged")
        assert row["effect"] == pytest.approx(0.3 if paged else 0.0, abs=1e-9)
        assert row["verdict"] == ("REGRESSION" if paged else "EQUIVALENT")
        assert row["launches"] == [10, 10]
    for row in found["families"]:
        assert keys <= row.keys() and "point" not in row and row["family"]


def test_the_smallest_effect(runs, capsys):
    assert (
        call("compare", str(runs["base"]), str(runs["slow"]), "--gate", "--min-effect", "29%") == 1
    )
    assert "31.0% for a point" in output_of(
        capsys,
        "compare",
        str(runs["base"]),
        str(runs["slow"]),
        "--gate",
        "--min-effect",
        "31%",
        code=3,
    )


def test_noise_of_other_runs_of_base_is_no_change(runs, capsys):
    """Two runs of one build differ by 25 %, so a point that is 30 % slower is less than 1.5 times
    that.
    """
    assert "37.5% for a family" in " ".join(
        output_of(
            capsys,
            "compare",
            str(runs["base"]),
            str(runs["slow"]),
            "--noise",
            str(runs["noise"]),
            "--gate",
            code=3,
        ).split()
    )
    assert (
        call(
            "compare", str(runs["base"]), str(runs["slow"]), "--noise", str(runs["again"]), "--gate"
        )
        == 1
    )


# ---- exports -------------------------------------------------------------------------------------


def test_exports_go_to_files_and_one_to_standard_output(runs, tmp_path, capsys):
    base, head = str(runs["base"]), str(runs["slow"])
    files = {kind: tmp_path / "new" / kind for kind in ("junit", "markdown", "csv")}
    asked = [word for kind, path in files.items() for word in ("--export", f"{kind}={path}")]
    assert call("compare", base, head, "--gate", *asked) == 1
    out, err = capsys.readouterr()
    assert out.startswith("REGRESSION") and err.splitlines() == [
        f"{kind}: {path}" for kind, path in files.items()
    ]
    assert all(path.read_text() for path in files.values())
    rows = list(
        csv.DictReader(io.StringIO(output_of(capsys, "compare", base, head, "--export", "csv=-")))
    )
    names = {point.name for point in POINTS if isinstance(point, Point)}
    assert names <= {row["name"] for row in rows}
    assert (
        json.loads(
            output_of(
                capsys, "compare", base, head, "--json", "--export", f"junit={files['junit']}"
            )
        )["verdict"]
        == "REGRESSION"
    )


# ---- blessing ------------------------------------------------------------------------------------


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_bless_makes_the_first_baseline(runs, tmp_path, capsys):
    place = tmp_path / "results" / "here"
    assert call("compare", str(place), str(runs["base"]), "--bless") == 0
    assert files(place) == files(runs["base"]) and "baseline" in capsys.readouterr().err
    assert [path.name for path in place.parent.iterdir()] == ["here"]


def test_bless_takes_the_place_of_the_one_before_after_comparing(runs, tmp_path, capsys):
    place = tmp_path / "here"
    assert call("compare", str(place), str(runs["base"]), "--bless") == 0
    assert "REGRESSION" in output_of(
        capsys, "compare", str(place), str(runs["slow"]), "--bless", "--gate", code=1
    ) and files(place) == files(runs["slow"])


def test_bless_refuses_what_cannot_be_a_baseline(runs, tmp_path, capsys):
    place = tmp_path / "here"
    assert call("compare", str(place), str(runs["wrong"]), "--bless") == 2 and not place.exists()
    assert "a wrong answer" in capsys.readouterr().err
    assert call("compare", str(runs["base"]), str(runs["elsewhere"]), "--bless") == 6
    before = files(runs["base"])
    assert (
        call("compare", str(runs["base"]), str(tmp_path / "none"), "--bless") == 2
        and files(runs["base"]) == before
    )
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("keep me")
    assert (
        call("compare", str(mine), str(runs["base"]), "--bless") == 2
        and (mine / "letter.txt").exists()
    )
