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
        """Makes the file where it is missing."""
        self._file = path.open("ab", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._size = sum(map(len, lines(path)))
            self._cut()
        except BlockingIOError:
            self._file.close()
            raise Unwritable(
                f"{path.parent} is being written by another process", "wait for it, or name another --out"
            ) from None
        except BaseException:
            self._file.close()
            raise

    def append(self, line: bytes) -> None:
        """A line without its newline. Where it fails the file is as it was, at the latest before the next line. Where it is
        interrupted, so much stands there as was written: a whole line counts for whoever opens the file next."""
        self._cut()
        try:
            left = line + b"\n"
            while left:
                left = left[os.write(self._file.fileno(), left) :]
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                self._cut()
            raise
        self._size += len(line) + 1

    def _cut(self) -> None:
        """Away with what is behind the lines that count."""
        if os.fstat(self._file.fileno()).st_size != self._size:
            os.ftruncate(self._file.fileno(), self._size)
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def lines(path: Path) -> Iterator[bytes]:
    """With their newlines. A writer may be at work on the last one."""
    return (line for line in named.lines(path) if line.endswith(b"\n"))
