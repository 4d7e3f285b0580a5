"""How the build reacts to the given compiler, flags and C library."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.raw import ROOT

FAST = "-Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only -fno-signed-zeros"


def configured(folder, *options, **environment):
    """Configure with CMake: return its exit code, its output, and the commands for each source."""
    cmake = shutil.which("cmake") or str(ROOT / "build" / "venv" / "bin" / "cmake")
    options = ["-G", "Unix Makefiles", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options]
    clean = {
        name: value for name, value in os.environ.items() if name not in ("CC", "CFLAGS", "LDFLAGS")
    }
    done = subprocess.run(
        [cmake, "-S", ROOT / "kernels", "-B", folder, *options],
        env=clean | environment,
        text=True,
        capture_output=True,
        check=False,
    )
    made = folder / "compile_commands.json"
    commands = (
        [shlex.split(each["command"]) for each in json.loads(made.read_text())]
        if made.exists()
        else []
    )
    return done.returncode, done.stdout + done.stderr, commands


@pytest.mark.parametrize("compiler", ["nosuchcc", "cc --no-such-option"])
def test_a_broken_compiler_is_named(compiler, tmp_path):
    line = f"CC='{compiler}' is missing or makes no programs: mend it, or unset CC\n"
    code, said, _ = configured(tmp_path, CC=compiler)
    assert code and line in said
    done = subprocess.run(
        ["make", "prerequisites", f"CC={compiler}"], cwd=ROOT, stderr=subprocess.PIPE, check=False
    )
    assert done.returncode and done.stderr.decode().startswith(line)


def test_options_after_the_compiler_are_kept(tmp_path):
    """They are also kept if CMake is called again without CC."""
    assert configured(tmp_path, CC="env cc -DWORD")[0] == 0
    code, said, commands = configured(tmp_path)
    assert (
        code == 0
        and ", cc -DWORD -O3 " in said
        and all({"cc", "-DWORD"} <= set(words) for words in commands)
    )


@pytest.mark.parametrize("kind", ["Release", "None"])
def test_fast_math_from_outside_changes_nothing(kind, tmp_path):
    """It changes neither a source's arithmetic nor, as gcc's crtfastmath.o would, the arithmetic of
    the process that loads the library.
    """
    asked = [f"-DCMAKE_BUILD_TYPE={kind}", "-DKVB_CHECK=ON"]
    _, _, commands = configured(
        tmp_path, *asked, CFLAGS=FAST, LDFLAGS="-ffast-math -funsafe-math-optimizations"
    )
    for words in {tuple(words[: words.index("-o")]) for words in commands}:
        macros = subprocess.check_output([*words, "-dM", "-E", "-x", "c", os.devnull], text=True)
        fast = re.search(
            r"__(FAST|ASSOCIATIVE|RECIPROCAL)_MATH__|__NO_\w+__|__FINITE_MATH_ONLY__ 1", macros
        )
        assert "-ffast-math" in words and not fast, (words, fast)
    for name in ("kvbench", "kvb-check"):
        link = (tmp_path / "CMakeFiles" / f"{name}.dir" / "link.txt").read_text()
        shown = subprocess.run(
            [*shlex.split(link), "-###"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert name in shown.stderr and "crtfastmath" not in shown.stderr


def test_a_missing_git_is_named(tmp_path):
    """Only the tests need git: a sweep does without it."""
    for name in ("sh", "make", "true", "uname", "date"):
        (tmp_path / name).symlink_to(shutil.which(name))
    (tmp_path / "python3").symlink_to(os.path.realpath(sys.executable))
    found = [
        subprocess.run(
            ["make", target, "CC=true"],
            cwd=ROOT,
            env={**os.environ, "PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        for target in ("prerequisites", "prerequisites-test")
    ]
    assert not found[0].returncode, found[0].stderr
    assert found[1].returncode and "apt install git (Debian)" in found[1].stderr


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc: apt install musl-tools")
def test_musl_has_every_function_that_is_called(tmp_path):
    """The dispatcher is linked with the scalar tier. The other tiers call nothing else; their code
    is only read.
    """
    objects = []
    for words in configured(tmp_path, CC="musl-gcc")[2]:
        *options, source = words[: words.index("-o")] + words[-1:]
        options = [
            word for word in options if word != "-c" and not re.match(r"-O\d|-DKVB_HAVE_", word)
        ]
        if source.endswith("unit.c"):
            subprocess.run([*options, "-fsyntax-only", source], check=True)
        else:
            objects.append(tmp_path / f"{len(objects)}.o")
            subprocess.run([*options, "-O0", "-w", "-c", source, "-o", objects[-1]], check=True)
    command = [
        "musl-gcc",
        "-shared",
        "-Wl,-z,defs",
        "-pthread",
        *objects,
        "-lm",
        "-o",
        tmp_path / "libkvbench.so",
    ]
    subprocess.run(command, check=True)
