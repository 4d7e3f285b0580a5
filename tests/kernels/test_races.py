"""ThreadSanitizer over passes of a cut decode and over two teams at once; and the waits of a load,
by a clock of the test's own.
"""

import shutil
import subprocess

import pytest

from tests.processes import succeeds
from tests.raw import ROOT

ROOMS = ("base", "cache", "tier", "scalar", "store", "walk", "decode", "probes", "run")


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """Return the command of a program. It has only the scalar tier, which compiles fast: threads
    meet and wait in the same way in all tiers.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    sources = [ROOT / "tests" / "kernels" / name for name in ("passes.c", "beside.c")]
    for room in ROOMS:
        sources += sorted((ROOT / "kernels" / room).glob("*.c"))
    program = tmp_path_factory.mktemp("watched") / "passes"
    flags = [
        "-O1",
        "-g",
        "-pthread",
        "-fsanitize=thread",
        "-w",
        "-D_GNU_SOURCE",
        "-Dclock_gettime=own_clock",  # the one of beside.c
        "-I",
        ROOT / "kernels",
    ]
    command = [compiler, *flags, *sources, "-o", program, "-lm"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and "tsan" in built.stderr:
        pytest.skip("no ThreadSanitizer")
    assert built.returncode == 0, built.stderr
    # else some kernels have no room for the sanitizer's memory
    still = ["setarch", "-R"] if shutil.which("setarch") else []
    return [*still, program]


def test_no_thread_runs_ahead_of_a_merge(watched):
    succeeds(watched, timeout=120)


def test_two_teams_at_once(watched):
    """Each load also waits as often and as long as it should."""
    succeeds([*watched, "beside"], timeout=120)
