"""A process with little memory or few open files: one line that says so, and never an internal
error."""

import resource
import subprocess
import sys
from unittest.mock import Mock

import pytest

from tests.cli.test_cli import errors_of
from tests.report import made

POINTS = made.READS[:1]
LIMITS = {
    "memory": (MemoryError(), "not enough memory", "ulimit -v"),
    "memory of the system": (
        OSError(12, "Cannot allocate memory"),
        "not enough memory",
        "ulimit -v",
    ),
    "library": (
        ImportError("x.so: failed to map segment from shared object"),
        "not enough memory",
        "ulimit -v",
    ),
    "files": (OSError(24, "Too many open files", "/x/y"), "/x/y: Too many open files", "ulimit -n"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made.directory(tmp_path_factory.mktemp("limits") / "run", made.whole(POINTS, 1), POINTS)


@pytest.mark.parametrize("name", LIMITS)
def test_what_the_system_does_not_give_is_said(name, run, monkeypatch, capsys):
    error, *words = LIMITS[name]
    monkeypatch.setattr("kvbench.results.load", Mock(side_effect=error))
    err = errors_of(capsys, "report", str(run), "--format", "json", code=5)
    assert err.count("\n") == 1 and all(word in err for word in words)


def test_few_open_files_are_named_where_a_run_is_read(run, monkeypatch, capsys):
    fails = Mock(side_effect=OSError(24, "Too many open files"))
    monkeypatch.setattr("kvbench.named.opened", fails)
    err = errors_of(capsys, "report", str(run), "--format", "json")
    assert "manifest.json: Too many open files (allow more open files: ulimit -n 1024)" in err


def test_with_little_address_space(run):
    """The command succeeds, or one line says that memory does not suffice."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (400_000_000, 400_000_000))
    command = [sys.executable, "-m", "kvbench.cli", "report", str(run), "--format", "json"]
    ended = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, timeout=120)
    assert (
        ended.returncode in (0, 5)
        and "internal error" not in ended.stderr
        and "Traceback" not in ended.stderr
    )
    assert ended.returncode == 0 or "not enough memory" in ended.stderr
