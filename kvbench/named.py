"""Read files that a user names, or that others may have left in a run directory, without waiting.

A file that is not an ordinary file, or is too large, is refused with an OSError, as if the system
had refused it. `strerror` is the reason, in words that fit a message. Devices are not even opened,
because opening a device may have effects.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

WRITTEN = 1 << 20  # bytes of what people write: suites, overrides, a library's interface
KEPT = 1 << 28  # bytes of one value that kvbench writes: manifests, profiles
LISTED = 1 << 24  # bytes of a list of numbers
LINE = 1 << 26  # bytes of a line of a journal
_KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFDIR: "folder"}
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def opened(path: Path | str, follow: bool = True) -> BufferedReader:
    """Open an ordinary file for reading. `follow`: it may be a link, as for a file that a user
    names.
    """
    if not follow and os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a link, not a file", str(path))
    try:
        refuse_kind(path, os.stat(path))
    except ValueError as error:  # a zero byte in the name, or half of a character
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    descriptor = os.open(path, _FLAGS | (0 if follow else os.O_NOFOLLOW))
    try:
        refuse_kind(path, os.fstat(descriptor))  # the file may have been another one a moment ago
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def refuse_kind(path: Path | str, found: os.stat_result) -> None:
    """Refuse anything but an ordinary file."""
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "device")
        raise OSError(errno.EINVAL, f"it is a {kind}, not an ordinary file", str(path))


def text(path: Path | str, most: int, follow: bool = True) -> str:
    """All of a file in UTF-8, of at most `most` bytes."""
    with opened(path, follow) as file:
        known = os.fstat(file.fileno()).st_size  # 0 for some files that the system makes up
        if known > most or len(found := file.read(most + 1)) > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
    try:
        return found.decode()
    except UnicodeDecodeError as error:
        line = found.count(b"\n", 0, error.start) + 1
        raise OSError(errno.EILSEQ, f"line {line} is not UTF-8", str(path)) from None


def numbers(path: Path | str) -> tuple[int, ...]:
    """Read whole numbers from 1 on, separated by commas, blanks or line ends."""
    words = text(path, LISTED).replace(",", " ").split()
    odd = (word for word in words if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,9}", word))
    if (word := next(odd, None if words else "nothing")) is not None:
        raise OSError(
            errno.EINVAL,
            f"it holds {word[:20]!r}, but must hold whole numbers from 1 on",
            str(path),
        )
    return tuple(map(int, words))


def lines(path: Path | str, follow: bool = False) -> Iterator[bytes]:
    """The lines of a file of any size, with their newlines. The last line may have none."""
    with opened(path, follow) as file:
        while line := file.readline(LINE + 1):
            if len(line) > LINE:
                raise OSError(errno.EFBIG, f"a line is longer than {LINE >> 20} MiB", str(path))
            yield line
