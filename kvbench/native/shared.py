"""Shared objects, opened by path."""

import os
import struct
from pathlib import Path
from typing import Any

import cffi

from kvbench import named
from kvbench.errors import BadLibrary

_HINT = "a shared object for this machine is needed"
_HEADER = 64  # bytes of an ELF file of 64 bits, which begins with where its tables are


def opened(ffi: cffi.FFI, path: Path, hint: str = _HINT) -> Any:
    """Not where it is cut off: what is not in the file ends the process when it is touched."""
    refuse_cut(path)
    try:
        return ffi.dlopen(str(path.absolute()))
    except OSError as error:
        why = str(error).partition(".  Additionally")[0]  # cffi goes on about names that are no paths
        raise BadLibrary(why, hint) from None


def refuse_cut(path: Path) -> None:
    """A file whose segments and section table do not lie within it. What is no ELF file is left to the loader."""
    try:
        with named.opened(path) as file:
            here, needed = os.fstat(file.fileno()).st_size, _needed(file.fileno())
    except OSError as error:
        raise BadLibrary(f"cannot read {path}: {error.strerror}", _HINT) from None
    if needed > here:
        raise BadLibrary(f"{path} is cut off: {here:,} of {needed:,} bytes are there", "build or copy it again")


def _needed(file: int) -> int:
    """Bytes that the tables of an ELF file speak of; 0 of other files."""
    head = os.pread(file, _HEADER, 0)
    if len(head) < _HEADER or head[:6] != b"\x7fELF\x02\x01":  # 64 bits, the low byte first
        return 0
    segments, sections = struct.unpack_from("<QQ", head, 32)
    segment, count, section, numbered = struct.unpack_from("<4H", head, 54)
    table = os.pread(file, segment * count, segments)
    rows = (struct.unpack_from("<Q16xQ", table, at + 8) for at in range(0, len(table) - 55, max(segment, 56)))
    return max(segments + segment * count, sections + section * numbered, *(begin + size for begin, size in rows))
