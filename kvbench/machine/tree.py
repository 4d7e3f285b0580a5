"""Access to /sys and /proc. If $KVBENCH_ROOT names a recorded or made-up tree, that is read
instead.
"""

import os
import re
from pathlib import Path
from typing import Any

from kvbench.errors import BadArgument
from kvbench.model import Fact

UNSAID = "the tree does not say"  # the running system cannot answer for it


class Files:
    """Reads files by absolute path ("/sys/...") below `root`. A file that is missing or may not be
    read is None, never an error.
    """

    def __init__(self, root: Path | str | None = None):
        self.root = Path(root) if root else _named()

    @property
    def live(self) -> bool:
        """Whether these are the running system's own files."""
        return self.root == Path("/")

    def text(self, path: str) -> str | None:
        """The text of a file without surrounding white space. Bytes that are not text are dropped
        (the device tree has zeros).
        """
        try:
            return (
                self._real(path)
                .read_bytes()
                .replace(b"\0", b"\n")
                .decode("utf-8", "ignore")
                .strip()
            )
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> int | None:
        return whole(self.text(path) or "", 0)

    def field(self, path: str, name: str) -> str:
        """The rest of the line after "name:"; empty if no line begins with it."""
        lines = (line.partition(":") for line in (self.text(path) or "").splitlines())
        return next((value.strip() for key, _, value in lines if key == name), "")

    def table(self, path: str, skip: int = 0) -> dict[str, int]:
        """Parse lines of a name (with or without a colon) and a count. `skip`: words before the
        name.
        """
        rows = (line.split()[skip:] for line in (self.text(path) or "").splitlines())
        found = {row[0].rstrip(":"): count(row[1]) for row in rows if len(row) > 1}
        return {name: number for name, number in found.items() if number is not None}

    def processors(self) -> dict[int, dict[str, str]]:
        """The processors in /proc/cpuinfo by number. Facts stated once for all processors are
        copied to each of them.
        """
        blocks, common = {}, dict[str, str]()
        for block in (self.text("/proc/cpuinfo") or "").split("\n\n"):
            lines = [line.partition(":") for line in block.splitlines()]
            fields = {name.strip(): value.strip() for name, colon, value in lines if colon}
            number = count(fields.get("processor", ""))
            if number is None:
                common |= fields
            else:
                blocks[number] = fields
        return {cpu: common | fields for cpu, fields in sorted(blocks.items())}

    def glob(self, pattern: str) -> list[str]:
        """Absolute paths as text() takes them, sorted with numbers in names as numbers."""
        try:
            found = [
                f"/{path.relative_to(self.root).as_posix()}"
                for path in self.root.glob(pattern.lstrip("/"))
            ]
        except OSError:
            return []
        return sorted(
            found,
            key=lambda path: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", path)],
        )

    def exists(self, path: str) -> bool:
        try:
            return self._real(path).exists()
        except OSError:
            return False

    def empty(self, path: str) -> bool:
        """Whether a folder is missing, or shows nothing."""
        try:
            return next(self._real(path).iterdir(), None) is None
        except OSError:
            return True

    def _real(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def stated(value: Any, source: str, why_not: str) -> Fact:
    """A fact that a file states for sure; if the value is None, why it is not known."""
    return Fact(None, source, "none", why_not) if value is None else Fact(value, source, "high")


def _named() -> Path:
    root = Path(os.environ.get("KVBENCH_ROOT") or "/")
    if not root.is_dir():
        raise BadArgument(
            f"KVBENCH_ROOT: {root} is not a folder", "name a copy of a /sys and /proc"
        )
    return root


def whole(text: str, base: int = 10) -> int | None:
    """Parse a whole number of at most 64 bits; None if the text is not one."""
    try:
        number = int(text, base)
    except ValueError:
        return None
    return number if -1 << 63 <= number < 1 << 64 else None


def count(text: str, base: int = 10) -> int | None:
    """Parse a whole number from 0 on; None if the text is not one."""
    number = whole(text, base)
    return None if number is None or number < 0 else number
