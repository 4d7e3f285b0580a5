"""Work with NumPy's products on some CPUs: a process of its own does it, for NumPy counts them when it is loaded."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from traceback import format_exc
from typing import Any

from kvbench.errors import KvbenchError, Refused


def apart(cpus: Sequence[int], call: Callable[..., Any], *args: Any) -> Any:
    """What `call` returns or raises. It and its arguments travel, so that it has to be a module's function. Whatever ends
    the wait for it ends the process, too."""
    spawn = get_context("spawn")
    found, answer = spawn.Pipe(duplex=False)
    child = spawn.Process(target=_answer, args=(answer, call, args), daemon=True)
    with found:
        try:
            with answer, _on(cpus), _uninterrupted():
                child.start()
            good, what = found.recv()
        except EOFError:
            child.join()
            raise Refused(
                f"the process of the experiment {_end(child.exitcode)} before it had an answer",
                "it may have been too large for this machine's memory: ask for less --context",
            ) from None
        finally:
            if child.pid is not None:
                child.kill()
                child.join()
    if good:
        return what
    raise what


def _answer(answer: Connection, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        answer.send((True, call(*args)))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is raised there
        if not isinstance(error, KvbenchError):
            error.add_note(format_exc())  # a traceback does not travel
        answer.send((False, error))


def _end(code: int | None) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"


@contextmanager
def _on(cpus: Sequence[int]) -> Iterator[None]:
    """This thread, and the processes that it starts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interruption waits until the process is there to be ended; that never sees it, and prints nothing of it."""
    resource_tracker.ensure_running()  # which would let signals through as it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
