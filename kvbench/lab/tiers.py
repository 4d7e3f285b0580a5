"""Where pages of a cache may lie while nobody reads them: elsewhere in memory, or in a file.

A page is a block of tokens of all layers: it leaves as one record, and comes back to where it was.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol, Self

import numpy as np
import psutil

from kvbench.errors import Refused
from kvbench.native import Arena, Library
from kvbench.store.files import writing
from kvbench.units import size

_AGAIN = "then run it again"
_IN_MEMORY = ("tmpfs", "ramfs")


class Tier(Protocol):
    """`about`: what it is, in a sentence."""

    name: str
    about: str

    def put(self, pages: Iterable[int]) -> None: ...

    def fetch(self, pages: Iterable[int]) -> None: ...


class MemoryTier:
    """`pages`: the cache's, [layers, 2, pages, bytes]. Its threads copy whole pages."""

    name = "memory"

    def __init__(self, pages: np.ndarray, library: Library, pool: Executor) -> None:
        layers, sides, count, each = pages.shape
        self._pages, self._pool, self._arena = pages, pool, Arena(pages.nbytes, library=library)
        self._records = self._arena.view().reshape(count, layers, sides, each)
        self.about = "memory: more of this machine's own, copied by NumPy"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        del self._records
        self._arena.close()

    def put(self, pages: Iterable[int]) -> None:
        list(self._pool.map(lambda page: np.copyto(self._records[page], self._pages[:, :, page]), pages))

    def fetch(self, pages: Iterable[int]) -> None:
        list(self._pool.map(lambda page: np.copyto(self._pages[:, :, page], self._records[page]), pages))


class FileTier:
    """In `folder`, and past the page cache where the file system allows that. The file has no name, so that nothing is
    left of it whatever happens."""

    name = "a file"

    def __init__(self, pages: np.ndarray, folder: Path, pool: Executor) -> None:
        self._pages, self._folder, self._pool = pages, folder, pool
        self._record = pages.nbytes // pages.shape[2]
        with writing(folder, _AGAIN):
            folder.mkdir(parents=True, exist_ok=True)
            free = os.statvfs(folder)
            if free.f_bavail * free.f_frsize < pages.nbytes:
                raise Refused(f"{folder} has no room for {size(pages.nbytes)}", "name another --out")
            self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        try:
            with writing(folder, _AGAIN):
                self._direct = self._past_the_page_cache()
        except BaseException:
            self._file.close()
            raise
        self.about = (
            f"file: {_file_system(folder)}, {self._way()}; what a device or a host behind it caches is not known"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def put(self, pages: Iterable[int]) -> None:
        """Until all of it is on the device."""
        self._move(self._write, pages)

    def fetch(self, pages: Iterable[int]) -> None:
        self._move(self._read, pages)

    def _move(self, move: Callable[[int], None], pages: Iterable[int]) -> None:
        with writing(self._folder, _AGAIN):
            list(self._pool.map(move, pages))
            if move == self._write:
                os.fdatasync(self._file.fileno())
            if not self._direct:
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

    def _past_the_page_cache(self) -> bool:
        """Whether that is possible is seen by trying: of pages, too, whose parts may be too odd for it."""
        file = self._file.fileno()
        flags = fcntl.fcntl(file, fcntl.F_GETFL)
        try:
            fcntl.fcntl(file, fcntl.F_SETFL, flags | os.O_DIRECT)
            self._write(0)
            self._read(0)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            fcntl.fcntl(file, fcntl.F_SETFL, flags)
            return False
        return True

    def _way(self) -> str:
        direct = "past the page cache (O_DIRECT)"
        return (
            direct if self._direct else "which the page cache was told to forget after each use, for want of O_DIRECT"
        )


def _file_system(folder: Path) -> str:
    """The kind of the one that it lies on; one in memory is no device."""
    place, found = folder.resolve(), ""
    mounts = {Path(each.mountpoint): each.fstype for each in psutil.disk_partitions(all=True)}
    for mount in (place, *place.parents):
        if mount in mounts:
            found = mounts[mount]
            break
    return f"{found or 'of an unknown file system'}{' (this is memory, too)' if found in _IN_MEMORY else ''}"
