"""A test that runs out of time reports that."""

import subprocess
import sys

from tests.raw import ROOT

LATE = """
import subprocess, sys
def test_late():
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.1)
def test_wrong():
    assert 1 == 2
"""


def test_a_time_limit_is_told_apart_from_a_wrong_answer(tmp_path):
    (tmp_path / "test_it.py").write_text(LATE)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    late, wrong = done.stdout.split("test_wrong", 1)
    assert "A time limit ran out" in late and "% busy, load " in late
    assert "2 failed" in wrong and "time limit" not in wrong
