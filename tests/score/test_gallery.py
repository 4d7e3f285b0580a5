"""The page of all machines: comparable rows come first, and unreadable files are named."""

import re
import shutil

import pytest

from kvbench.report.gallery import table as sheet
from kvbench.submission import scored
from tests.cli.test_cli import call
from tests.report.made import READS, decodes, directory, whole
from tests.score import made


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Fifteen machines, as folders and archives, in all states."""
    root = tmp_path_factory.mktemp("results")
    for number in range(3):
        visits = list(
            made.records(made.points(), times=1 + number / 2, wobble=0.15 if number == 1 else 0.01)
        )
        made.run(root / f"own{number}" / "score", visits=visits, run=f"own-{number}")
    for number in range(12):
        source = root / f"own{number % 3}" / "score"
        (root / f"m{number}").mkdir()
        assert (
            call(
                "score",
                "--pack",
                str(source),
                "--out",
                str(root / f"m{number}" / "a.tar.gz"),
                "--name",
                f"M {number}",
            )
            == 0
        )
    shutil.copy(root / "m1" / "a.tar.gz", root / "m1" / "b.tar.gz")
    (root / "m1" / "b.tar.gz").write_bytes(b"spoilt")
    (root / "README.md").write_text("about them")
    return root


def test_all_machines_stand_in_one_table(results, tmp_path, capsys):
    assert call("report", *map(str, sorted(results.iterdir())), "--out", str(tmp_path)) == 0
    page, said = (tmp_path / "index.html").read_text(), capsys.readouterr()
    assert len(re.findall("<tr", page)) == 16 and "scores of 15 machines" in said.out
    assert "b.tar.gz is left out" in said.err and "b.tar.gz is left out" in page
    assert said.err.count("\n") == 1 and "README" not in said.err, (
        "results/* names other files, too"
    )
    assert "Valid means consistent, not true" in page
    assert all(f"M {number}" in page for number in range(12))


def test_what_counts_comes_first(results):
    found = [scored(results / f"own{number}" / "score") for number in range(3)]
    table = sheet(
        [*found, scored(made.run(results / "x" / "score", list(made.points())[:2], longer=False))]
    )
    states = [row[table.heads.index("state")].text for row in table.rows]
    assert states == ["valid", "noisy", "valid", "invalid"]
    rates = [row[table.heads.index("16 bits, tuned")].order for row in table.rows]
    assert rates[0] > rates[1] and "0 kernels in one run" in table.rows[-1][-1].text


def test_runs_without_a_score_are_reported_as_before(results, tmp_path):
    points = [*decodes()[:1], *READS[:2]]
    run = directory(tmp_path / "run", whole(points, 2), points)
    assert call("report", str(run), str(results / "m0"), "--out", str(tmp_path / "out")) == 0
    assert (tmp_path / "out" / "scores.html").exists() and "ceiling" in (
        tmp_path / "out" / "index.html"
    ).read_text()
