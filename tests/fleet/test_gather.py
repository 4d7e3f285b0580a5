"""Collected runs: what is copied, and that an unusable run does not affect the others."""

import json
import os

import pytest

from kvbench.errors import BadRun, Unwritable
from kvbench.fleet import gather
from kvbench.results import load
from tests.cli.test_cli import call, errors_of
from tests.report import made

POINTS = made.READS[:2]


@pytest.fixture
def brought(tmp_path):
    """Three runs, of hosts a, b and c."""
    for host in "abc":
        path = made.directory(
            tmp_path / "there" / host, made.whole(POINTS, 2), POINTS, run=f"run-{host}"
        )
        facts = json.loads((path / "manifest.json").read_text())
        facts["versions"]["hostname"] = host
        (path / "manifest.json").write_text(json.dumps(facts))
    return tmp_path / "there"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def spoil(path, kind, secret):
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        os.mknod(path, 0o020600, os.makedev(1, 9))


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_only_ordinary_files_are_copied(brought, tmp_path, capsys, kind):
    """A missing file that can be made again is left out; without any other file the run is
    refused.
    """
    if kind == "device" and os.getuid():
        pytest.skip("only root makes devices")
    (tmp_path / "secret").write_text("secret")
    spoil(brought / "a" / "run.json.gz", kind, tmp_path / "secret")
    spoil(brought / "b" / "machine.json", kind, tmp_path / "secret")
    err = errors_of(
        capsys, "fleet", "--from", str(brought), "--out", str(tmp_path / "out"), code=0
    ).splitlines()
    assert names(tmp_path / "out") == ["a", "c"]
    assert names(tmp_path / "out" / "a") == ["journal.jsonl", "machine.json", "manifest.json"]
    assert len(err) == 2 and all(
        line.startswith("left out: ") and f"it is a {kind}" in line for line in err
    )
    assert (
        str(brought / "a" / "run.json.gz") in err[0]
        and str(brought / "b" / "machine.json") in err[1]
    )
    assert all(
        b"secret" not in path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    )


def test_a_damaged_run_costs_no_other_run(brought, tmp_path, capsys):
    (brought / "b" / "manifest.json").write_text("{")
    assert call("fleet", "--from", str(brought), "--out", str(tmp_path / "out")) == 0
    assert names(tmp_path / "out") == ["a", "c"] and "b/manifest.json" in capsys.readouterr().err
    for host in "ac":
        (brought / host / "manifest.json").unlink()
    with pytest.raises(BadRun, match="b/manifest.json"):
        gather([brought], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_full_disk_is_one_line_and_leaves_no_half_run(brought, tmp_path, monkeypatch):
    sync = os.fsync

    def full(file):
        if os.readlink(f"/proc/self/fd/{file}").endswith("journal.jsonl"):
            raise OSError(28, "No space left on device")
        sync(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(Unwritable) as raised:
            gather([brought], tmp_path / "out")
    text = str(raised.value)
    assert (
        "No space left on device (make room; then gather again)" in text
        and "\n" not in text
        and "[" not in text
    )
    assert not (tmp_path / "out").exists()


def test_leftovers_of_a_killed_gather_do_no_harm(brought, tmp_path):
    half = tmp_path / "out" / ".gathering"
    half.mkdir(parents=True)
    (half / "manifest.json").write_text((brought / "a" / "manifest.json").read_text())
    found = gather([brought, tmp_path / "out"], tmp_path / "out")
    assert [path.name for path in found] == ["a", "b", "c"] == names(tmp_path / "out")
    assert all(len(load(path).records) == 4 for path in found)
    assert gather([brought], tmp_path / "out") == found
