"""A folder for what nobody needs once its process is gone. One that a killed process has left is removed by the next.

The owner holds a lock on the folder itself. The system takes that back however the process ends, so that no other one
with the same number, later or in another container, is mistaken for it.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = ".kvbench-scratch-"  # nobody names a run so
_NEW = ".kvbench-new-"  # until it is locked
_NAME = re.compile(re.escape(_PREFIX) + "[a-z0-9_]{8}")  # as tempfile makes it
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def scratch() -> Iterator[Path]:
    """In the system's temporary folder."""
    _clear()
    new = tempfile.mkdtemp(prefix=_NEW)
    lock = os.open(new, _FOLDER)
    try:
        with suppress(OSError):  # a file system without locks: then nobody clears it away either
            fcntl.flock(lock, fcntl.LOCK_EX)
        folder = Path(new).rename(new.replace(_NEW, _PREFIX))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _clear() -> None:
    """Away with our own that nobody holds."""
    root = Path(tempfile.gettempdir())
    for path in [root / name for name in os.listdir(root) if _NAME.fullmatch(name)]:
        with suppress(OSError):  # a link, another user's, or held
            lock = os.open(path, _FOLDER)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(path)
            finally:
                os.close(lock)
