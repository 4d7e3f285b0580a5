"""A copy of the tree with its own Python and its own library. Only the copy is edited and run."""

import importlib.util
import os
import shlex
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

BUILD_LIMIT = 900  # s
_LINKS = {"abi.h": "kernels/abi.h", "kvbench.h": "kernels/kvbench.h", "suites": "suites"}
_TARGETS = ("kvbench", "kvb-check")
_TOOLS = ("cmake", "ruff", "clang-format")


@dataclass(frozen=True)
class Ended:
    """How a command ended. `code` is None if it ran out of time."""

    code: int | None
    seconds: float
    said: str


class Copy:
    """A copy of the tree. `root`: the tree; `place`: the copy's folder; `files`: the files to copy,
    relative to root; `tiers`: the tiers that the library is built with.
    """

    def __init__(
        self, root: Path, place: Path, files: list[str], tiers: Iterable[str] = ()
    ) -> None:
        self.root, self.place, self.files, self.wanted = root, place, files, tuple(tiers)
        self.library = place / "build" / "library"
        self.python = place / "build" / "venv" / "bin" / "python"
        self._stale = set(_TARGETS)  # targets that are older than their C files
        self._configured = False

    # ---- files -----------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Make the copy equal to the tree. An unchanged file keeps its time, so that little is
        built again.
        """
        wanted = {self.place / file for file in self.files}
        for path in self.place.rglob("*"):
            own = path.relative_to(self.place).parts
            if (
                path.is_file()
                and not path.is_symlink()
                and own[0] != "build"
                and path not in wanted
            ):
                path.unlink()
        for file in self.files:
            source, target = self.root / file, self.place / file
            if not target.exists() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
                self._forget(target)

    def write(self, file: str, text: str) -> None:
        path = self.place / file
        path.write_text(text)
        self._forget(path)
        if file.startswith("kernels/"):
            self._stale = set(_TARGETS)

    @staticmethod
    def _forget(path: Path) -> None:
        """Remove the compiled file: Python would take it for a changed file of the same second and
        size.
        """
        if path.suffix == ".py":
            folder = Path(importlib.util.cache_from_source(str(path))).parent
            for old in folder.glob(f"{path.stem}.*.pyc"):
                old.unlink()

    # ---- Python and the library ------------------------------------------------------------------

    def furnish(self) -> None:
        """Make a Python that has this one's packages, and finds kvbench only in the copy. An
        editable install is a .pth file, and Python ignores .pth files in folders that another .pth
        file names.
        """
        folder = self.place / "build" / "venv"
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        packages = next(folder.glob("lib/python*/site-packages"))
        (packages / "copy.pth").write_text(
            "\n".join([str(self.place), *site.getsitepackages()]) + "\n"
        )
        for tool in _TOOLS:
            own, link = Path(sys.executable).parent / tool, folder / "bin" / tool
            if own.exists() and not link.exists():
                link.symlink_to(own)
        for name, target in _LINKS.items():
            self._link(self.place / "kvbench" / name, self.place / target)
        self._link(self.place / "kvbench" / "libkvbench.so", self.library / "libkvbench.so")

    @staticmethod
    def _link(path: Path, target: Path) -> None:
        if path.parent.exists() and not path.is_symlink():
            path.symlink_to(target)

    def build(self, program: bool = False) -> Ended | None:
        """Build the library and, if asked, the check program. Return None if nothing had to be
        built.
        """
        wanted = [name for name in _TARGETS[: 1 + program] if name in self._stale]
        if not wanted or not (self.place / "kernels").exists():
            return None
        self.library.mkdir(parents=True, exist_ok=True)
        cmake = shutil.which("cmake", path=f"{self.python.parent}:{os.environ['PATH']}") or "cmake"
        options = ["-DKVB_CHECK=ON", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-O1 -DNDEBUG"]
        options += [f"-DKVB_TIERS={';'.join(self.wanted)}"] if self.wanted else []
        configure = [cmake, "-S", str(self.place / "kernels"), "-B", str(self.library), *options]
        ended = Ended(0, 0.0, "") if self._configured else self.run(configure, BUILD_LIMIT)
        if ended.code == 0:
            self._configured = True
            targets = [word for name in wanted for word in ("--target", name)]
            build = [cmake, "--build", str(self.library), "--parallel", "2", *targets]
            ended = self.run(build, BUILD_LIMIT)
        if ended.code == 0:
            self._stale -= set(wanted)
        return ended

    def tiers(self) -> list[str]:
        """Return the tiers of the copy's library on this CPU. Stop if the copy's Python leads
        elsewhere.
        """
        program = (
            "import kvbench, kvbench.native as n; l = n.default_library();"
            "print(kvbench.__file__, l.path, *l.isas(), sep='\\n')"
        )
        ended = self.run([str(self.python), "-c", program], 60)
        if ended.code != 0:
            raise SystemExit(f"the copy's Python opens no library: {ended.said}")
        package, library, *tiers = ended.said.split()
        for path in (package, library):
            if not Path(path).is_relative_to(self.place):
                raise SystemExit(f"the copy's Python took {path}, which is not in {self.place}")
        return tiers

    # ---- commands --------------------------------------------------------------------------------

    def command(self, check: str) -> list[str]:
        kind, *words = shlex.split(check)
        begin = {
            "pytest": [str(self.python), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"],
            "verify": [str(self.python), "-m", "kvbench.cli", "verify"],
            "kvb-check": [str(self.library / "kvb-check")],
        }
        return [*begin[kind], *words]

    def run(self, command: list[str], limit: float) -> Ended:
        """Run a command in the copy, in its own session. At its limit, or on an interruption, end
        it and all its children.
        """
        begun, code = time.monotonic(), None
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            child = subprocess.Popen(
                command,
                cwd=self.place,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                with suppress(subprocess.TimeoutExpired):
                    code = child.wait(limit)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            said.seek(0)
            return Ended(code, time.monotonic() - begun, said.read())

    def _environment(self) -> dict[str, str]:
        mine = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KVB", "PYTHON", "MAKE", "MFLAGS", "VIRTUAL_ENV"))
        }
        return mine | {
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(self.place / "build" / "cache"),
        }


def listed(root: Path) -> list[str]:
    """Return the files that git tracks, and the untracked ones that it does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(
            f"{root} is no git checkout, which says what is to be copied: {done.stderr.strip()}"
        )
    return sorted({name for name in done.stdout.split("\0") if name and (root / name).is_file()})
