"""One process at a time, while a file is read, changed and written."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kvbench.store.files import within

_PATIENCE = 30.0  # seconds; reading, changing and writing takes a fraction of one
_POLL = 0.005  # seconds
_HELD = (errno.EWOULDBLOCK, errno.EACCES)


@contextmanager
def locked(folder: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """Hold the lock of a folder, which is made if missing. The lock leaves no file and needs no
    right to write. The system frees it when its holder ends. If a holder is stopped, waiting ends
    with an OSError. On a file system without locks, nothing is locked.
    """
    with within(folder):
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _take(held, folder, time.monotonic() + patience)
            yield
        finally:
            with suppress(OSError):
                # A child that was forked meanwhile has the descriptor too.
                fcntl.flock(held, fcntl.LOCK_UN)
            os.close(held)


def _take(held: int, folder: Path, until: float) -> None:
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in _HELD:
                return
        if time.monotonic() > until:
            raise OSError(
                errno.EWOULDBLOCK, "another process writes there and does not end", str(folder)
            )
        time.sleep(_POLL)
