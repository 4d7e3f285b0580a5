"""Lines of a decode, as valgrind's simulator of caches counts them: no formula, and no trace, is asked.

The simulated caches are small and the same everywhere. A decode is run once by the scalar tier after its cache was
thrown out, and its misses of the last level, less those of the same program without it, are the lines it touches.
"""

import re
import shutil
import subprocess

import pytest

from tests.raw import ROOT, library_path

CLOSE = 0.02
CACHES = ("--I1=32768,8,64", "--D1=16384,8,64", "--LL=262144,8,64")
# Which lines meet in a simulated set hangs on their addresses: the same in every run, where the system allows that.
STILL = ["setarch", "-R"] if shutil.which("setarch") else []
SHAPES = [  # layout, dtype, KV heads, query heads of each, D, context: a few times the last level
    ("head", "f16", 2, 4, 64, 1500),
    ("position", "f32", 3, 1, 40, 700),
    ("paged", "i8", 2, 2, 128, 2600),
    ("blockt", "f16", 2, 2, 72, 1300),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind: apt install valgrind")
    path, library = tmp_path_factory.mktemp("lines") / "lines", library_path()
    source = ROOT / "tests" / "kernels" / "lines.c"
    command = [compiler, "-O1", "-Wall", "-Wextra", "-I", ROOT / "kernels", source, "-o", path, library]
    folder = library.rpartition("/")[0]
    done = subprocess.run([*command, f"-Wl,-rpath,{folder}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


def run(program, tmp_path, *arguments) -> tuple[int, int]:
    """Lines that the library tells, and read misses of the simulated last level."""
    log = tmp_path / f"log{arguments[-1]}"
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *CACHES, f"--log-file={log}"]
    command = [*STILL, *valgrind, f"--cachegrind-out-file={tmp_path / 'out'}", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + log.read_text()
    reads = re.search(r"LLd misses:.*\(\s*([\d,]+) rd", log.read_text())
    return int(done.stdout), int(reads[1].replace(",", ""))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: ".".join(map(str, shape)))
def test_a_decode_misses_the_lines_it_touches(program, tmp_path, shape):
    told, with_it = run(program, tmp_path, *shape, 1)
    _, without = run(program, tmp_path, *shape, 0)
    assert with_it - without == pytest.approx(told, rel=CLOSE)
