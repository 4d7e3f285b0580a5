"""A file of lines that only grows: each is on the disk before the next begins, and one process at a time adds to it.

A line counts once its newline is there. What a killed process has left behind the last newline is not read, and is cut
off before anything is added.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kvbench import named
from kvbench.errors import Unwritable


class Journal:
    """The writer's end. A child process does not keep it, and whoever comes second gets Unwritable."""

    def __init__(self, path: Path) -> None:
        """Makes the file where it is missing. One that is there is as it was, until append()."""
        self._path, flags = path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        self._file = os.fdopen(os.open(path, flags, 0o666), "ab", buffering=0)
        try:
            named.refuse_kind(path, os.fstat(self._file.fileno()))
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._size = sum(map(len, lines(path)))  # of what counts
        except BaseException as error:
            self._file.close()
            if isinstance(error, BlockingIOError):
                what = f"{path.parent} is being written by another process"
                raise Unwritable(what, "wait for it, or name another --out") from None
            raise

    def append(self, line: bytes) -> None:
        """A line without its newline. Where it fails or is interrupted, so much stands there as was written: a whole line
        counts for whoever opens the file next."""
        self.refuse_changed()
        if os.fstat(self._file.fileno()).st_size != self._size:  # away with what is behind the lines that count
            os.ftruncate(self._file.fileno(), self._size)
            os.fsync(self._file.fileno())
        left = line + b"\n"
        while left:
            left = left[os.write(self._file.fileno(), left) :]
        os.fsync(self._file.fileno())
        self._size += len(line) + 1

    def refuse_changed(self) -> None:
        """Unwritable where the file has another place than this process left it at, or is shorter."""
        own = os.fstat(self._file.fileno())
        with suppress(OSError):
            if os.path.samestat(own, self._path.lstat()) and own.st_size >= self._size:
                return
        what = f"{self._path} was changed, moved or removed by another program while it was written"
        raise Unwritable(
            what, "whole lines of it still count: go on with kvbench sweep --resume, and --out with its place"
        )

    def close(self) -> None:
        self._file.close()


def lines(path: Path) -> Iterator[bytes]:
    """With their newlines. A writer may be at work on the last one."""
    return (line for line in named.lines(path) if line.endswith(b"\n"))
