"""Files that are complete or absent, whenever the process ends; and the system's errors as ours."""

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
    """Replace a file in one step; a missing folder is made. Halves of characters, as a folder's
    name may have, become escapes. `asked`: as in replacing().
    """
    with within(path.parent), replacing(path, asked) as file:
        file.write(text.encode(errors="backslashreplace"))


def read_json(path: Path, follow: bool = False) -> Any:
    """Parse a JSON file. Call it within reading(): the file may hold anything."""
    return parsed(named.text(path, named.KEPT, follow))


@contextmanager
def replacing(path: Path, asked: bool = False) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the old one at the end. If the end is not reached, the old file
    stays.

    `asked`: the user named this file. Then it may be a link, and its target is replaced; a pipe or
    a device is written to. Our own files may not be links.
    """
    if streams(path, asked):
        # An error if nobody reads the pipe.
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
    """Copy an ordinary file onto the disk. Raises OSError for a link, a pipe, a device or a folder;
    none of them is opened.
    """
    with named.opened(source, follow=False) as file, to.open("wb") as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())


def streams(path: Path, asked: bool) -> bool:
    """Whether the path is a pipe or a device, which cannot be replaced. Raises OSError if it may
    not be written.
    """
    if path.is_symlink() and not asked:
        raise OSError(errno.ELOOP, "it is a link, not a file", str(path))
    if asked and (whose := owner(Path(os.path.realpath(path)))):
        raise OSError(errno.EEXIST, f"it is a file of {whose}, which would be lost", str(path))
    try:
        found = os.stat(path)  # also follows links of /proc that lead to no path
    except FileNotFoundError:
        return False
    if asked and (stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        return True
    named.refuse_kind(path, found)
    return False


def refuse_output(path: Path, then: str) -> None:
    """Refuse an unwritable file before minutes of measuring, not after them."""
    with writing(path, then):
        if not streams(path, asked=True):
            folder = next(folder for folder in path.absolute().parents if folder.exists())
            TemporaryFile(dir=folder).close()


@contextmanager
def within(folder: Path) -> Iterator[None]:
    """Use a folder, made if missing, with its name on the disk. Folders that were made and left
    empty are removed again.
    """
    made = make_folder(folder)
    try:
        yield
    finally:
        for each in reversed(made):
            with suppress(OSError):
                each.rmdir()


def make_folder(path: Path) -> list[Path]:
    """Make a folder and those above it. Returns the ones that were missing, the outermost first."""
    missing = takewhile(lambda folder: not folder.exists(), (path, *path.parents))
    made = []
    for folder in reversed(list(missing)):
        with suppress(FileExistsError):  # another process made it first
            folder.mkdir()
            made.append(folder)
        sync_folder(folder.parent)
    path.mkdir(exist_ok=True)  # raises if it is a file
    return made


def sync_folder(path: Path) -> None:
    """Write the names in a folder to the disk. Some file systems cannot."""
    with suppress(OSError):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an unreadable or unexpected file into BadRun."""
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
            "it was damaged, or another version of kvbench wrote it: sweep again into another"
            " folder",
        ) from None


@contextmanager
def writing(
    path: Path, then: str = "the records so far are complete, and --resume continues"
) -> Iterator[None]:
    """Turn a write error into Unwritable. `then`: what to do when there is room."""
    try:
        yield
    except OSError as error:
        # the file in the folder
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
    """An error in one line."""
    return " ".join(str(error).split())[:200]
