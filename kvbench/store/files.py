"""Files that are whole or not there, whenever the process ends; and what the system says of them as errors of ours."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kvbench.errors import BadRun, Unwritable
from kvbench.store.values import parsed

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1))


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step; its folder is made where it is missing. Halves of characters, as the name of a folder
    may hold them, become escapes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def read_json(path: Path) -> Any:
    """Within reading(), for a file may be anything."""
    if not path.is_file():
        raise ValueError("it is no file")
    return parsed(path.read_bytes().decode())


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file, which takes the place of the old one at the end; where that is not reached, the old one stays."""
    part = path.with_name(f"{_part(path)}{os.getpid()}")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def is_part(path: Path, of: Path) -> bool:
    """Is it what a process that was killed has left of a new file?"""
    return path.name.startswith(_part(of))


def clear_parts(of: Path) -> None:
    """Nobody may be writing the file now."""
    for path in of.parent.iterdir():
        if is_part(path, of):
            path.unlink(missing_ok=True)


def _part(path: Path) -> str:
    return f".{path.name}."


def sync_folder(path: Path) -> None:
    """The names in a folder, onto the disk. Some file systems cannot."""
    with suppress(OSError):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What cannot be read, or is not what it should be, as BadRun."""
    try:
        yield
    except OSError as error:
        raise BadRun(f"cannot read {path}: {error.strerror}", "name a folder that kvbench sweep has written") from None
    except (ValueError, RecursionError) as error:
        hint = "it was damaged, or written by another version of kvbench: sweep again into another folder"
        raise BadRun(f"{path} cannot be used: {short(error)}", hint) from None


@contextmanager
def writing(path: Path, then: str = "what was written is whole, and --resume goes on from there") -> Iterator[None]:
    """What cannot be written as Unwritable. `then`: what to do when there is room."""
    try:
        yield
    except OSError as error:
        hint = f"make room; {then}" if error.errno in _NO_ROOM else "name another --out"
        raise Unwritable(f"cannot write {path}: {error.strerror}", hint) from None


def short(error: Exception) -> str:
    """In one line."""
    return " ".join(str(error).split())[:200]
