"""What the build makes of the compiler, the flags and the C library that it is given."""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from tests.raw import ROOT

KERNELS = ROOT / "kernels"
FAST = "-Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only -fno-signed-zeros"
NO_COMPILER = ["nosuchcc", "cc --no-such-option"]


def configured(folder, *options, **environment):
    """CMake's exit code and words; every variable of the environment that a build reads is one of these."""
    cmake = shutil.which("cmake") or str(ROOT / "build" / "venv" / "bin" / "cmake")
    clean = {name: value for name, value in os.environ.items() if name not in ("CC", "CFLAGS", "LDFLAGS")}
    command = [cmake, "-S", KERNELS, "-B", folder, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-G", "Unix Makefiles", *options]
    done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def compiled(folder):
    """What compiles each source, as words."""
    return [shlex.split(each["command"]) for each in json.loads((folder / "compile_commands.json").read_text())]


@pytest.mark.parametrize("compiler", NO_COMPILER)
def test_a_compiler_that_is_none_is_named(compiler, tmp_path):
    code, said = configured(tmp_path, CC=compiler)
    assert code and f"  CC='{compiler}' is missing or makes no programs: mend it, or unset CC\n" in said
    for asked in ([f"CC={compiler}"], []):
        done = subprocess.run(["make", "prerequisites", *asked], cwd=ROOT, env=os.environ | {"CC": compiler}, text=True,
                              capture_output=True, check=False)  # fmt: skip
        line = done.stderr.splitlines()[0]
        assert done.returncode and line == f"CC='{compiler}' is missing or makes no programs: mend it, or unset CC"


def test_words_behind_the_compiler_are_kept(tmp_path):
    """Also when CMake is called again without CC."""
    assert configured(tmp_path, CC="env cc -DWORD")[0] == 0
    code, said = configured(tmp_path)
    assert code == 0 and "-- kvbench" in said and ", cc -DWORD -O3 " in said
    assert all({"cc", "-DWORD"} <= set(words) for words in compiled(tmp_path))


@pytest.mark.parametrize("kind", ["Release", "None"])
def test_fast_math_from_outside_changes_nothing(kind, tmp_path):
    """Neither a source's arithmetic nor, as gcc's crtfastmath.o would, that of who loads the library."""
    asked = [f"-DCMAKE_BUILD_TYPE={kind}", "-DKVB_CHECK=ON"]
    assert configured(tmp_path, *asked, CFLAGS=FAST, LDFLAGS="-ffast-math -funsafe-math-optimizations")[0] == 0
    every = {tuple(words[: words.index("-o")]) for words in compiled(tmp_path)}
    assert all("-Ofast" not in words and "-ffast-math" in words for words in every)
    for words in every:
        macros = subprocess.run([*words, "-dM", "-E", "-x", "c", os.devnull], capture_output=True, text=True, check=True)
        fast = re.findall(r"__(?:FAST|ASSOCIATIVE|RECIPROCAL)_MATH__|__NO_\w+__|__FINITE_MATH_ONLY__ 1", macros.stdout)
        assert not fast, words
    for name in ("kvbench", "kvb-check"):
        link = (tmp_path / "CMakeFiles" / f"{name}.dir" / "link.txt").read_text()
        shown = subprocess.run([*shlex.split(link), "-###"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "collect2" in shown.stderr + "collect2" * ("clang" in link) and "crtfastmath" not in shown.stderr


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc: apt install musl-tools")
def test_musl_has_all_that_is_called(tmp_path):
    """The dispatcher with the scalar tier is linked; the other tiers, which call nothing else, are read only."""
    assert configured(tmp_path, CC="musl-gcc")[0] == 0
    objects = []
    for words in compiled(tmp_path):
        *options, source = words[: words.index("-o")] + words[-1:]
        options = [word for word in options if word != "-c" and not re.match(r"-O\d|-DKVB_HAVE_", word)]
        if source.endswith("unit.c"):
            subprocess.run([*options, "-fsyntax-only", source], check=True)
            continue
        objects.append(tmp_path / f"{len(objects)}.o")
        subprocess.run([*options, "-O0", "-w", "-c", source, "-o", objects[-1]], check=True)
    command = ["musl-gcc", "-shared", "-Wl,-z,defs", "-pthread", *objects, "-lm", "-o", tmp_path / "libkvbench.so"]
    subprocess.run(command, check=True)
