"""Lines and loads of a decode, as valgrind counts them: without a formula or a trace.

The simulated caches are small and the same everywhere. A decode is run once by the scalar tier
after its cache was thrown out, and its misses of the last level, less those of the same program
without it, are the lines it touches.

Loads are those of the best tier that valgrind runs, one by one: of whole tiles, so that none is
rounded up. Rows that are no whole vectors are loaded with some of their padding.
"""

import re
import shutil
import subprocess

import pytest

CLOSE = 0.02
CACHES = ("--I1=32768,8,64", "--D1=16384,8,64", "--LL=262144,8,64")
# Which lines share a simulated set depends on their addresses. They are the same in every run if
# the system allows that.
SOURCE = "lines.c"  # the sources of `program`
STILL = ["setarch", "-R"] if shutil.which("setarch") else []
# layout, dtype, KV heads, query heads of each, D, context: with so many lines that the few other
# lines of a call do not matter
SHAPES = [
    ("head", "f16", 2, 4, 64, 3000),
    ("position", "f32", 3, 1, 40, 1400),
    ("paged", "f16+i8", 2, 2, 128, 2600),
    ("blockt", "f16", 2, 2, 72, 2600),
    ("block16", "q4_0", 2, 2, 96, 4200),
]

# layout, dtype, KV heads, query heads of each, D, context: whole steps and a partial one;
# variant; tier, scheme
LOADS = [
    ("head", "i8", 1, 3, 128, 304, "flash"),
    ("head", "i8", 2, 5, 128, 304, "twopass"),
    ("head", "i8", 1, 5, 128, 304, "dot"),
    ("blockt", "i8", 1, 5, 128, 304, "dot"),
    ("position", "f32", 3, 1, 128, 304, "flash", "best", "stream"),
    ("position", "f32", 3, 1, 128, 304, "twin", "scalar", "stream"),
    ("head", "f16", 2, 4, 128, 304, "twin", "best", "stream"),
    ("blockt", "i8", 2, 4, 128, 304, "twin", "best", "stream"),
    ("head", "f32", 1, 3, 33, 304, "flash"),
    ("position", "i8", 2, 3, 33, 304, "flash"),
    ("head", "e4m3", 1, 12, 20, 304, "flash"),
    ("head", "f16", 1, 3, 33, 304, "perhead"),
    ("head", "f32", 1, 3, 33, 304, "twin.perhead", "best", "off"),
    ("head", "q8_0", 2, 3, 96, 304, "twin", "best", "off"),
    ("head", "f32+i8", 1, 12, 33, 304, "flash"),
    ("block16", "i8+q8_0", 1, 2, 40, 304, "dot"),
    ("block16", "q8_0", 2, 3, 96, 304, "twin", "best", "weave"),
]
MORE = [  # for full runs: valgrind takes two seconds for each
    ("head", "i8", 1, 12, 128, 304, "flash"),
    ("blockt", "i8", 1, 12, 128, 304, "flash"),
    ("head", "i8", 1, 12, 128, 304, "dot"),
    ("position", "f16", 3, 1, 128, 448, "flash", "best", "stream"),
    ("position", "f32", 3, 8, 128, 304, "twin", "best", "stream"),
    ("paged", "f16", 2, 4, 128, 304, "twin", "best", "weave"),
    ("head", "i8", 2, 4, 128, 304, "twin", "scalar", "weave"),
    ("head", "f16", 2, 5, 20, 304, "flash"),
    ("paged", "bf16", 1, 4, 8, 304, "flash"),
    ("head", "f16", 1, 3, 40, 304, "perhead"),
    ("head", "i8", 1, 5, 40, 304, "dot"),
    ("blockt", "bf16", 1, 1, 33, 304, "flash"),
    ("blockt", "i8", 2, 2, 33, 304, "flash"),
    ("head", "f16", 2, 3, 40, 304, "twin", "best", "weave"),
    ("head", "q4_0", 2, 3, 64, 304, "twin.perhead", "best", "off"),
    ("blockt", "i8+q4_0", 1, 5, 64, 304, "dot"),
    ("block16", "q4_0+i8", 1, 5, 128, 304, "dot"),
    ("block16", "e4m3", 2, 3, 40, 304, "twin", "best", "stream"),
]


def run(program, tmp_path, *arguments) -> tuple[int, int]:
    """Return the lines that the library states, and the read misses of the simulated last level."""
    log = tmp_path / f"log{arguments[-1]}"
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *CACHES, f"--log-file={log}"]
    command = [
        *STILL,
        *valgrind,
        f"--cachegrind-out-file={tmp_path / 'out'}",
        program,
        *map(str, arguments),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + log.read_text()
    reads = re.search(r"LLd misses:.*\(\s*([\d,]+) rd", log.read_text())
    return int(done.stdout), int(reads[1].replace(",", ""))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: ".".join(map(str, shape)))
def test_a_decode_misses_the_lines_it_touches(program, tmp_path, shape):
    told, with_it = run(program, tmp_path, *shape, 1)
    _, without = run(program, tmp_path, *shape, 0)
    assert with_it - without == pytest.approx(told, rel=CLOSE)


def loads(program, tmp_path, *arguments) -> tuple[list[tuple[int, int]], int]:
    """Return (offset in the KV cache, bytes) of every load from it, and the bytes of all loads that
    the library states.
    """
    log = tmp_path / "log"
    # else the compiler leaves out unused loads in unrolled loops
    every = "--vex-iropt-register-updates=allregs-at-each-insn"
    valgrind = ["valgrind", "--tool=lackey", "--trace-mem=yes", every, f"--log-file={log}"]
    command = [*STILL, *valgrind, program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    start, size, told = map(int, done.stdout.split())
    found = []
    with log.open() as lines:
        for line in lines:
            if line.startswith((" L ", " M ")):
                address, wide = line[3:].split(",")
                if start <= int(address, 16) < start + size:
                    found.append((int(address, 16) - start, int(wide)))
    return found, told


CASES = [
    pytest.param(shape, marks=marks, id=".".join(map(str, shape)))
    for shapes, marks in ((LOADS, []), (MORE, [pytest.mark.full]))
    for shape in shapes
]


@pytest.mark.parametrize("shape", CASES)
def test_a_decode_loads_the_bytes_it_tells(program, tmp_path, shape):
    isa, scheme = shape[7:] or ("best", "off")
    found, told = loads(program, tmp_path, *shape[:6], "1", shape[6], isa, scheme)
    assert sum(wide for _, wide in found) == told


@pytest.mark.parametrize("scheme", ["off", "weave", "stream"])
@pytest.mark.parametrize("dim", [64, 80])  # rows of whole lines, and of two and a half
def test_the_twin_reads_the_cells_of_transposed_k(program, tmp_path, dim, scheme):
    """In a block of 16 rows the cells with elements come first. The padding after them is not
    read.
    """
    found, _ = loads(
        program, tmp_path, "blockt", "f16", 1, 1, dim, 560, "1", "twin", "best", scheme
    )
    block, cells = 16 * (-(-dim * 2 // 64) * 64), 16 * dim * 2
    lines = {place // 64 for place, _ in found if place < 560 // 16 * block}
    assert lines == {
        (at + byte) // 64
        for at in range(0, 560 * block // 16, block)
        for byte in range(0, cells, 64)
    }
