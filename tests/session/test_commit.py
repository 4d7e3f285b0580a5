"""The commit of a run: git's where the run was started, or the one given."""

import subprocess

import pytest

from kvbench.session.identity import committed


@pytest.fixture
def git(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"):
        monkeypatch.delenv(name, raising=False)

    def run(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        return subprocess.run(
            ["git", *who, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    return run


def test_git_says_it(git, tmp_path, monkeypatch):
    assert committed(None) == {} and committed("v7") == {"commit": "v7"}
    git("init")
    assert committed(None) == {}
    (tmp_path / "file").write_text("one")
    git("add", ".")
    git("commit", "-m", "rounder\ttiles\n\nand more")
    one = {"commit": git("rev-parse", "HEAD"), "branch": "main", "message": "rounder tiles"}
    assert committed(None) == one == committed("HEAD")
    (tmp_path / "file").write_text("two")
    assert (
        committed(None) == one | {"commit": f"{one['commit']}-dirty"} and committed("main") == one
    )
    git("commit", "-am", "two")
    git("checkout", "--detach", "HEAD")
    monkeypatch.setenv("GITHUB_REF_NAME", "feature")
    assert (committed(None)["branch"], committed("HEAD~1")["commit"]) == ("feature", one["commit"])
    assert committed("--help") == {"commit": "--help"}
