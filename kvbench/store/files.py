"""Files that are whole or not there, whenever the process ends; and what the system says of them as
errors of ours.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from kvbench import named
from kvbench.errors import BadRun, Unwritable
from kvbench.store.names import owner
from kvbench.store.parts import new_part, remove_left
from kvbench.store.values import line, parsed

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
MORE_FILES = "allow more open files: ulimit -n 1024"


def write_json(path: Path, value: Any, asked: bool = False) -> None:
    write_text(path, msgspec.json.format(line(value), indent=1), asked)


def write_text(path: Path, text: str, asked: bool = False) -> None:
    """Replace a file in one step; its folder is made where it is missing. Halves of characters, as
    the name of a folder may hold them, become escapes. `asked` is that of replacing().
    """
    with within(path.parent), replacing(path, asked) as file:
        file.write(text.encode(errors="backslashreplace"))


def read_json(path: Path, follow: bool = False) -> Any:
    """Within reading(), for a file may be anything."""
    return parsed(named.text(path, named.KEPT, follow))


@contextmanager
def replacing(path: Path, asked: bool = False) -> Iterator[IO[bytes]]:
    """A new file, which takes the place of the old one at the end; where that is not reached, the
    old one stays.

    `asked`: somebody has named this file. Then it may be a link, and what that leads to is
    replaced; and a pipe or a device stays what it is and is written to. Of our own files none may
    be a link.
    """
    if streams(path, asked):
        # an error where nobody reads a pipe
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path)) if asked else path
    remove_left(path)
    with new_part(path) as (part, file):
        yield file
        file.flush()
        os.fsync(file.fileno())
        part.replace(path)
    sync_folder(path.parent)


def copy_file(source: Path, to: Path) -> None:
    """An ordinary file, onto the disk. OSError for a link, a pipe, a device or a folder: they are
    not opened.
    """
    with named.opened(source, follow=False) as file, to.open("wb") as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())


def streams(path: Path, asked: bool) -> bool:
    """Whether it is a pipe or a device, which cannot be replaced. OSError for what is nothing to be
    written.
    """
    if path.is_symlink() and not asked:
        raise OSError(errno.ELOOP, "it is a link, and must be a file of its own", str(path))
    if asked and (whose := owner(Path(os.path.realpath(path)))):
        raise OSError(errno.EEXIST, f"it is a file of {whose}, which would be lost", str(path))
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


@contextmanager
def within(folder: Path) -> Iterator[None]:
    """A folder, made where it is missing, its name on the disk. Where nothing was put into those
    that were made, they are taken away again.
    """
    made = make_folder(folder)
    try:
        yield
    finally:
        for each in reversed(made):
            with suppress(OSError):
                each.rmdir()


def make_folder(path: Path) -> list[Path]:
    """With those above it. Returns the ones that were missing, the outermost first."""
    missing = takewhile(lambda folder: not folder.exists(), (path, *path.parents))
    made = []
    for folder in reversed(list(missing)):
        with suppress(FileExistsError):  # another process was faster
            folder.mkdir()
            made.append(folder)
        sync_folder(folder.parent)
    path.mkdir(exist_ok=True)  # an error where it is a file
    return made


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
        hint = (
            MORE_FILES
            if error.errno in _TOO_MANY
            else "name a folder that kvbench sweep has written"
        )
        raise BadRun(f"cannot read {path}: {error.strerror}", hint) from None
    except (ValueError, RecursionError) as error:
        raise BadRun(
            f"{path} cannot be used: {short(error)}",
            "it was damaged, or written by another version of kvbench: sweep again into another"
            " folder",
        ) from None


@contextmanager
def writing(
    path: Path, then: str = "what was written is whole, and --resume goes on from there"
) -> Iterator[None]:
    """What cannot be written as Unwritable. `then`: what to do when there is room."""
    try:
        yield
    except OSError as error:
        # which of the files in a folder
        found = error.filename if error.errno == errno.ELOOP else path
        raise Unwritable(
            f"cannot write {found}: {error.strerror}", _unwritten(error, then)
        ) from None


def _unwritten(error: OSError, then: str) -> str:
    if error.errno in _NO_ROOM:
        return f"make room; {then}"
    if error.errno in _TOO_MANY:
        return f"{MORE_FILES}; {then}"
    return "name another --out"


def short(error: Exception) -> str:
    """In one line."""
    return " ".join(str(error).split())[:200]
