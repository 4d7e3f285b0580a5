"""SIGINT and SIGTERM: the first ends a command in order. A second signal ends it at once; so does a
timer, a few seconds after the first.

In each case the exit code is 130, no process is left behind, and a message names the command that
goes on, if there is one.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from kvbench.errors import Exit
from kvbench.leftovers import end_descendants, remove_scratch
from kvbench.texts import resume_command, shown

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GRACE = 4.0  # seconds from the first signal to the end
_NOTHING = "interrupted (run the command again)"


class _State:
    """The state of this process. `timer`: ends it after the first signal. `message`: returns the
    message to print. `told`: whether it was printed.
    """

    timer: threading.Timer | None = None
    message: Callable[[], str] = staticmethod(lambda: _NOTHING)
    told = False


def take_signals() -> Callable[[], None]:
    """Install the handlers. Return a function that puts the former handlers back."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    hook = sys.unraisablehook
    _State.timer, _State.message, _State.told = None, lambda: _NOTHING, False
    for number in _SIGNALS:
        # jobs begun with & ignore Ctrl-C
        if number == signal.SIGTERM or before[number] is not signal.SIG_IGN:
            signal.signal(number, _received)
    sys.unraisablehook = _unraisable

    def put_back() -> None:
        if _State.timer:
            _State.timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook

    return put_back


def ignore_signals() -> None:
    """Ignore both signals from now on: nothing may change the exit code any more."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def was_interrupted() -> bool:
    return _State.timer is not None


def resumable(command: str, run: Path) -> None:
    """Let the message of an interrupt name `kvbench command --out run --resume`, as soon as the run
    directory has a manifest.
    """

    def message() -> str:
        if not (run / "manifest.json").exists():
            return _NOTHING
        return f"interrupted; to go on: {resume_command(command, run)}"

    _State.message = message


def begun_anew(command: str) -> None:
    """Let the message of an interrupt say that nothing was kept, and name `command`."""
    _State.message = lambda: f"interrupted, and nothing was kept; to start again: {command}"


def interrupted_line() -> str:
    """The last line of an interrupted command."""
    _State.told = True
    return f"kvbench: {_State.message()}"


def _received(number: int, frame: FrameType | None) -> None:
    if _State.timer:
        _end()
    _State.timer = threading.Timer(_GRACE, _end)
    _State.timer.daemon = True
    _State.timer.start()
    raise KeyboardInterrupt


def _end() -> None:
    """End the process at once: no other `finally` runs any more, and nothing is imported."""
    try:
        end_descendants()
        remove_scratch()
        if not _State.told:
            os.write(2, f"{shown(interrupted_line())}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(Exit.INTERRUPTED)


def leave() -> None:
    """End an interrupted program that has printed its last line. Python's own exit would take an
    interrupt that once fell into an exec() for an uncaught one, and turn the exit code into a
    signal.
    """
    _State.told = True
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    _end()


def _unraisable(found: Any) -> None:
    """Print no traceback for an interrupt that came where nothing can be raised: the timer will end
    the command.
    """
    if not isinstance(found.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(found)
