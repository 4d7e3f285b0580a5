"""The C check program, built here: its own tests, and cases replayed from a file."""

import shutil
import subprocess
import sys

import pytest

from tests.raw import ROOT

BARE_CPU = "Nehalem"  # x86 without AVX


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A function from CMake options to the built program."""
    cmake = shutil.which("cmake") or shutil.which("cmake", path=str(ROOT / "build" / "venv" / "bin"))
    if not cmake:
        pytest.skip("no cmake")

    def make(*options):
        folder = tmp_path_factory.mktemp("check")
        for command in ([cmake, "-S", str(ROOT / "kernels"), "-B", str(folder), "-DKVB_CHECK=ON", *options],
                        [cmake, "--build", str(folder), "--parallel", "2", "--target", "kvb-check"]):  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        return folder / "kvb-check"

    return make


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cases")
    command = [sys.executable, "-m", "tests.fuzz", "--cases", "120", "--seed", "3", "--write", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return next(folder.iterdir())


def passes(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert ", 0 failed" in done.stdout.splitlines()[-1]
    return done.stdout.splitlines()[-1]


def test_native(build, cases, raw):
    program = build()
    assert passes(program, cases).split(": ")[1].split() == raw.tiers()
    assert passes(program, "--isa", "scalar", cases).endswith(": scalar")
    refused = subprocess.run([program, "--isa", "nonesuch"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "scalar" in refused.stderr


@pytest.mark.full
def test_sanitized(build, cases):
    passes(build("-DKVB_SANITIZE=address,undefined"), cases)


@pytest.mark.full
def test_cpu_without_avx(build, cases):
    emulator = shutil.which("qemu-x86_64")
    if not emulator:
        pytest.skip("no qemu-x86_64")
    program = build("-DCMAKE_EXE_LINKER_FLAGS=-static")
    assert passes(emulator, "-cpu", BARE_CPU, program, cases).endswith(": scalar")


@pytest.mark.full
def test_neon(build, cases):
    emulator = shutil.which("qemu-aarch64")
    if not emulator or not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("no qemu-aarch64, or no compiler for it")
    toolchain = ROOT / "kernels" / "aarch64.cmake"
    program = build(f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_EXE_LINKER_FLAGS=-static")
    assert "neon" in passes(emulator, program, cases)
