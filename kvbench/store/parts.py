"""Part files: a file has another name until it is complete.

Each writer has its own part file and holds a lock on it. If the writer is killed, the system frees
the lock. So a part without a lock is a leftover, and the next writer of that file removes it.
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
_TRIES = 100  # other writers may remove the part between its creation and its lock


@contextmanager
def new_part(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A new file beside `path`, open for writing. At the end it is removed unless it was
    renamed.
    """
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
    raise OSError(None, "other processes remove it repeatedly", str(path))


def is_part(name: str, of: str) -> bool:
    """Whether a file with this name is a part of the file named `of`."""
    return bool(re.fullmatch(rf"\.{re.escape(of)}\.[0-9a-f]{{16}}\.part", name))


def remove_left(path: Path) -> None:
    """Remove parts of this file that killed processes left behind. Parts of living processes
    stay.
    """
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
    """Lock a part. On a file system without locks nobody can lock it to remove it."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)


def _is_at(path: Path, file: int) -> bool:
    """Whether the path still is this open file. Its number cannot be reused while it is open."""
    with suppress(OSError):
        return os.path.samestat(path.lstat(), os.fstat(file))
    return False
