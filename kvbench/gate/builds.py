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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from kvbench import named
from kvbench.errors import BadArgument, BadLibrary, Refused, Unwritable
from kvbench.native import library_path
from kvbench.store.evidence import cache_folder
from kvbench.store.files import replacing, writing

_LIBRARY, _INTERFACE, _WHEEL = "libkvbench.so", "abi.h", ".whl"
_NAMES = ("kernels", "pyproject.toml")  # what is compared is what is compiled; CMakeLists.txt reads the version there
Report = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Build:
    """A library with the interface that it was built from."""

    text: str  # for people: "origin/main (3f2a91c)", "working tree", "libkvbench.so (sha256 ab12cd34)"
    library: Path
    interface: Path
    digest: str  # of the library's bytes, or of its sources
    unbuilt: bool = False  # then the installed library stands for it, which tells what there is to measure


def sides(
    base: str, head: str, every: bool = False, repository: Path = Path(), report: Report = lambda line: None
) -> tuple[Build, Build]:
    """As build() has them. Unless `every` side is wanted, sources that are the same are not built."""
    if not (every or _is_library(base) or _is_library(head)):
        (text, key), (other, same) = (_looked_at(asked, repository) for asked in (base, head))
        if key == same:
            known = (library_path(), library_path().with_name(_INTERFACE), key)
            return Build(text, *known, unbuilt=True), Build(other, *known, unbuilt=True)
    return build(base, repository, report=report), build(head, repository, report=report)


def build(asked: str, repository: Path = Path(), report: Report = lambda line: None) -> Build:
    """`asked` is a library or a wheel, taken as it is; "." for the sources around `repository` as they stand; or a git revision.
    `report` hears what takes long."""
    if _is_library(asked):
        path = _unpacked(Path(asked)) if asked.endswith(_WHEEL) else Path(asked)
        refuse_no_library(path)
        interface, digest = path.with_name(_INTERFACE), _digest(path)
        if not interface.is_file():
            interface = library_path().with_name(_INTERFACE)
        return Build(f"{Path(asked).name} (sha256 {digest[:8]})", path.absolute(), interface.absolute(), digest)
    builds = _cache()
    with tempfile.TemporaryDirectory(prefix=".", dir=builds) as temporary:
        source, known = Path(temporary, "source"), tools()
        text = _copied(asked, repository, source)
        kept = builds / _key(source, known)
        if not (kept / _LIBRARY).is_file():
            report(f"building {text}")
            made = _compiled(source, known, text, kept.with_suffix(".log"))
            try:
                made.rename(kept)
            except OSError:  # another process may have been faster, with the same
                if not (kept / _LIBRARY).is_file():
                    raise Unwritable(f"cannot write {kept}", "remove what stands in its place") from None
    return Build(text, kept / _LIBRARY, kept / _INTERFACE, _digest(kept / _LIBRARY))


def _looked_at(asked: str, repository: Path) -> tuple[str, str]:
    """The name of sources, and a digest of what they would become: comments and layout are no part of it."""
    with tempfile.TemporaryDirectory(prefix=".", dir=_cache()) as temporary:
        return _copied(asked, repository, Path(temporary)), _key(Path(temporary), tools(), bare=True)


# ---- a library ----------------------------------------------------------------------------------------------------


def refuse_no_library(path: Path) -> None:
    """Before anybody copies it, or reads all of it."""
    kind = _kind(path)
    if kind[:4] != b"\x7fELF":
        raise BadLibrary(f"{path} is no library", "name a shared object, a git revision, or .")
    if kind[4:] != _kind(Path("/proc/self/exe"))[4:]:
        raise BadLibrary(f"{path} is a library for another machine", f"this one is {platform.machine()}")


def _is_library(asked: str) -> bool:
    return Path(asked).is_file() or asked.endswith(_WHEEL) or ".so" in Path(asked).suffixes


def _unpacked(wheel: Path) -> Path:
    """The library of a wheel of kvbench, with its interface beside it."""
    try:
        with named.opened(wheel) as file, ZipFile(file) as packed:
            library, interface = (packed.read(f"kvbench/{name}") for name in (_LIBRARY, _INTERFACE))
    except OSError as error:
        raise BadLibrary(f"cannot read {wheel}: {error.strerror}", "name a wheel, a library or a revision") from None
    except (BadZipFile, KeyError):
        raise BadLibrary(f"{wheel} is no wheel of kvbench", "name a wheel, a library, a git revision, or .") from None
    folder = _cache() / hashlib.sha256(library + interface).hexdigest()[:24]
    folder.mkdir(exist_ok=True)
    for name, content in ((_INTERFACE, interface), (_LIBRARY, library)):
        with writing(folder / name, "then gate again"), replacing(folder / name) as file:
            file.write(content)
    return folder / _LIBRARY


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


# ---- tools --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tools:
    cmake: str
    generator: tuple[str, ...]  # as arguments of cmake
    compiler: str  # command, path and version
    environment: dict[str, str]  # as CMake reads it

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
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


# ---- the cache ----------------------------------------------------------------------------------------------------


def _cache() -> Path:
    folder = cache_folder() / "builds"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "XDG_CACHE_HOME names another folder to keep builds in"
        raise Unwritable(f"cannot write {folder}: {error.strerror}", hint) from None
    return folder


# A comment; or a text in quotes, which may look like one.
_NOT_CODE = re.compile(rb'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)


def _key(source: Path, known: Tools, bare: bool = False) -> str:
    """A digest of everything that makes the library what it is. `bare`: C as a compiler sees it, without comments."""
    version = re.findall(r"^version = .*", (source / "pyproject.toml").read_text(), re.MULTILINE)
    found = hashlib.sha256(repr((version, known.compiler, known.environment, platform.machine())).encode())
    for path in sorted((source / "kernels").rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if bare and path.suffix in (".c", ".h"):
                code = _NOT_CODE.sub(lambda found: found[1] or b" ", content)
                content = b"\n".join(filter(None, map(bytes.strip, code.splitlines())))
            found.update(f"\n{path.relative_to(source)} {len(content)}\n".encode() + content)
    return found.hexdigest()[:24]


# ---- compiling ----------------------------------------------------------------------------------------------------


def _compiled(source: Path, known: Tools, text: str, log: Path) -> Path:
    """A folder with the library and its interface. `log` is left where that fails."""
    made, result, output = source.with_name("made"), source.with_name("result"), ""
    configured = ("-S", source / "kernels", "-B", made, *known.generator, "-DCMAKE_BUILD_TYPE=Release")
    built = ("--build", made, "--target", "kvbench", "--parallel", str(len(os.sched_getaffinity(0))))
    for step in (configured, built):
        ran = known.run(*step)
        said = ran.stdout.decode(errors="replace").replace(f"{source}/", "")
        output += said
        if ran.returncode:
            log.write_text(output)
            raise BadLibrary(f"cannot build {text}: {_complaint(output)}", f"the whole log is {log}")
    result.mkdir()
    shutil.copy(made / _LIBRARY, result)
    shutil.copy(source / "kernels" / _INTERFACE, result)
    return result


def _complaint(output: str) -> str:
    """The line that says why: the first error of the compiler, linker or CMake."""
    for pattern in (r"^.*\berror: .*$", r"^.*\bundefined reference .*$", r"CMake Error[^\n]*:\s+(.+)$"):
        if found := re.search(pattern, output, re.MULTILINE):
            return found[found.lastindex or 0].strip()
    return (output.strip().splitlines() or ["no word why"])[-1].strip()


# ---- sources -------------------------------------------------------------------------------------------------------


def _copied(asked: str, repository: Path, to: Path) -> str:
    """The tree around `repository`, "." as it stands, or a revision. Returns its name for people."""
    here = repository.absolute()
    for tree in (here, *here.parents):
        if (tree / "kernels" / "CMakeLists.txt").is_file() and (tree / "pyproject.toml").is_file():
            return _copy_tree(tree, to) if asked == "." else _copy_revision(tree, asked, to)
    raise BadArgument(
        f"{here} is in no source tree of kvbench", "run it in a clone of kvbench, or name libraries or wheels"
    )


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
    archive = _git(tree, "archive", "--format=tar", commit, *_NAMES)
    if archive.returncode:
        raise BadArgument(f"{asked} ({commit[:7]}) has no {' and '.join(_NAMES)}", "name a later revision")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        for member in tar:
            if member.isfile():
                _write(to / member.name, tar.extractfile(member).read())
    return commit[:7] if commit.startswith(asked) else f"{asked} ({commit[:7]})"


def _copy_tree(tree: Path, to: Path) -> str:
    """What git would commit, or without git what is there: so that what is compiled is what was digested."""
    listed = None
    if shutil.which("git"):
        listed = _git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *_NAMES)
    if listed and not listed.returncode:
        names = set(filter(None, listed.stdout.decode().split("\0")))
    else:
        names = {str(path.relative_to(tree)) for name in _NAMES for path in (tree / name, *(tree / name).rglob("*"))}
    for name in names:
        if (tree / name).is_file():
            _write(to / name, (tree / name).read_bytes())
    return "working tree"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
