"""The libraries that a gate compares: a git revision, the working tree or a file, compiled once and kept by content."""

import hashlib
import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvbench import named
from kvbench.errors import BadArgument, BadLibrary, KvbenchError, Refused, Unwritable
from kvbench.native import library_path

_LIBRARY, _INTERFACE = "libkvbench.so", "abi.h"
_SOURCES = ("kernels", "pyproject.toml")  # CMakeLists.txt reads the version from the latter

# A section for each function, or calls inside a file would leave no relocation; and the relocations are kept.
_COMPILE, _LINK = "-ffunction-sections -fdata-sections", "-Wl,--emit-relocs"


@dataclass(frozen=True, slots=True)
class Build:
    """A library with the interface that it was built from."""

    text: str  # for people: "origin/main (3f2a91c)", "working tree", "libkvbench.so (sha256 ab12cd34)"
    library: Path
    interface: Path
    digest: str  # of the library's bytes


def build(
    asked: str,
    repository: Path = Path(),
    options: Sequence[str] = (),
    report: Callable[[str], object] = lambda line: None,
) -> Build:
    """`asked` is a library, taken as it is; "." for the sources around `repository` as they stand; or a git revision.

    `options` are settings of CMake, such as "KVB_SLOW=0.05". `report` hears what takes long.
    """
    if Path(asked).is_file() or ".so" in Path(asked).suffixes:
        if options:
            raise BadArgument(f"{asked}: a library has no options {' '.join(options)}", "name a revision, or .")
        return _taken(Path(asked))
    tree, tools = _tree_around(repository), _tools()
    builds = _cache()
    with tempfile.TemporaryDirectory(prefix=".", dir=builds) as temporary:
        source = Path(temporary, "source")
        name = _copy_tree(tree, source) if asked == "." else _copy_revision(tree, asked, source)
        text = ", ".join((name, *options))
        kept = builds / _key(source, tools, options)
        if not (kept / _LIBRARY).is_file():
            report(f"building {text}")
            _keep(_compiled(source, tools, options, text, kept.with_suffix(".log")), kept)
    return Build(text, kept / _LIBRARY, kept / _INTERFACE, _digest(kept / _LIBRARY))


# ---- a library ----------------------------------------------------------------------------------------------------


def refuse_no_library(path: Path) -> None:
    """Before anybody copies it, or reads all of it."""
    kind = _kind(path)
    if kind[:4] != b"\x7fELF":
        raise BadLibrary(f"{path} is no library", "name a shared object, a git revision, or .")
    if kind[4:] != _kind(Path("/proc/self/exe"))[4:]:
        raise BadLibrary(f"{path} is a library for another machine", f"this one is {platform.machine()}")


def _taken(path: Path) -> Build:
    refuse_no_library(path)
    interface = path.with_name(_INTERFACE)
    if not interface.is_file():
        interface = library_path().with_name(_INTERFACE)
    digest = _digest(path)
    return Build(f"{path.name} (sha256 {digest[:8]})", path.absolute(), interface.absolute(), digest)


def _kind(path: Path) -> bytes:
    """The ELF header's magic, word size, byte order and instruction set."""
    try:
        with named.opened(path) as file:
            head = file.read(20)
    except OSError as error:
        raise BadLibrary(f"cannot read {path}: {error.strerror}", "name a library, a git revision, or .") from None
    return head[:6] + head[18:]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- sources ------------------------------------------------------------------------------------------------------


def _tree_around(repository: Path) -> Path:
    here = repository.absolute()
    for folder in (here, *here.parents):
        if (folder / "kernels" / "CMakeLists.txt").is_file() and (folder / "pyproject.toml").is_file():
            return folder
    raise BadArgument(f"{here} is in no source tree of kvbench", "run it in a clone of kvbench, or name libraries")


def _git(tree: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    git = shutil.which("git")
    if not git:
        raise Refused("git is missing", "apt install git (Debian), dnf install git (Fedora); or name libraries")
    return subprocess.run([git, "-C", tree, *arguments], capture_output=True, check=False)


def _copy_revision(tree: Path, asked: str, to: Path) -> str:
    """The sources of a revision; returns its name."""
    inside = _git(tree, "rev-parse", "--git-dir")
    if inside.returncode:
        why = inside.stderr.decode(errors="replace").partition("\n")[0].removeprefix("fatal: ")
        raise BadArgument(f"{asked}: {tree} is no git repository: {why}", "name libraries, or . for the tree itself")
    found = _git(tree, "rev-parse", "--verify", "--quiet", f"{asked}^{{commit}}")
    if found.returncode or asked.startswith("-"):
        hint = "git fetch it first; in CI, check out with fetch-depth: 0. Or name a library"
        raise BadArgument(f"{asked} is neither a revision of {tree} nor a library", hint)
    commit = found.stdout.decode().strip()
    archive = _git(tree, "archive", "--format=tar", commit, *_SOURCES)
    if archive.returncode:
        raise BadArgument(f"{asked} ({commit[:7]}) has no {' and '.join(_SOURCES)}", "name a later revision")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        for member in tar:
            if member.isfile():
                _write(to / member.name, tar.extractfile(member).read())
    return commit[:7] if commit.startswith(asked) else f"{asked} ({commit[:7]})"


def _copy_tree(tree: Path, to: Path) -> str:
    """What git would commit, or without git what is there: so that what is compiled is what was digested."""
    listed = None
    if shutil.which("git"):
        listed = _git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *_SOURCES)
    if listed and not listed.returncode:
        names = set(filter(None, listed.stdout.decode().split("\0")))
    else:
        names = {str(path.relative_to(tree)) for name in _SOURCES for path in (tree / name, *(tree / name).rglob("*"))}
    for name in names:
        if (tree / name).is_file():
            _write(to / name, (tree / name).read_bytes())
    return "working tree"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# ---- tools --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tools:
    cmake: str
    generator: tuple[str, ...]  # as arguments of cmake
    compiler: str  # command, path and version
    environment: dict[str, str]  # as CMake reads it


def _tool(name: str) -> str | None:
    """Beside this Python, where pip puts it, or on the PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(name)


def _tools() -> _Tools:
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
    flags = {"CFLAGS": _COMPILE, "LDFLAGS": _LINK}
    environment = {name: f"{os.environ.get(name, '')} {flag}".strip() for name, flag in flags.items()}
    return _Tools(cmake, generator, f"{command}\n{path}\n{version}", {"CC": command, **environment})


# ---- the cache ----------------------------------------------------------------------------------------------------


def _cache() -> Path:
    asked = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = (asked if asked.is_absolute() else Path.home() / ".cache") / "kvbench" / "builds"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "XDG_CACHE_HOME names another folder to keep builds in"
        raise Unwritable(f"cannot write {folder}: {error.strerror}", hint) from None
    return folder


def _key(source: Path, tools: _Tools, options: Sequence[str]) -> str:
    """Of everything that makes the library what it is."""
    version = re.findall(r"^version = .*", (source / "pyproject.toml").read_text(), re.MULTILINE)
    found = hashlib.sha256(
        repr((version, tools.compiler, tools.environment, tuple(options), platform.machine())).encode()
    )
    for path in sorted((source / "kernels").rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            found.update(f"\n{path.relative_to(source)} {len(content)}\n".encode() + content)
    return found.hexdigest()[:24]


def _keep(made: Path, kept: Path) -> None:
    """In one step. Another process may have been faster, with the same."""
    try:
        made.rename(kept)
    except OSError:
        if not (kept / _LIBRARY).is_file():
            raise Unwritable(f"cannot write {kept}", "remove what stands in its place") from None


# ---- compiling ----------------------------------------------------------------------------------------------------


def _compiled(source: Path, tools: _Tools, options: Sequence[str], text: str, log: Path) -> Path:
    """A folder with the library and its interface. `log` is left where that fails."""
    made, result, output = source.with_name("made"), source.with_name("result"), ""
    settings = [f"-D{option}" for option in ("CMAKE_BUILD_TYPE=Release", *options)]
    jobs = str(len(os.sched_getaffinity(0)))
    for command in (
        [tools.cmake, "-S", source / "kernels", "-B", made, *tools.generator, *settings],
        [tools.cmake, "--build", made, "--target", "kvbench", "--parallel", jobs],
    ):
        ran = subprocess.run(
            command,
            env={**os.environ, **tools.environment, "LC_ALL": "C.UTF-8", "LANGUAGE": ""},  # a path may have any letters
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = ran.stdout.decode(errors="replace").replace(f"{source}/", "")
        output += said
        if ran.returncode:
            raise _failed(text, output, log)
        if unknown := re.search(r"Manually-specified variables were not used by the project:\s+(.+)", said):
            raise BadArgument(f"{text}: its sources do not know {unknown[1].strip()}", "name a later revision")
    result.mkdir()
    shutil.copy(made / _LIBRARY, result)
    shutil.copy(source / "kernels" / _INTERFACE, result)
    return result


def _failed(text: str, output: str, log: Path) -> KvbenchError:
    log.write_text(output)
    return BadLibrary(f"cannot build {text}: {_complaint(output)}", f"the whole log is {log}")


def _complaint(output: str) -> str:
    """The line that says why: the first error of the compiler, linker or CMake."""
    for pattern in (r"^.*\berror: .*$", r"^.*\bundefined reference .*$", r"CMake Error[^\n]*:\s+(.+)$"):
        if found := re.search(pattern, output, re.MULTILINE):
            return found[found.lastindex or 0].strip()
    return (output.strip().splitlines() or ["no word why"])[-1].strip()
