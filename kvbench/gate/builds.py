"""The libraries that a gate compares: from a git revision, the working tree or a file. Each is
compiled once and kept by content.
"""

import hashlib
import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from kvbench import named
from kvbench.errors import BadLibrary, Unwritable
from kvbench.gate.compiling import INTERFACE, LIBRARY, SWITCH, Tiers, Tools, compiled, tools
from kvbench.gate.sources import copied
from kvbench.leftovers import scratch
from kvbench.native import library_path
from kvbench.store.evidence import cache_folder
from kvbench.store.files import replacing, writing
from kvbench.units import span

_WHEEL = ".whl"
_BASE, _UNIT = 15.0, 45.0  # seconds on one CPU: all but the vector tiers, and one vector tier
_UNITS = 2  # vector tiers of a full build
Report = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Build:
    """A library, with the interface that it was built from."""

    # for people: "origin/main (3f2a91c)", "working tree", "libkvbench.so (sha256 ab12cd34)"
    text: str
    library: Path
    interface: Path
    digest: str  # of the library's bytes, or of its sources
    # If true, the library was not built; the installed one tells what there is to measure.
    unbuilt: bool = False


def sides(
    base: str,
    head: str,
    every: bool = False,
    repository: Path = Path(),
    report: Report = lambda line: None,
    tiers: Tiers = (),
) -> tuple[Build, ...]:
    """Build both sides, as build() does. Equal sources are not built, unless `every` is set.
    `tiers`: the tiers to build. If the sources of either side cannot leave out tiers, or a side is
    a library, both sides have all tiers.
    """
    asked = base, head
    if any(map(_is_library, asked)):
        return _built(asked, repository, report, tiers=())
    looks = [_looked_at(each, repository) for each in asked]
    if not every and looks[0].key == looks[1].key:
        known = (library_path(), library_path().with_name(INTERFACE))
        return tuple(Build(look.text, *known, look.key, unbuilt=True) for look in looks)
    return _built(asked, repository, report, tiers if all(look.switch for look in looks) else ())


def build(
    asked: str, repository: Path = Path(), report: Report = lambda line: None, tiers: Tiers = ()
) -> Build:
    """Get the library of `asked`: a library or a wheel, taken as it is; "." for the sources around
    `repository` as they are now; or a git revision. `report` is told about slow steps.
    """
    return _built((asked,), repository, report, tiers)[0]


def _built(
    asked: Sequence[str], repository: Path, report: Report, tiers: Tiers
) -> tuple[Build, ...]:
    """Build the libraries; report before how long it may take, and after how long it took."""
    with ExitStack() as owned:
        found: list[Build | _Source] = [
            _library(each) if _is_library(each) else _prepared(each, repository, tiers, owned)
            for each in asked
        ]
        sources = dict.fromkeys(
            each for each in found if isinstance(each, _Source) and not each.is_built
        )
        if sources:
            names = " and ".join(source.text for source in sources)
            report(
                f"building {names}: about {span(len(sources) * _expected(tiers))}, outside the"
                " budget"
            )
        start = time.monotonic()
        for source in sources:
            source.make()
        if sources:
            report(f"built in {span(time.monotonic() - start)}")
        return tuple(each.build if isinstance(each, _Source) else each for each in found)


def _expected(tiers: Tiers) -> float:
    """Seconds of a build on the allowed CPUs."""
    units = len(tiers) - 1 if tiers else _UNITS  # the plainest tier has no vectors
    # A tier is one file, compiled on one CPU.
    return max(_UNIT, (_BASE + units * _UNIT) / len(os.sched_getaffinity(0)))


def _library(asked: str) -> Build:
    path = _unpacked(Path(asked)) if asked.endswith(_WHEEL) else Path(asked)
    refuse_no_library(path)
    interface, digest = path.with_name(INTERFACE), _digest(path)
    if not interface.is_file():
        interface = library_path().with_name(INTERFACE)
    return Build(
        f"{Path(asked).name} (sha256 {digest[:8]})", path.absolute(), interface.absolute(), digest
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """A copy of sources in `folder`. Its build goes to `kept`, which is the same for equal sources
    and tools.
    """

    text: str
    folder: Path = field(compare=False)
    tools: Tools = field(compare=False)
    tiers: Tiers
    kept: Path

    @property
    def is_built(self) -> bool:
        return (self.kept / LIBRARY).is_file()

    @property
    def build(self) -> Build:
        library = self.kept / LIBRARY
        return Build(self.text, library, self.kept / INTERFACE, _digest(library))

    def make(self) -> None:
        if self.is_built:  # the other side is the same
            return
        made = compiled(
            self.folder, self.tools, self.tiers, self.text, self.kept.with_suffix(".log")
        )
        try:
            made.rename(self.kept)
        except OSError:  # another process may have built the same
            if not self.is_built:
                raise Unwritable(
                    f"cannot write {self.kept}", "remove what is in its place"
                ) from None


def _prepared(asked: str, repository: Path, tiers: Tiers, owned: ExitStack) -> _Source:
    builds = kept_folder()
    folder, known = Path(owned.enter_context(scratch(builds, ".")), "source"), tools()
    text = copied(asked, repository, folder)
    return _Source(text, folder, known, tiers, builds / _key(folder, known, tiers))


class _Look(NamedTuple):
    """A look at sources: their name; a digest of the library that they give, without comments and
    layout; and whether CMake can leave out tiers.
    """

    text: str
    key: str
    switch: bool


def _looked_at(asked: str, repository: Path) -> _Look:
    with scratch(kept_folder(), ".") as temporary:
        text = copied(asked, repository, Path(temporary))
        rules = Path(temporary, "kernels", "CMakeLists.txt").read_text(errors="replace")
        return _Look(text, _key(Path(temporary), tools(), bare=True), f"set({SWITCH} " in rules)


# ---- a library -----------------------------------------------------------------------------------


def refuse_no_library(path: Path, hint: str = "name a shared object, a git revision, or .") -> None:
    """Refuse a file that is not a library, before it is copied or read completely."""
    kind = _kind(path)
    if kind[:4] != b"\x7fELF":
        raise BadLibrary(f"{path} is not a library", hint)
    if kind[4:] != _kind(Path("/proc/self/exe"))[4:]:
        raise BadLibrary(
            f"{path} is a library for another machine", f"this one is {platform.machine()}"
        )


def _is_library(asked: str) -> bool:
    return Path(asked).is_file() or asked.endswith(_WHEEL) or ".so" in Path(asked).suffixes


def _unpacked(wheel: Path) -> Path:
    """Unpack the library of a wheel of kvbench, with its interface beside it."""
    try:
        with named.opened(wheel) as file, ZipFile(file) as packed:
            library, interface = (packed.read(f"kvbench/{name}") for name in (LIBRARY, INTERFACE))
    except OSError as error:
        raise BadLibrary(
            f"cannot read {wheel}: {error.strerror}", "give a wheel, a library or a revision"
        ) from None
    except (BadZipFile, KeyError):
        raise BadLibrary(
            f"{wheel} is not a wheel of kvbench", "name a wheel, a library, a git revision, or ."
        ) from None
    folder = kept_folder() / hashlib.sha256(library + interface).hexdigest()[:24]
    folder.mkdir(exist_ok=True)
    for name, content in ((INTERFACE, interface), (LIBRARY, library)):
        with writing(folder / name, "then gate again"), replacing(folder / name) as to:
            to.write(content)
    return folder / LIBRARY


def _kind(path: Path) -> bytes:
    """The ELF header's magic, word size, byte order and instruction set."""
    try:
        with named.opened(path) as file:
            head = file.read(20)
    except OSError as error:
        raise BadLibrary(
            f"cannot read {path}: {error.strerror}", "name a library, a git revision, or ."
        ) from None
    return head[:6] + head[18:]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- the cache -----------------------------------------------------------------------------------


def kept_folder(name: str = "builds") -> Path:
    folder = cache_folder() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unwritable(
            f"cannot write {folder}: {error.strerror}",
            "set XDG_CACHE_HOME to another folder for builds",
        ) from None
    return folder


# A comment; or a text in quotes, which may look like a comment.
_NOT_CODE = re.compile(
    rb'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL
)


def _key(source: Path, known: Tools, tiers: Tiers = (), bare: bool = False) -> str:
    """A digest of everything that determines the library. `bare`: use C code without comments."""
    version = re.findall(r"^version = .*", (source / "pyproject.toml").read_text(), re.MULTILINE)
    facts = (
        version,
        known.compiler,
        known.environment,
        platform.machine(),
        *([tiers] if tiers else []),
    )
    found = hashlib.sha256(repr(facts).encode())
    for path in sorted((source / "kernels").rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if bare and path.suffix in (".c", ".h"):
                code = _NOT_CODE.sub(lambda found: found[1] or b" ", content)
                content = b"\n".join(filter(None, map(bytes.strip, code.splitlines())))
            found.update(f"\n{path.relative_to(source)} {len(content)}\n".encode() + content)
    return found.hexdigest()[:24]
