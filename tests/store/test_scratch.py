"""Folders for a while: gone with their process, at the latest when the next one makes its own."""

import os
import subprocess
import sys
import tempfile

import pytest

from kvbench.store.scratch import scratch

HOLD = (
    "import sys; from kvbench.store.scratch import scratch\n"
    "with scratch() as folder: (folder / 'data').write_text('x'); print(folder, flush=True); sys.stdin.read()"
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_what_a_killed_process_left_goes_and_nothing_else(place, monkeypatch):
    names = [".kvbench-scratch-", ".kvbench-scratch-12345678x", "kvbench-run1", "precious"]
    for name in names:
        (place / name).mkdir()
    (place / ".kvbench-scratch-12345678").symlink_to(place / "precious")
    (place / "precious" / "thesis.tex").write_text("x")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD], text=True, **pipes) as held:
        theirs = held.stdout.readline().strip()
        with scratch() as folder:
            (folder / "link").symlink_to(place / "precious")
            assert os.path.exists(f"{theirs}/data")  # its owner is alive
        held.kill()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 12345)
        with scratch():
            assert os.path.exists(theirs)  # it is another user's
    with pytest.raises(KeyboardInterrupt), scratch():
        assert not os.path.exists(theirs)
        raise KeyboardInterrupt
    assert {path.name for path in place.iterdir()} == {".kvbench-scratch-12345678", *names}
    assert (place / "precious" / "thesis.tex").exists()
