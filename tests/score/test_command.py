"""kvbench score from its candidates to its lines; nothing is really measured."""

import json
from dataclasses import replace
from unittest.mock import Mock

import pytest

from kvbench.model import Record
from kvbench.model.chases import NONE
from kvbench.store.run import FILES
from tests.chased import IDLE_NS
from tests.cli.test_cli import call, errors_of
from tests.cli.test_exit_codes import unwatched
from tests.score import made


@pytest.fixture
def still(monkeypatch, tmp_path):
    unwatched(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def measuring(launch):
        monkeypatch.setattr("kvbench.runner.launch", launch)

    measuring(made.played)
    return measuring


def chases(point):
    return getattr(point, "chase", NONE) != NONE


def facts(path, capsys):
    capsys.readouterr()
    assert call("score", str(path), "--json") in (0, 3)
    return json.loads(capsys.readouterr().out)


def test_the_fastest_of_each_width_is_measured_anew(still, tmp_path, capsys):
    assert call("score", "--out", str(tmp_path / "run")) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 7 and "VALID" in out.splitlines()[0]
    assert (
        "score: about " in err
        and "fill memory before timing begins" in err
        and "picked decode.flash.head.f16." in err
    )
    found = facts(tmp_path / "run", capsys)
    assert [each["kernel"].split(".")[3] for each in found["figures"]] == ["f16", "i8", "q4_0"]
    assert all(each["base"]["tokens"] < each["tuned"]["tokens"] for each in found["figures"])
    assert {(each["batch"], each["context"]) for each in found["longer"]} == {(8, 4096), (1, 32768)}
    assert found["idle"][0]["kernel"] == found["figures"][0]["kernel"] and found["loaded"]
    assert set(FILES) | {"score.json", "longer", "loaded"} == {
        each.name for each in (tmp_path / "run").iterdir()
    }
    assert call("score", "--out", str(tmp_path / "run")) == 2


def test_a_wrong_kernel_is_not_picked(still, tmp_path, capsys):
    def wrong(job):
        for record in made.played(job):
            bad = record.point.kernel.startswith("decode.flash.head.f16.")
            yield (
                Record(job.launch, record.point, (), {}, {}, error="is off by 1", run=job.plan.run)
                if bad
                else record
            )

    still(wrong)
    assert call("score", "--out", str(tmp_path / "run")) == 0
    assert facts(tmp_path / "run", capsys)["figures"][0]["kernel"].split(".")[2:4] != [
        "head",
        "f16",
    ]


def test_an_interrupted_one_goes_on(still, tmp_path, capsys):
    def interrupted(job):
        if job.launch == 4 and job.plan.run:
            raise KeyboardInterrupt
        yield from made.played(job)

    still(interrupted)
    path = tmp_path / "run"
    assert f"to go on: kvbench score --out {path} --resume" in errors_of(
        capsys, "score", "--out", str(path), code=130
    )
    assert (
        facts(path, capsys)["state"] == "invalid"
        and call("score", "--pack", str(path), "--out", str(path) + ".tar.gz") == 2
    )

    def interrupted_again(job):
        if job.launch == 1 and any(chases(point) for point in job.points):
            raise KeyboardInterrupt
        yield from made.played(job)

    still(interrupted_again)
    assert call("score", "--resume", "--out", str(path)) == 130
    assert (path / "loaded").is_dir() and facts(path, capsys)["state"] == "invalid"
    still(made.played)
    assert call("score", "--resume", "--out", str(path)) == 0
    found = facts(path, capsys)
    assert found["state"] == "valid" and found["idle"][0]["ns"] == pytest.approx(IDLE_NS)


@pytest.mark.parametrize("part", ["longer", "loaded"])
def test_killed_as_a_part_began_it_says_how_to_go_on(part, tmp_path, capsys):
    """Before the run has a machine.json."""
    run = made.run(tmp_path / "run", loaded=True, suite="score", options={"seed": 1})
    (run / "score.json").unlink()
    (run / part / "machine.json").unlink()
    (run / part / "journal.jsonl").write_text("")
    assert call("score", str(run)) == 3
    out = capsys.readouterr().out
    assert "it is not finished: kvbench score --resume" in out


def test_without_a_core_for_the_chase_a_score_is_as_valid(still, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("kvbench.plan.site.chaser", lambda *asked: None)
    path = tmp_path / "run"
    assert "score: no latency beside a load: " in errors_of(
        capsys, "score", "--out", str(path), code=0
    )
    found = facts(path, capsys)
    assert found["state"] == "valid" and not found["idle"] and not (path / "loaded").exists()


def test_without_a_right_kernel_there_is_no_score(still, tmp_path, capsys):
    still(lambda job: (replace(r, samples=(), error="is off by 1") for r in made.played(job)))
    assert (
        "no kernel of 16 bits answers right: is off by 1"
        in errors_of(capsys, "score", "--out", str(tmp_path / "run"), code=4)
        and not (tmp_path / "run").exists()
    )


def test_if_nothing_can_be_written_nothing_is_measured(still, tmp_path, capsys, monkeypatch):
    def measured(job):
        raise AssertionError("this should not have begun")

    still(measured)
    (tmp_path / "file").write_text("")
    assert "cannot write" in errors_of(capsys, "score", "--out", str(tmp_path / "file" / "run"))
    monkeypatch.setattr("kvbench.session.scoring.os.access", lambda path, how: path != tmp_path)
    assert f"cannot write {tmp_path} (name another --out)" in errors_of(
        capsys, "score", "--out", str(tmp_path / "new" / "run")
    )


def test_interrupted_before_there_is_a_run(still, tmp_path, capsys, monkeypatch):
    """There is no run to resume, so the full command is named."""
    still(Mock(side_effect=KeyboardInterrupt))
    path = str(tmp_path / "a run")
    monkeypatch.setattr("sys.argv", ["kvbench", "score", "--out", path])
    said = errors_of(capsys, "score", "--out", path, code=130).splitlines()[-1]
    again = f"to start again: kvbench score --out '{path}'"
    assert said == f"kvbench: interrupted, and nothing was kept; {again}"
    still(made.played)
    assert call("score", "--out", path) == 0
