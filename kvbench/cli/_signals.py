"""SIGINT and SIGTERM: the first ends a command in order, a second one at once, and so do a few
seconds after the first.

In any case the exit code is 130, no process is left behind, and what can be gone on with is named.
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
    """Of this process. `timer`: what ends it after the first signal. `said`: what people are told,
    and whether they were.
    """

    timer: threading.Timer | None = None
    message: Callable[[], str] = staticmethod(lambda: _NOTHING)
    told = False


def take_signals() -> Callable[[], None]:
    """From now on they are as above. Returns what puts the former handlers back."""
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
    """The exit code stands: nothing may change it any more."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def was_interrupted() -> bool:
    return _State.timer is not None


def resumable(command: str, run: Path) -> None:
    """An interrupted command is gone on with by `kvbench command --out run --resume`, as soon as
    the run is there.
    """

    def message() -> str:
        if not (run / "manifest.json").exists():
            return _NOTHING
        return f"interrupted; to go on: {resume_command(command, run)}"

    _State.message = message


def begun_anew(command: str) -> None:
    """An interrupted command leaves nothing to go on with: it is `command` once more."""
    _State.message = lambda: f"interrupted, and nothing was kept; once more: {command}"


def interrupted_line() -> str:
    """What is said at the end of a command that was interrupted."""
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
    """At once, from wherever it is: no `finally` of others runs any more, and nothing is
    imported.
    """
    try:
        end_descendants()
        remove_scratch()
        if not _State.told:
            os.write(2, f"{shown(interrupted_line())}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(Exit.INTERRUPTED)


def leave() -> None:
    """The end of a program that was interrupted, all that it had to say being said. Python's own
    end would take an interrupt that once fell into an exec() for one that nobody caught, and turn
    the exit code into a signal.
    """
    _State.told = True
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    _end()


def _unraisable(found: Any) -> None:
    """An interrupt that fell where nothing can be raised is no traceback: the timer ends the
    command.
    """
    if not isinstance(found.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(found)
