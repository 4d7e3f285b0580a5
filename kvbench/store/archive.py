"""Pack files into a .tar.gz, and unpack a .tar.gz that anybody may have made.

Only plain headers are read, one after the other. Python's tarfile follows extended headers by
calling itself, and reads each completely: many of them, or a large one, would exhaust the stack or
memory.
"""

import gzip
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from kvbench import named
from kvbench.errors import Unwritable

MOST = 16 << 20  # bytes of an archive; an archive of a score has 0.2 MiB
_BLOCK = tarfile.BLOCKSIZE
_PIECE = 1 << 20  # bytes that are in memory at once
_KINDS = {
    tarfile.LNKTYPE: "a link",
    tarfile.SYMTYPE: "a link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.DIRTYPE: "a folder",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.XHDTYPE: "an extended header",
    tarfile.XGLTYPE: "a global header",
    tarfile.GNUTYPE_LONGNAME: "a long name",
    tarfile.GNUTYPE_LONGLINK: "a long link",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}


def pack(folder: Path, names: Iterable[str], file: IO[bytes]) -> None:
    """Pack the files that exist; of each only name and content."""
    with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            if (folder / name).is_file():
                member = tarfile.TarInfo(name)
                member.size = (folder / name).stat().st_size
                with (folder / name).open("rb") as content:
                    tar.addfile(member, content)


def unpack(file: Path, folder: Path, limits: Mapping[str, int]) -> set[str]:
    """Unpack into a new folder and return the names found. `limits`: allowed names, and the most
    bytes of each. Raises ValueError, naming the member, if the archive holds anything else; OSError
    if it cannot be read; Unwritable if the folder has no room.
    """
    found: set[str] = set()
    with named.opened(file) as packed:
        if packed.seek(0, 2) > MOST:
            raise ValueError(f"it is larger than {MOST >> 20} MiB")
        packed.seek(0)
        with gzip.GzipFile(fileobj=packed, mode="rb") as stream:
            while member := _next(stream, len(found) + 1):
                _refuse(member, found, limits)
                try:
                    _take(stream, member, folder / member.name)
                except OSError as error:
                    raise Unwritable(
                        f"{file}: its {member.name} cannot be unpacked: {error.strerror}",
                        f"free space in {folder.parent}, or set TMPDIR",
                    ) from None
                found.add(member.name)
    return found


def _next(stream: gzip.GzipFile, number: int) -> tarfile.TarInfo | None:
    """Read the header of the next member; None at the end."""
    block = _read(stream, _BLOCK)
    if not block.strip(b"\0"):
        if not block and number == 1:
            raise ValueError("it is empty")
        return None
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")
    except tarfile.HeaderError as error:
        raise ValueError(f"the header of its member {number} cannot be used: {error}") from None


def _refuse(member: tarfile.TarInfo, found: set[str], limits: Mapping[str, int]) -> None:
    name = member.name[:60]
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        kind = _KINDS.get(member.type, f"of kind {member.type!r}")
        raise ValueError(f"its member {len(found) + 1}, {name!r}, is {kind}, not an ordinary file")
    if member.name not in limits or member.name in found:
        raise ValueError(f"it holds {name!r}, which is not a file of a score, or occurs twice")
    if not 0 <= member.size <= limits[member.name]:
        raise ValueError(f"its {name} is larger than {limits[member.name] >> 20} MiB")


def _take(stream: gzip.GzipFile, member: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    left = member.size
    with path.open("wb") as file:
        while left:
            if not (piece := _read(stream, min(left, _PIECE))):
                raise ValueError(f"it ends inside its {member.name}")
            file.write(piece)
            left -= len(piece)
    _read(stream, -member.size % _BLOCK)


def _read(stream: gzip.GzipFile, count: int) -> bytes:
    """Read `count` bytes, fewer at the end."""
    try:
        return stream.read(count)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"it is not a .tar.gz, or is damaged: {error}") from None
