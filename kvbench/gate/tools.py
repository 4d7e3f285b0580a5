"""What builds a library here: CMake, a generator and the C compiler."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvbench.errors import Refused


@dataclass(frozen=True, slots=True)
class Tools:
    cmake: str
    generator: tuple[str, ...]  # as arguments of cmake
    compiler: str  # command, path and version
    environment: dict[str, str]  # as CMake reads it

    def configured(self, source: Path, made: Path, options: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """A release build of the sources in `source`, ready to be built in `made`."""
        settings = ("CMAKE_BUILD_TYPE=Release", *options)
        return self._run("-S", source / "kernels", "-B", made, *self.generator, *(f"-D{each}" for each in settings))

    def built(self, made: Path) -> subprocess.CompletedProcess[bytes]:
        return self._run("--build", made, "--target", "kvbench", "--parallel", str(len(os.sched_getaffinity(0))))

    def _run(self, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        words = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}  # English; but a path may have any letters
        environment = {**os.environ, **self.environment, **words}
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "check": False}
        return subprocess.run([self.cmake, *arguments], env=environment, **how)


def _tool(name: str) -> str | None:
    """Beside this Python, where pip puts it, or on the PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(name)


def tools() -> Tools:
    cmake, ninja = _tool("cmake"), _tool("ninja")
    if not cmake:
        raise Refused("cmake is missing", "pip install cmake; or name libraries that are built")
    if not ninja and not shutil.which("make"):
        raise Refused("make is missing", "apt install make (Debian), dnf install make (Fedora)")
    generator = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}") if ninja else ("-G", "Unix Makefiles")
    asked = os.environ.get("CC", "").strip()
    command = asked or next(filter(shutil.which, ("cc", "gcc", "clang")), "cc")
    words = [command] if any(command.count(sign) % 2 for sign in "\"'") else shlex.split(command)  # a quotation ends
    if not (path := shutil.which(words[0])):
        hint = "mend it, or unset CC" if asked else "apt install gcc libc6-dev (Debian), dnf install gcc (Fedora)"
        raise Refused(f"{f'CC={asked!r}' if asked else 'the C compiler cc'} is missing", hint)
    version = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False).stdout
    flags = {name: os.environ.get(name, "") for name in ("CFLAGS", "LDFLAGS")}
    return Tools(cmake, generator, f"{command}\n{path}\n{version}", {"CC": command, **flags})
