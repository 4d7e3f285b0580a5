"""The C check program: its own tests, and cases replayed from a file."""

import platform
import re
import shutil
import subprocess
import sys

import pytest

from tests.processes import succeeds
from tests.raw import ROOT, library_path

EMULATOR = shutil.which("qemu-x86_64")
BARE_CPU = "Nehalem"  # x86 without AVX


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Return a function that builds the program with CMake options."""
    cmake = shutil.which("cmake") or shutil.which(
        "cmake", path=str(ROOT / "build" / "venv" / "bin")
    )
    if not cmake:
        pytest.skip("no cmake")

    def make(*options):
        folder = tmp_path_factory.mktemp("check")
        for command in (
            [cmake, "-S", str(ROOT / "kernels"), "-B", str(folder), "-DKVB_CHECK=ON", *options],
            [cmake, "--build", str(folder), "--parallel", "2", "--target", "kvb-check"],
        ):
            succeeds(command, timeout=600)
        return folder / "kvb-check"

    return make


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """Link the program with the installed library: it calls only the public interface."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("linked")
    program, plugin, library, kernels = (
        folder / "kvb-check",
        folder / "plugin.o",
        library_path(),
        ROOT / "kernels",
    )
    flags = [compiler, "-O1", "-Wall", "-Wextra", "-I", kernels]
    other = [
        *flags,
        "-Dkvb_kernels=plugin_kernels",
        "-c",
        kernels / "example" / "plugin.c",
        "-o",
        plugin,
    ]
    ends = [plugin, library, f"-Wl,-rpath,{library.rpartition('/')[0]}", "-pthread", "-lm"]
    for command in (other, [*flags, *(ROOT / "tests" / "check").glob("*.c"), "-o", program, *ends]):
        subprocess.run(command, check=True)
    return program


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cases")
    command = [
        sys.executable,
        "-m",
        "tests.fuzz",
        "--cases",
        "120",
        "--seed",
        "3",
        "--write",
        str(folder),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return next(folder.iterdir())


def passes(*command):
    """Run the program, and return the tiers that ran."""
    done = succeeds([str(part) for part in command], timeout=1800)
    assert ", 0 failed" in done.stdout.splitlines()[-1]
    return done.stdout.splitlines()[-1].split(": ")[1].split()


def code(*command):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    ).returncode


def test_native(linked, cases, raw):
    program = linked
    assert passes(program, cases) == raw.tiers()
    assert passes(program, "--isa", "scalar", "--only", "codes", cases) == ["scalar"]
    refused = subprocess.run(
        [program, "--isa", "scalar,nonesuch"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2 and "nonesuch" in refused.stderr and "scalar" in refused.stderr
    assert code(program, "--only", "tiers", "--isa", "scalar", "--refuses", "scalar") == 1
    assert code(program, "--only", "tiers", "--isa", "scalar", "--refuses", "nonesuch") == 1
    assert code(program, "--isas", "scalar") == code(program, "--only", "nothing") == 2
    assert code(program, "--only", "tiers", "--isa", "scalar") == 0


def test_every_instruction_of_the_tier_is_spelled_out():
    """A missing instruction would fail the build of the emulated tier, which takes minutes and is
    not part of this run.
    """
    emulated, used = (
        "".join(header.read_text() for header in ROOT.glob(headers))
        for headers in ("tests/check/emulated/*.h", "kernels/isa/vec/*_avx512.h")
    )
    spelled = re.findall(r"(?:#define|zmm|void|__m\w+|WIDEN\()\s?(_mm512_\w+)", emulated)
    assert set(re.findall(r"_mm512_\w+", used)) == set(spelled)
    by_hand = re.findall(r"(v_\w+)\([^)]*\)\s*\{[^}]*__asm__", used)
    assert set(by_hand) == set(re.findall(r"#define (v_\w+) \1_zmm", emulated))


@pytest.mark.parametrize("cpu", ["generic", "neoverse-n1", "neoverse-v1"])
def test_dot_products_leave_an_arm_compiler_its_instructions(tmp_path, cpu):
    """The compiler may still use any instruction of its target after them, such as those of SVE."""
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if not compiler:
        pytest.skip("no compiler for Arm")
    source = tmp_path / "unit.c"
    source.write_text("""
        #include <math.h>
        #include <string.h>
        #include "tier/tier.h"
        #include "isa/vec/vec_neon.h"
        vi dots(vi a, vi b, vi c)
        {
            v_dot_codes_into(&a, b, c, false);
            v_dot_weights_into(&a, b, c);
            return a;
        }
        vf pairs(vf a, vi b, vi c)
        {
            v_dot16_into(&a, b, c);
            return a;
        }
        void add(float *restrict a, const float *restrict b, int64_t n)
        {
            for (int64_t i = 0; i < n; i++) a[i] += b[i];
        }
        """)
    flags = ["-O3", "-Werror", f"-mcpu={cpu}", "-I", ROOT / "kernels"]
    succeeds([compiler, *flags, "-c", "-o", tmp_path / "unit.o", source])


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not EMULATOR, reason="no qemu-x86_64: apt install qemu-user"
)
def test_a_cpu_that_lacks_a_part_of_a_tier_refuses_it(linked):
    """One part of what the avx2 tier needs is missing at a time: vectors, multiply-adds, f16, an
    operating system that saves registers.
    """
    whole = code(EMULATOR, "-cpu", "max", linked, "--only", "tiers", "--isa", "scalar,avx2")
    if whole == 2:
        pytest.skip("this qemu-x86_64 has no AVX2: 7.2 and later do")
    assert whole == 0
    for lacking in ("avx2", "fma", "f16c", "xsave"):
        cpu = [EMULATOR, "-cpu", f"max,-{lacking}", linked, "--only", "tiers"]
        assert code(*cpu, "--isa", "scalar", "--refuses", "avx2") == 0, lacking


@pytest.mark.full
def test_cpu_without_avx(build, cases):
    if not EMULATOR:
        pytest.skip("no qemu-x86_64")
    program = build("-DCMAKE_EXE_LINKER_FLAGS=-static")
    assert passes(EMULATOR, "-cpu", BARE_CPU, program, cases) == ["scalar"]
