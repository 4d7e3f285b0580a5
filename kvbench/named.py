"""Files as somebody names them, or as others may have left them in a run directory: read without
ever waiting.

What is no ordinary file, or larger than it may be, is refused with an OSError, as if the system had
refused it:
`strerror` is the reason, in words that fit a message. Devices are not even opened, for to open one
    may do something.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

WRITTEN = 1 << 20  # bytes of what people write: suites, overrides, the interface of a library
KEPT = 1 << 28  # bytes of what kvbench writes as one value: manifests, profiles
LISTED = 1 << 24  # bytes of a list of numbers
LINE = 1 << 26  # bytes of a line of a journal
_KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFDIR: "folder"}
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def opened(path: Path | str, follow: bool = True) -> BufferedReader:
    """An ordinary file, to be read. `follow`: it may be a link, as what a user names may be."""
    if not follow and os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a link, and must be a file of its own", str(path))
    try:
        refuse_kind(path, os.stat(path))
    except ValueError as error:  # a zero in it, or half of a character
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    descriptor = os.open(path, _FLAGS | (0 if follow else os.O_NOFOLLOW))
    try:
        refuse_kind(path, os.fstat(descriptor))  # it may have been another a moment ago
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def refuse_kind(path: Path | str, found: os.stat_result) -> None:
    """What is no ordinary file."""
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "device")
        raise OSError(errno.EINVAL, f"it is a {kind}, and no ordinary file", str(path))


def text(path: Path | str, most: int, follow: bool = True) -> str:
    """All of a file in UTF-8, of at most so many bytes."""
    with opened(path, follow) as file:
        known = os.fstat(file.fileno()).st_size  # 0 for some that the system makes up
        if known > most or len(found := file.read(most + 1)) > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
    try:
        return found.decode()
    except UnicodeDecodeError as error:
        line = found.count(b"\n", 0, error.start) + 1
        raise OSError(errno.EILSEQ, f"line {line} is not UTF-8", str(path)) from None


def numbers(path: Path | str) -> tuple[int, ...]:
    """Whole numbers from 1 on, that commas, blanks or ends of lines part."""
    words = text(path, LISTED).replace(",", " ").split()
    odd = (word for word in words if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,9}", word))
    if (word := next(odd, None if words else "nothing")) is not None:
        raise OSError(
            errno.EINVAL,
            f"it holds {word[:20]!r}, and is to hold whole numbers from 1 on",
            str(path),
        )
    return tuple(map(int, words))


def lines(path: Path | str, follow: bool = False) -> Iterator[bytes]:
    """With their newlines, of a file of any size. The last one may have none."""
    with opened(path, follow) as file:
        while line := file.readline(LINE + 1):
            if len(line) > LINE:
                raise OSError(errno.EFBIG, f"a line is longer than {LINE >> 20} MiB", str(path))
            yield line
