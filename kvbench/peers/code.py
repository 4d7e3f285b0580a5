"""Move an engine's code to fresh memory. All processes that map a file share its physical addresses
as long as the system keeps it. Good or bad addresses would then be the same in every launch, and
look like a property of the code.
"""

import ctypes
import platform
from collections.abc import Iterator
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE
from pathlib import Path
from typing import Any, NamedTuple

_MAYMOVE, _FIXED = 1, 2  # flags of mremap
_NO_HUGE = 15  # MADV_NOHUGEPAGE: mapped files have no huge pages either
_FAILED = ctypes.c_void_p(-1).value
_RIGHTS = {"r-xp": PROT_READ | PROT_EXEC, "r--p": PROT_READ}  # of mappings that nobody writes to


class Mapping(NamedTuple):
    """A mapped part of a file, at address `start`."""

    start: int
    size: int
    rights: int
    file: str


def mapped() -> Iterator[Mapping]:
    """The mapped files of this process that are not writable."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, rights, _, _, _, *file = line.split(maxsplit=5)
        if rights in _RIGHTS and file and file[0].startswith("/"):
            start, end = (int(each, 16) for each in where.split("-"))
            yield Mapping(start, end - start, _RIGHTS[rights], file[0])


def place_anew(known: set[str]) -> int:
    """Copy the mapped code of all files but `known` to memory of this process, at the same virtual
    addresses. Returns how many bytes. Arm is skipped, because its instruction caches would have to
    be flushed.
    """
    if platform.machine() != "x86_64":
        return 0
    libc = _libc()
    return sum(each.size for each in [*mapped()] if each.file not in known and _moved(libc, each))


def _libc() -> Any:
    libc, word, address = ctypes.CDLL(None), ctypes.c_size_t, ctypes.c_void_p
    libc.mmap.restype = libc.mremap.restype = address
    libc.mmap.argtypes = [address, word, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mremap.argtypes = [address, word, word, ctypes.c_int, address]
    libc.mprotect.argtypes = libc.madvise.argtypes = [address, word, ctypes.c_int]
    libc.munmap.argtypes = [address, word]
    return libc


def _moved(libc: Any, own: Mapping) -> bool:
    """Whether the move succeeded: some systems forbid running code that was written."""
    anonymous = MAP_PRIVATE | MAP_ANONYMOUS
    copy = libc.mmap(None, own.size, PROT_READ | PROT_WRITE, anonymous, -1, 0)
    if copy == _FAILED:
        return False
    libc.madvise(copy, own.size, _NO_HUGE)
    ctypes.memmove(copy, own.start, own.size)
    if libc.mprotect(copy, own.size, own.rights) == 0:
        over = libc.mremap(copy, own.size, own.size, _MAYMOVE | _FIXED, own.start)
        if over == own.start:
            return True
    libc.munmap(copy, own.size)
    return False
