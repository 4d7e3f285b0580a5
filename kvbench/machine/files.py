"""The door to /sys and /proc. A recorded or made-up tree takes their place where $KVBENCH_ROOT names one."""

import os
from pathlib import Path


class Files:
    """Reads by absolute path ("/sys/..."), below `root`. What is missing or may not be read is None, never an error."""

    def __init__(self, root: Path | str | None = None):
        self.root = Path(root or os.environ.get("KVBENCH_ROOT") or "/")

    @property
    def live(self) -> bool:
        """Whether these are the running system's own files."""
        return self.root == Path("/")

    def text(self, path: str) -> str | None:
        """Without surrounding white space. Bytes that are no text (the device tree's zeros) are dropped."""
        try:
            return self._real(path).read_bytes().replace(b"\0", b"\n").decode("utf-8", "ignore").strip()
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> int | None:
        text = self.text(path)
        try:
            return None if text is None else int(text, 0)
        except ValueError:
            return None

    def glob(self, pattern: str) -> list[str]:
        """Absolute paths as text() takes them; numbers in names sort as numbers."""
        try:
            found = [f"/{path.relative_to(self.root).as_posix()}" for path in self.root.glob(pattern.lstrip("/"))]
        except OSError:
            return []
        return sorted(found, key=_natural)

    def exists(self, path: str) -> bool:
        try:
            return self._real(path).exists()
        except OSError:
            return False

    def _real(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def _natural(path: str) -> list[tuple[int, str]]:
    """ "cpu10" after "cpu9"."""
    parts: list[tuple[int, str]] = []
    for word in path.split("/"):
        stem = word.rstrip("0123456789")
        parts += [(-1, stem), (int(word[len(stem) :] or -1), "")]
    return parts
