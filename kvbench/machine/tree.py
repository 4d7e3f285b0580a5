"""The door to /sys and /proc. A recorded or made-up tree takes their place where $KVBENCH_ROOT
names one.
"""

import os
import re
from pathlib import Path
from typing import Any

from kvbench.errors import BadArgument
from kvbench.model import Fact

UNSAID = "the tree does not say"  # of a made-up one, for which the running system cannot answer


class Files:
    """Reads by absolute path ("/sys/..."), below `root`. What is missing or may not be read is
    None, never an error.
    """

    def __init__(self, root: Path | str | None = None):
        self.root = Path(root) if root else _named()

    @property
    def live(self) -> bool:
        """Whether these are the running system's own files."""
        return self.root == Path("/")

    def text(self, path: str) -> str | None:
        """Without surrounding white space. Bytes that are no text (the device tree's zeros) are
        dropped.
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
        """What follows "name:"; empty where no line begins so."""
        lines = (line.partition(":") for line in (self.text(path) or "").splitlines())
        return next((value.strip() for key, _, value in lines if key == name), "")

    def table(self, path: str, skip: int = 0) -> dict[str, int]:
        """Lines of a name, with or without a colon, and a count; `skip`: words before the name."""
        rows = (line.split()[skip:] for line in (self.text(path) or "").splitlines())
        found = {row[0].rstrip(":"): count(row[1]) for row in rows if len(row) > 1}
        return {name: number for name, number in found.items() if number is not None}

    def processors(self) -> dict[int, dict[str, str]]:
        """Of /proc/cpuinfo, by number. What some kernels say once for all processors stands with
        each of them.
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
        """Absolute paths as text() takes them; numbers in names sort as numbers."""
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
        """Whether there is no such folder, or nothing in it that may be seen."""
        try:
            return next(self._real(path).iterdir(), None) is None
        except OSError:
            return True

    def _real(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def stated(value: Any, source: str, why_not: str) -> Fact:
    """What a file says for sure; or why nobody knows it, where it is None."""
    return Fact(None, source, "none", why_not) if value is None else Fact(value, source, "high")


def _named() -> Path:
    root = Path(os.environ.get("KVBENCH_ROOT") or "/")
    if not root.is_dir():
        raise BadArgument(
            f"KVBENCH_ROOT: there is no folder {root}", "a copy of another machine's /sys and /proc"
        )
    return root


def whole(text: str, base: int = 10) -> int | None:
    """A number that a file may hold: of 64 bits at most. None for what is none."""
    try:
        number = int(text, base)
    except ValueError:
        return None
    return number if -1 << 63 <= number < 1 << 64 else None


def count(text: str, base: int = 10) -> int | None:
    """One from 0 on."""
    number = whole(text, base)
    return None if number is None or number < 0 else number
