"""Calls in a process of their own: what a call breaks there stays there, and whatever ends the wait ends the process.

The child is `python -m kvbench.apart`. It reads a pickled call from standard input and leaves a pickled result in a file:
a call is a module's function and its arguments. What the call prints goes to standard error.
"""

import ctypes
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from traceback import format_exc
from typing import Any

from kvbench.errors import KvbenchError, Refused

SILENT = "gave no sign of life"
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_SCRATCH: set[str] = set()  # temporary folders of this process


class Ended(Refused):
    """The process ended, or was ended, before it had an answer. `how`: in the past tense."""

    def __init__(self, how: str, hint: str = "it may have been too large for this machine's memory") -> None:
        super().__init__(f"the process {how}, before it had an answer", hint)
        self.how = how


def apart(call: Callable[..., Any], *args: Any, patience: float | None = None) -> Any:
    """What `call` returns or raises. patience: seconds it may take.

    Ended where it gives no answer.
    """
    with TemporaryFile() as answer:
        child = subprocess.Popen(
            [sys.executable, "-Pu", "-m", "kvbench.apart"],
            stdin=subprocess.PIPE,
            stdout=2,
            pass_fds=[answer.fileno()],
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        try:
            child.communicate(pickle.dumps((os.getpid(), answer.fileno(), call, args)), patience)
        except subprocess.TimeoutExpired:
            raise Ended(f"{SILENT} for {patience:g} s: it hangs") from None
        finally:
            kill_group(child)
        answer.seek(0)
        if not (found := answer.read()):
            raise Ended(ending(child.returncode))
    good, what = pickle.loads(found)
    if good:
        return what
    raise what


def ending(code: int) -> str:
    """How a process ended, by what wait() says."""
    if code >= 0:
        return f"ended with exit code {code}"
    known = {member.value: member.name for member in signal.Signals}
    return f"was killed by {known.get(-code, f'signal {-code}')}"


def end_with(parent: int) -> None:
    """A parent that is killed cannot end this process: the system does."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit


def own_output() -> int:
    """A descriptor for what standard output is now. From here on, prints go to standard error."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


class Ear:
    """Waits for a process's pipes, and hears when it has ended: a pipe alone stays open while a child of it lives."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        try:
            self._died = os.pidfd_open(process.pid)
        except OSError:  # a kernel before 5.3
            self._died = None

    def ready(self, pipe: int, event: int, end: float | None) -> bool:
        """False where it has ended and left nothing to read. TimeoutError where nothing comes until `end`."""
        waiting = select.poll()
        waiting.register(pipe, event)
        if self._died is not None:
            waiting.register(self._died, select.POLLIN)
        found = dict(waiting.poll(None if end is None else max(0.0, end - time.monotonic()) * 1e3))
        if not found:
            raise TimeoutError
        return pipe in found

    def close(self) -> None:
        if self._died is not None:
            os.close(self._died)
            self._died = None


def kill_group(child: subprocess.Popen[Any]) -> None:
    """A process that leads a group of its own, and what it has begun."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@contextmanager
def scratch(folder: Path | str | None = None, prefix: str = "kvbench-") -> Iterator[str]:
    """A temporary folder that remove_scratch() knows."""
    made = TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True)
    _SCRATCH.add(made.name)
    try:
        yield made.name
    finally:
        made.cleanup()
        _SCRATCH.discard(made.name)


def remove_scratch() -> None:
    """All such folders of this process, where it ends at once."""
    for folder in tuple(_SCRATCH):
        shutil.rmtree(folder, ignore_errors=True)


def descendants(parent: int) -> list[int]:
    """Processes that this one has begun, those that they have begun, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            child = int(entry.name)
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(child)
    found = children.get(parent, [])
    for child in found:  # which grows meanwhile
        found += children.get(child, [])
    return found


def end_descendants(of: int | None = None) -> None:
    """Of this process, or of another one and that as well. All are stopped first, so that none begins another meanwhile."""
    found = set[int]() if of is None else {of}
    _signal(found, signal.SIGSTOP)
    while new := set(descendants(of or os.getpid())) - found:
        found |= new
        _signal(new, signal.SIGSTOP)
    _signal(found, signal.SIGKILL)


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(OSError):
            os.kill(process, number)


def _answer() -> None:
    """It ends with its answer, and not with what the call has left to be done at an end."""
    if not (asked := sys.stdin.buffer.read()):
        return  # the parent was interrupted before it could ask
    parent, to, call, args = pickle.loads(asked)
    end_with(parent)
    try:
        found = (True, call(*args))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is raised in the parent
        if not isinstance(error, KvbenchError):
            error.add_note(format_exc())  # a traceback does not travel
        found = (False, error)
    with os.fdopen(to, "wb") as file:
        file.write(pickle.dumps(found))
    signal.raise_signal(signal.SIGKILL)


if __name__ == "__main__":
    _answer()
