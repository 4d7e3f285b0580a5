"""Where pages of a cache may lie while nobody reads them: elsewhere in memory, or in a file.

A page is a block of tokens of all layers: it leaves as one record, and comes back to where it was.
"""

import errno
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from kvbench.closing import Closing
from kvbench.native import Arena, Library
from kvbench.store.files import writing

_AGAIN = "then run it again"


class MemoryTier(Closing):
    """`pages`: the cache's, [layers, 2, pages, bytes]. Its threads copy whole pages."""

    name = "memory"
    about = "memory: more of this machine's own, copied by NumPy"

    def __init__(self, pages: np.ndarray, library: Library, pool: Executor) -> None:
        layers, sides, count, each = pages.shape
        self._pages, self._pool, self._arena = pages, pool, Arena(pages.nbytes, library=library)
        self._records = self._arena.view().reshape(count, layers, sides, each)

    def close(self) -> None:
        del self._records
        self._arena.close()

    def put(self, pages: Iterable[int]) -> None:
        list(self._pool.map(lambda page: np.copyto(self._records[page], self._pages[:, :, page]), pages))

    def fetch(self, pages: Iterable[int]) -> None:
        list(self._pool.map(lambda page: np.copyto(self._pages[:, :, page], self._records[page]), pages))


class FileTier(Closing):
    """In `folder`, without a name, so that nothing is left of it whatever happens."""

    name = "a file"

    def __init__(self, pages: np.ndarray, folder: Path, pool: Executor) -> None:
        self._pages, self._folder, self._pool = pages, folder, pool
        self._record = pages.nbytes // pages.shape[2]
        with writing(folder, _AGAIN):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        self.about = f"file: in {folder}; the page cache is told to forget it after each use, a device or a host is not"

    def close(self) -> None:
        self._file.close()

    def put(self, pages: Iterable[int]) -> None:
        """Until all of it is on the device, or else the page cache could not forget it."""
        self._move(self._write, pages)

    def fetch(self, pages: Iterable[int]) -> None:
        self._move(self._read, pages)

    def _move(self, move: Callable[[int], None], pages: Iterable[int]) -> None:
        with writing(self._folder, _AGAIN):
            list(self._pool.map(move, pages))
            os.fdatasync(self._file.fileno())
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def _write(self, page: int) -> None:
        self._whole(os.pwritev(self._file.fileno(), self._parts(page), page * self._record))

    def _read(self, page: int) -> None:
        self._whole(os.preadv(self._file.fileno(), self._parts(page), page * self._record))

    def _parts(self, page: int) -> list[np.ndarray]:
        return [part for sides in self._pages[:, :, page] for part in sides]

    def _whole(self, moved: int) -> None:
        if moved != self._record:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


Tier = MemoryTier | FileTier  # each says in a sentence what it is `about`
