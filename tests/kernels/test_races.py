"""ThreadSanitizer over many passes of one cut decode: nobody begins a pass while others still merge
the one before.
"""

import shutil
import subprocess

import pytest

from tests.processes import succeeds
from tests.raw import ROOT

ROOMS = ("base", "cache", "tier", "scalar", "store", "walk", "decode", "probes", "run")


def test_no_thread_runs_ahead_of_a_merge(tmp_path):
    """Of the scalar tier, which is compiled fast; threads meet alike in all."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    sources = [source for room in ROOMS for source in sorted((ROOT / "kernels" / room).glob("*.c"))]
    program = tmp_path / "passes"
    flags = [
        "-O1",
        "-g",
        "-pthread",
        "-fsanitize=thread",
        "-w",
        "-D_GNU_SOURCE",
        "-I",
        ROOT / "kernels",
    ]
    command = [
        compiler,
        *flags,
        ROOT / "tests" / "kernels" / "passes.c",
        *sources,
        "-o",
        program,
        "-lm",
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and "tsan" in built.stderr:
        pytest.skip("no ThreadSanitizer")
    assert built.returncode == 0, built.stderr
    # or its memory has no place in some kernels
    still = ["setarch", "-R"] if shutil.which("setarch") else []
    succeeds([*still, program], timeout=120)
