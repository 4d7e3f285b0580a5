"""Files that are whole or not there, whenever the process ends; and what the system says of them as errors of ours."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from kvbench import named
from kvbench.errors import BadRun, Unwritable
from kvbench.store.values import line, parsed

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_json(path: Path, value: Any, asked: bool = False) -> None:
    write_text(path, msgspec.json.format(line(value), indent=1), asked)


def write_text(path: Path, text: str, asked: bool = False) -> None:
    """Replace a file in one step; its folder is made where it is missing. Halves of characters, as the name of a folder
    may hold them, become escapes. `asked` is that of replacing()."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, asked) as file:
        file.write(text.encode(errors="backslashreplace"))


def read_json(path: Path, follow: bool = False) -> Any:
    """Within reading(), for a file may be anything."""
    return parsed(named.text(path, named.KEPT, follow))


@contextmanager
def replacing(path: Path, asked: bool = False) -> Iterator[IO[bytes]]:
    """A new file, which takes the place of the old one at the end; where that is not reached, the old one stays.

    `asked`: somebody has named this file. Then it may be a link, and what that leads to is replaced; and a pipe or a
    device stays what it is and is written to. Of our own files none may be a link.
    """
    if streams(path, asked):
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)  # an error where nobody reads a pipe
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path)) if asked else path
    part = part_of(path)
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def streams(path: Path, asked: bool) -> bool:
    """Whether it is a pipe or a device, which cannot be replaced. OSError for what is nothing to be written."""
    if path.is_symlink() and not asked:
        raise OSError(errno.ELOOP, "it is a link, and must be a file of its own", str(path))
    try:
        found = os.stat(path)  # by the links of /proc, too, which lead to no path
    except FileNotFoundError:
        return False
    if asked and (stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        return True
    named.refuse_kind(path, found)
    return False


def refuse_output(path: Path, then: str) -> None:
    """Before minutes of measuring, not after them: a file that could not be written."""
    with writing(path, then):
        if not streams(path, asked=True):
            folder = next(folder for folder in path.absolute().parents if folder.exists())
            TemporaryFile(dir=folder).close()


def part_of(path: Path) -> Path:
    """A new file until it is whole. What a process that was killed has left of it is in nobody's way."""
    return path.with_name(f".{path.name}.part")


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
        found = error.filename if error.errno == errno.ELOOP else path  # which of the files in a folder
        raise Unwritable(f"cannot write {found}: {error.strerror}", hint) from None


def short(error: Exception) -> str:
    """In one line."""
    return " ".join(str(error).split())[:200]
