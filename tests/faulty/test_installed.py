"""The example plug-in with an installed wheel: without the source tree, the recipe works as
written.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import kvbench
from kvbench.native import library_path

PACKAGES = Path(np.__file__).parents[1]


def test_the_recipe_works_from_a_wheel(tmp_path):
    """In a wheel, the Python files and what CMake installs are in one folder."""
    wheel, work = tmp_path / "wheel" / "kvbench", tmp_path / "my work"
    work.mkdir()
    source = next(Path(folder) for folder in kvbench.__path__ if Path(folder, "cli").is_dir())
    shutil.copytree(source, wheel, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(library_path().parent, wheel, dirs_exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": f"{wheel.parent}:{PACKAGES}"}

    def called(*words):  # -S: what is installed for development is not looked at
        command = [sys.executable, "-S", "-m", "kvbench.cli", "verify", *words]
        return subprocess.run(
            command, cwd=work, env=environment, capture_output=True, text=True, check=True
        ).stdout

    include = called("--include").strip()
    assert include == str(wheel) and {"abi.h", "kvbench.h"} <= {
        path.name for path in Path(include).iterdir()
    }
    (work / "my.c").write_text(called("--example"))
    compile_it = [
        "cc",
        "-O3",
        "-march=native",
        "-shared",
        "-fPIC",
        "-I",
        include,
        "-o",
        "my.so",
        "my.c",
        "-lm",
    ]
    subprocess.run(compile_it, cwd=work, check=True)
    assert "all well" in called("--quick", "--plugin", "my.so")
