"""A file that is being written: it has a name of its own until it is whole.

Each writer has a part file of its own, and holds a lock on it while it lives. The system frees the
lock of a process that is killed; so a part without a lock is left over, and the next writer of that
file removes it.
"""

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_TRIES = 100  # other writers may remove it between its creation and its lock


@contextmanager
def new_part(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A new file beside `path`, open to be written. At the end it is removed, unless it was
    renamed."""
    part, file = _begun(path)
    with file:
        try:
            yield part, file
        finally:
            part.unlink(missing_ok=True)


def _begun(path: Path) -> tuple[Path, IO[bytes]]:
    for _ in range(_TRIES):
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        file = os.fdopen(os.open(part, _NEW, 0o666), "wb")
        try:
            _lock(file.fileno())
            if _is_at(part, file.fileno()):
                return part, file
        except BaseException:
            part.unlink(missing_ok=True)
            file.close()
            raise
        file.close()
    raise OSError(None, "other processes remove it again and again", str(path))


def is_part(name: str, of: str) -> bool:
    """Whether a file of this name is a part of the one that is called `of`."""
    return bool(re.fullmatch(rf"\.{re.escape(of)}\.[0-9a-f]{{16}}\.part", name))


def remove_left(path: Path) -> None:
    """Parts of this file that processes have left behind that were killed. Those of living ones
    stay."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        for name in [entry.name for entry in entries if is_part(entry.name, path.name)]:
            _remove_unless_locked(path.with_name(name))


def _remove_unless_locked(part: Path) -> None:
    with suppress(OSError):
        file = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(part, file):
                part.unlink()
        finally:
            os.close(file)


def _lock(file: int) -> None:
    """Where the file system has no locks, nobody can take one to remove it."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)


def _is_at(path: Path, file: int) -> bool:
    """A removed file's number may be given to a new one, but not while it is open."""
    with suppress(OSError):
        return os.path.samestat(path.lstat(), os.fstat(file))
    return False
