"""Run a call in a child process. Damage by the call stays there, and the child ends when the wait
ends, for whatever reason.

The child is `python -m kvbench.apart`. It reads a pickled call (a module's function and its
arguments) from standard input and leaves a pickled result in a file. Prints of the call go to
standard error.
"""

import ctypes
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryFile
from traceback import format_exc
from typing import Any

from kvbench.errors import KvbenchError, Refused
from kvbench.leftovers import end_descendants

SILENT = "gave no sign of life"
_DEATH_SIGNAL, _ADOPT = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER


class Ended(Refused):
    """The process ended, or was ended, before it answered. `how`: in the past tense."""

    def __init__(
        self, how: str, hint: str = "it may have been too large for this machine's memory"
    ) -> None:
        super().__init__(f"the process {how} before it answered", hint)
        self.how = how


def apart(call: Callable[..., Any], *args: Any, patience: float | None = None) -> Any:
    """Return what `call` returns, or raise what it raises. Raises Ended if the process gives no
    answer.

    patience: seconds that the call may take; by default any time.
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
    """Say how a process ended, from what wait() returned."""
    if code >= 0:
        return f"ended with exit code {code}"
    known = {member.value: member.name for member in signal.Signals}
    return f"was killed by {known.get(-code, f'signal {-code}')}"


def end_with(parent: int) -> None:
    """Let the system end this process when `parent` ends, even if `parent` is killed."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit


def adopt() -> None:
    """Adopt the processes that this process's children leave behind, so that it can find and end
    them.
    """
    ctypes.CDLL(None).prctl(_ADOPT, 1)


def own_output() -> int:
    """A descriptor for the present standard output. From here on, prints go to standard error."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


class Ear:
    """Waits for a process's pipes and notices its end. A pipe alone stays open while a child of the
    process lives.
    """

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        try:
            self._died: int | None = os.pidfd_open(process.pid)
        except OSError:  # kernel older than 5.3
            self._died = None

    def ready(self, pipe: int, event: int, end: float | None) -> bool:
        """Whether the pipe is ready; False if the process has ended and left nothing to read.
        Raises TimeoutError if nothing comes until `end`.
        """
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
    """Kill a process that leads a group, and all that it has started, also processes that left the
    group. If it is dead already, those cannot be found.
    """
    if child.poll() is None:
        end_descendants(child.pid)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _answer() -> None:
    """Answer a call. The process ends with the answer, without the cleanup that the call left for
    its end.
    """
    if not (asked := sys.stdin.buffer.read()):
        return  # the parent was interrupted before it could send a call
    parent, to, call, args = pickle.loads(asked)
    end_with(parent)
    try:
        found = (True, call(*args))
    except Exception as error:  # noqa: BLE001  # any error is raised again in the parent
        if not isinstance(error, KvbenchError):
            error.add_note(format_exc())  # a traceback cannot be pickled
        found = (False, error)
    with os.fdopen(to, "wb") as file:
        file.write(pickle.dumps(found))
    signal.raise_signal(signal.SIGKILL)


if __name__ == "__main__":
    _answer()
