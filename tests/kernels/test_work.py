"""Work of probes that compute, in instructions that valgrind counts, without a clock."""

import re
import subprocess

import pytest

SOURCE = "work.c"  # the sources of `program`
STEPS = 30_000


def counted(program, *arguments) -> tuple[int, float]:
    """Return the instructions of the whole program, and the FLOPs that the probe states."""
    command = ["valgrind", "--tool=lackey", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return int(re.search(r"guest instrs:\s+([\d,]+)", done.stderr)[1].replace(",", "")), float(
        done.stdout
    )


def grown(program, *arguments) -> tuple[float, float]:
    """Return instructions and FLOPs of a step: twice the steps, less once the steps."""
    (few, less), (many, more) = (
        counted(program, *arguments, steps) for steps in (STEPS, 2 * STEPS)
    )
    return (many - few) / STEPS, (more - less) / STEPS


def test_a_step_of_the_clock_is_an_addition(program):
    each, _ = grown(program, "clock", "scalar")
    assert 1 <= each < 1.1


def test_flops_are_multiply_adds(program):
    """A round of AVX2 has an instruction for each 16 FLOPs, and few for the loop."""
    each, flops = grown(program, "flops", "avx2")
    assert flops / 16 <= each <= flops / 16 + 4


def test_products_of_bf16_are_made_anew_in_each_round(program):
    """In plain C an instruction does at most four FLOPs."""
    each, flops = grown(program, "dot16", "scalar")
    assert flops / 4 <= each <= flops
