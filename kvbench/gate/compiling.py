"""Find CMake and the compiler, and build a library with them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from kvbench.errors import BadLibrary, Refused
from kvbench.watched import watched

LIBRARY, INTERFACE = "libkvbench.so", "abi.h"
SWITCH = "KVB_TIERS"  # in CMakeLists.txt
ENGLISH = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}  # for messages; paths may still have any letters
Tiers = tuple[str, ...]  # the tiers to build; empty: all


@dataclass(frozen=True, slots=True)
class Tools:
    cmake: str
    generator: tuple[str, ...]  # as arguments of cmake
    compiler: str  # command, path and version
    environment: dict[str, str]  # as CMake reads it

    def run(self, *arguments: str | Path, temporary: Path) -> tuple[int, str]:
        """Run CMake; return the exit code and what it printed. Temporary files of compilers go to
        `temporary`.
        """
        more = {**self.environment, **ENGLISH, "TMPDIR": str(temporary)}
        environment = {**os.environ, **more}
        with TemporaryFile(dir=temporary) as prints:
            code = watched([self.cmake, *arguments], prints, environment)
            prints.seek(0)
            return code, prints.read().decode(errors="replace")


def _tool(name: str) -> str | None:
    """A program beside this Python, where pip puts it, or on the PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(name)


def tools() -> Tools:
    cmake, ninja = _tool("cmake"), _tool("ninja")
    if not cmake:
        raise Refused("cmake is missing", "pip install cmake; or name built libraries")
    if not ninja and not shutil.which("make"):
        raise Refused("make is missing", "apt install make (Debian), dnf install make (Fedora)")
    generator = (
        ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}") if ninja else ("-G", "Unix Makefiles")
    )
    asked = os.environ.get("CC", "").strip()
    command = asked or next(filter(shutil.which, ("cc", "gcc", "clang")), "cc")
    # a missing closing quote
    words = [command] if any(command.count(sign) % 2 for sign in "\"'") else shlex.split(command)
    if not (path := shutil.which(words[0])):
        hint = (
            "mend it, or unset CC"
            if asked
            else "apt install gcc libc6-dev (Debian), dnf install gcc (Fedora)"
        )
        raise Refused(f"{f'CC={asked!r}' if asked else 'the C compiler cc'} is missing", hint)
    version = subprocess.run(
        [*words, "--version"], capture_output=True, text=True, check=False
    ).stdout
    flags = {name: os.environ.get(name, "") for name in ("CFLAGS", "LDFLAGS")}
    return Tools(cmake, generator, f"{command}\n{path}\n{version}", {"CC": command, **flags})


def compiled(source: Path, known: Tools, tiers: Tiers, text: str, log: Path) -> Path:
    """Build a library; return the folder with it and its interface. If that fails, `log` is
    left.
    """
    made, result, output = source.with_name("made"), source.with_name("result"), ""
    configured: tuple[str | Path, ...] = (
        "-S",
        source / "kernels",
        "-B",
        made,
        *known.generator,
        "-DCMAKE_BUILD_TYPE=Release",
    )
    if tiers:
        configured += (f"-D{SWITCH}={';'.join(tiers)}",)
    built: tuple[str | Path, ...] = (
        "--build",
        made,
        "--target",
        "kvbench",
        "--parallel",
        str(len(os.sched_getaffinity(0))),
    )
    for step in (configured, built):
        code, said = known.run(*step, temporary=source.parent)
        output += said.replace(f"{source}/", "")
        if code:
            log.write_text(output)
            raise BadLibrary(f"cannot build {text}: {complaint(output)}", f"the full log is {log}")
    result.mkdir()
    shutil.copy(made / LIBRARY, result)
    shutil.copy(source / "kernels" / INTERFACE, result)
    return result


def complaint(output: str) -> str:
    """The line that says why a build failed: the first error of the compiler, linker or CMake."""
    for pattern in (
        r"^.*\berror: .*$",
        r"^.*\bundefined reference .*$",
        r"CMake Error[^\n]*:\s+(.+)$",
    ):
        if found := re.search(pattern, output, re.MULTILINE):
            return found[found.lastindex or 0].strip()
    return (output.strip().splitlines() or ["it gave no reason"])[-1].strip()
