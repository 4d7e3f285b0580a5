"""End what a process must not leave behind: processes that it has started, and temporary
folders.
"""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SCRATCH: set[str] = set()  # temporary folders of this process
# Processes that were stopped and must be killed. If killing is interrupted, the next caller does
# it. Some of them may not be descendants any more.
_STOPPED: set[int] = set()


@contextmanager
def scratch(folder: Path | str | None = None, prefix: str = "kvbench-") -> Iterator[str]:
    """A temporary folder that remove_scratch() knows."""
    from tempfile import TemporaryDirectory  # slow to import

    made = TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True)
    _SCRATCH.add(made.name)
    try:
        yield made.name
    finally:
        made.cleanup()
        _SCRATCH.discard(made.name)


def remove_scratch() -> None:
    """Remove all such folders of this process, before it ends at once."""
    import shutil

    for folder in tuple(_SCRATCH):
        shutil.rmtree(folder, ignore_errors=True)


def descendants(parent: int) -> list[int]:
    """Processes that `parent` has started, those that they have started, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            child = int(entry.name)
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(child)
    found = children.get(parent, [])
    for child in found:  # the list grows meanwhile
        found += children.get(child, [])
    return found


def end_descendants(of: int | None = None) -> None:
    """End all descendants of this process; or, if `of` is given, that process and its descendants.
    All are stopped first, so that none starts another one meanwhile.
    """
    new = set[int]() if of is None else {of}
    while True:
        _STOPPED.update(new)
        _signal(new, signal.SIGSTOP)
        if not (new := set(descendants(of or os.getpid())) - _STOPPED):
            break
    _signal(tuple(_STOPPED), signal.SIGKILL)
    _STOPPED.clear()


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(OSError):
            os.kill(process, number)
