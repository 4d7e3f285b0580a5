"""What make prints while it works: from the first second, with times, and why it fails."""

import os
import re
import subprocess

import pytest

from tests.raw import ROOT

PIP = """\
Processing /a folder/kvbench
Collecting numpy>=1.26 (from kvbench==1.0.0)
  Processing /wheels/scipy-1.17.1-cp311.whl (from kvbench==1.0.0)
  *** Building project with Ninja...
  [1/44] Building C object CMakeFiles/base.dir/base/check.c.o
  [44/44] Linking C shared library libkvbench.so
"""


def made(tmp_path, said, code, target="wheel", **variables):
    """Run make with a pip that prints `said` and ends with `code`."""
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "Makefile").write_text((ROOT / "Makefile").read_text())
    python = folder / "fake" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\ncat <<'END'\n{said}END\nexit {code}\n")
    python.chmod(0o755)
    words = [f"{name}={value}" for name, value in variables.items()]
    own = {name: word for name, word in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", target, "BIN=fake", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env=own,  # it is no part of a make that runs the tests
    )


def test_each_step_is_said_with_its_time(tmp_path):
    done = made(tmp_path, PIP, 0)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(re.match(r"\[\d+:\d\d\] ", line) for line in lines), lines
    assert "the C library" in lines[0]
    assert lines[1].endswith("package 1: numpy>=1.26")  # the rest comes within three seconds
    assert (tmp_path / "a b" / "build" / "wheel.log").read_text().startswith(PIP)


def test_a_c_file_is_counted(tmp_path):
    only = [line for line in PIP.splitlines() if "C object" in line]
    done = made(tmp_path, "\n".join(only) + "\n", 0)
    assert done.stdout.splitlines()[1].endswith("C file 1 of 44: base/check.c.o")


def test_installing_is_said(tmp_path):
    done = made(tmp_path, "Installing collected packages: scipy, numpy\n", 0)
    assert done.stdout.splitlines()[1].endswith("installing packages")


def test_if_pip_fails_its_last_lines_are_shown(tmp_path):
    done = made(tmp_path, PIP + "error: no space left\n", 1)
    assert done.returncode
    assert "error: no space left" in done.stdout + done.stderr


@pytest.mark.parametrize("lacking", ["gcc-aarch64-linux-gnu", "qemu-user libc6-dev-arm64-cross"])
def test_wheels_name_what_they_need_before_they_begin(lacking, tmp_path):
    done = made(tmp_path, PIP, 0, target="wheels", CROSS=lacking)
    assert done.returncode
    assert f"apt install {lacking} (Debian)" in done.stderr
    assert "package" not in done.stdout
