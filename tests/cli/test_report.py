"""kvbench report as it is called: where it writes, what it prints, how it fails."""

import json
import re
import shlex
import shutil

import pytest

from kvbench.store import RunDirectory
from tests.cli.test_cli import call, errors_of, output_of
from tests.report import made
from tests.report.texts import plain_text

POINTS = [*made.decodes(made.CONTEXTS[:1])[:1], *made.READS[:6]]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made.directory(tmp_path_factory.mktemp("command") / "run", made.whole(POINTS), POINTS)


def test_where_it_writes(run, tmp_path, capsys):
    out = output_of(capsys, "report", str(run))
    assert out.startswith("run mine\n") and out.endswith(f"report: {run}/report/index.html\n")
    assert max(map(len, out.splitlines()[:-1])) <= 120
    assert "Fastest decode" in out and "\n\nreport:" in out
    assert call("report", str(run), "-o", str(tmp_path / "deep" / "er")) == 0
    written = tmp_path / "deep" / "er"
    assert (written / "index.html").read_text() == (run / "report" / "index.html").read_text()
    assert {path.name for path in written.iterdir()} == {"index.html", "figures"}
    assert {path.suffix for path in (written / "figures").iterdir()} == {".svg", ".png", ".csv"}


@pytest.mark.parametrize("name", ["report", "report/figures"])
def test_it_writes_through_no_link_in_a_run(run, name, tmp_path, capsys):
    copy, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("report"))
    elsewhere.mkdir()
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).symlink_to(elsewhere)
    assert (
        f"{copy / name}: it is a link" in errors_of(capsys, "report", str(copy))
        and list(elsewhere.iterdir()) == []
    )


@pytest.mark.parametrize("form", ["md", "json", "csv"])
def test_forms_go_to_a_file_or_to_standard_output(run, form, tmp_path, capsys):
    assert call("report", str(run), "--format", form) == 0
    out, err = capsys.readouterr()
    assert out and not err
    path = tmp_path / "new" / f"it.{form}"
    assert call("report", str(run), "--format", form, "--out", str(path)) == 0
    told = capsys.readouterr()
    assert path.read_text() == out and not told.out and told.err == f"report: {path}\n"


def test_several_runs(run, tmp_path, capsys):
    """Each has a page of its own, with its own ceilings; even the same run twice."""
    faster = [made.measured(launch, point) for launch in range(7) for point in POINTS]
    other = made.directory(tmp_path / "other", faster, POINTS, run="mine", machine=made.MACHINE)
    out = tmp_path / "both"
    lines = output_of(capsys, "report", str(run), str(other), "-o", str(out)).splitlines()
    assert lines[0].startswith("  1  zorglub 9000 64-Core") and lines[1].startswith(
        "  2  a machine without a name"
    )
    assert re.fullmatch(
        r"  memory read +GB/s +[\d.]+ +[\d.]+ \(1\.00x\)",
        next(x for x in lines if "memory read" in x),
    )
    page = (out / "index.html").read_text()
    for place in ("1-mine", "2-mine"):
        assert f'href="{place}/index.html"' in page and (out / place / "index.html").is_file()
    text = plain_text(page)
    assert "zorglub 9000 64-Core" in text and "a machine without a name" in text and "1.00x" in text


def test_the_name_of_a_run_is_no_path(run, tmp_path):
    other = made.directory(tmp_path / "other", made.whole(POINTS), POINTS, run="../an other")
    assert call("report", str(run), str(other), "-o", str(tmp_path / "both")) == 0
    page = (tmp_path / "both" / "index.html").read_text()
    assert (
        tmp_path / "both" / "2-..-an-other" / "index.html"
    ).is_file() and 'href="2-..-an-other/index.html"' in page


def test_while_it_is_being_measured(tmp_path, capsys):
    """The journal is read while its writer is in the middle of a line, and the writer goes on."""
    records = made.whole(POINTS)
    run = made.directory(tmp_path / "run", records[:9], POINTS)
    before = (run / "journal.jsonl").stat().st_size
    with (
        RunDirectory.open(run, write=True) as directory,
        (run / "journal.jsonl").open("ab") as file,
    ):
        file.write(b'{"launch": 1, "poi')
        file.flush()
        found = json.loads(output_of(capsys, "report", str(run), "--format", "json"))
        assert any("is not finished" in sentence for sentence in found["missing"])
        assert call("report", str(run), "--format", "md") == 0
        file.truncate(before)
        directory.append(records[9])
    assert call("report", str(run), "--format", "json") == 0


@pytest.mark.parametrize("more", [[], ["--redact"]], ids=["shown", "redacted"])
def test_an_unfinished_run_ends_in_the_command_that_finishes_it(tmp_path, capsys, more):
    path = made.directory(tmp_path / "it's mine", made.whole(POINTS)[:3], POINTS)
    said = output_of(capsys, "report", str(path), *more).partition("\nreport: ")[0]
    place = "DIR" if more else shlex.quote(str(path))
    assert f"\n  To go on: kvbench sweep --out {place} --resume\n" in said
    assert bool(more) != (str(tmp_path) in said)
