"""Which peers exist, and which can be measured here."""

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from kvbench import named
from kvbench.errors import KvbenchError
from kvbench.peers.builds import engine_of
from kvbench.peers.interface import Peer

GROUP = "kvbench.peers"
_FOLDERS = 3  # folders above a given library that are searched for its package's version


@dataclass(frozen=True, slots=True)
class Known:
    """A peer and its state here. `name`: its word, such as ggml@old. `lacking`: why it cannot be
    measured, with a remedy; empty if it can. `library`: the file with its kernels, "" if unknown.
    `python`: its interpreter, "" for this one.
    """

    name: str
    kind: type[Peer] = Peer
    version: str = ""
    lacking: str = ""
    library: str = ""
    python: str = ""

    def takes(self, dtype: str, layout: str) -> bool:
        return dtype in self.kind.formats and layout in self.kind.layouts.split()


@cache
def known(word: str, path: str = "", python: str = "") -> Known:
    """Look up a peer without importing its engine. A foreign module may do anything, but must not
    end this process.
    """
    kind = Peer
    try:
        with _own_interruptions() as interrupted:
            kind = entries()[engine_of(word)].load()
            if python:
                from kvbench.peers.process import elsewhere  # not needed in a peer's process

                version, lacking, library = elsewhere(word, kind, path, python)
            else:
                version, lacking, library = told(kind, path)
            return Known(word, kind, version, lacking, library, python)
    except KvbenchError as error:
        return Known(word, kind, lacking=str(error), python=python)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if interrupted():
            raise
        why = (
            str(error)
            if not isinstance(error, SystemExit)
            else f"importing its module ended Python with {error.code}"
        )
        said = f"{type(error).__name__}: {why}" if why else type(error).__name__
        return Known(word, kind, lacking=said, python=python)


def told(kind: type[Peer], path: str) -> tuple[str, str, str]:
    """An engine's version, what it lacks and its library, in this interpreter."""
    if path and kind.sealed:
        return "", "it only takes its own library; use another interpreter to get another one", ""
    try:
        version, lacking = _version(kind, path), kind.lacks(path)
    except metadata.PackageNotFoundError:
        return "", f"not installed: {kind.install}", ""
    return version, lacking, "" if lacking else kind.library(path)


@cache
def entries() -> dict[str, metadata.EntryPoint]:
    return {
        entry.name: entry
        for entry in sorted(metadata.entry_points(group=GROUP), key=lambda each: each.name)
    }


def digest(path: str) -> str:
    """A digest of the file as it is now; empty if it cannot be read."""
    try:
        found = os.stat(path)
        return _digest(path, found.st_size, found.st_mtime_ns, found.st_ino)
    except OSError:
        return ""


@cache
def _digest(path: str, *state: int) -> str:
    """Read a file only once while it is unchanged: engines are large."""
    with named.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(kind: type[Peer], path: str) -> str:
    """The version of its package, or of the package in which a given library lies."""
    if not kind.package:
        return ""
    if not path:
        return metadata.version(kind.package)
    library = Path(kind.library(path)).resolve()
    folders = list(map(str, library.parents[:_FOLDERS]))
    for package in metadata.distributions(name=kind.package, path=folders):
        if any(Path(str(file.locate())).resolve() == library for file in package.files or ()):
            return package.version
    return ""


@contextmanager
def _own_interruptions() -> Iterator[Callable[[], bool]]:
    """Tell whether a KeyboardInterrupt came from a signal, or from a module."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}

    def noted(which: int, frame: Any) -> None:
        seen.append(which)
        if callable(handler := before[signal.Signals(which)]):
            handler(which, frame)

    for which, handler in before.items():
        if callable(handler):
            signal.signal(which, noted)
    try:
        yield lambda: bool(seen)
    finally:
        for which, handler in before.items():
            if callable(handler):
                signal.signal(which, handler)
