"""All errors that kvbench raises. Each has a message of one line, a hint and an exit code:

KvbenchError         2
  BadArgument        2    a value is wrong (also a ValueError)
  Unsupported        2    this CPU, build or operating system cannot do it
  BadRun             2    not a run directory, or a damaged one
  Unwritable         2    the output cannot be written
  process.Failed     2    the process of a peer failed
  WrongAnswer        4    a kernel's result failed its check
  Refused            5    the environment does not allow it
    OutOfMemory      5    there is too little memory (also a MemoryError)
    BadLibrary       5    the kernel library is missing or does not fit
    apart.Ended      5    a child process ended before it answered
  NotComparable      6    two numbers do not belong together
"""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """How a command ends. `about` is the text in kvbench --help."""

    about: str

    def __new__(cls, code: int, about: str) -> Self:
        found = int.__new__(cls, code)
        found._value_, found.about = code, about
        return found

    FINE = 0, "fine"
    FAILED = 1, "a confirmed regression, or kvbench verify failed"
    USAGE = 2, "usage, bad input, output that cannot be written, or an error inside kvbench"
    UNCLEAR = 3, "inconclusive, or contaminated by other work"
    ERRORS = 4, "finished, but some measurements failed"
    REFUSED = 5, "the environment does not allow it"
    NOTHING = 6, "nothing is comparable"
    INTERRUPTED = 130, "interrupted; kvbench sweep --out DIR --resume finishes a sweep"


_USUAL = {code: code.about for code in (Exit.FINE, Exit.USAGE, Exit.REFUSED)} | {
    Exit.INTERRUPTED: "interrupted"
}
_RUN = _USUAL | {
    Exit.ERRORS: "finished, but some points failed",
    Exit.NOTHING: "--resume: kvbench, the suite or the machine has changed since",
    Exit.INTERRUPTED: "interrupted; the command to resume is printed",
}
_VERDICT = _USUAL | {
    Exit.FINE: "no regression",
    Exit.FAILED: "a confirmed regression",
    Exit.UNCLEAR: Exit.UNCLEAR.about,
    Exit.NOTHING: Exit.NOTHING.about,
}
# by command, for scripts: every code that the command ends with
_CODES: dict[str, dict[Exit, str]] = {
    "compare": (
        dict(pair for pair in _VERDICT.items() if pair[0] != Exit.REFUSED)
        | {
            Exit.FINE: "compared; with --gate also: no regression",
            Exit.FAILED: "with --gate: a confirmed regression",
            Exit.UNCLEAR: f"with --gate: {Exit.UNCLEAR.about}",
        }
    ),
    "gate": _VERDICT | {Exit.ERRORS: "a kernel crashed or gave a wrong answer"},
    "peers": _RUN,
    "profile": _USUAL | {Exit.ERRORS: "a kernel crashed or gave a wrong answer"},
    "sweep": _RUN,
    "verify": (
        _USUAL
        | {
            Exit.FINE: "every kernel is right",
            Exit.FAILED: "a kernel is wrong, or a fault was missed",
        }
    ),
}


def exit_codes(command: str) -> dict[Exit, str]:
    """What each exit code of a command means, lowest code first. Empty if only kvbench --help lists
    it.
    """
    return dict(sorted(_CODES.get(command, {}).items()))


class KvbenchError(Exception):
    """Base of all errors here. `hint` says what to do next; it is never empty."""

    exit_code = Exit.USAGE

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:  # to travel between processes
        return type(self), (self.args[0], self.hint)

    def __str__(self) -> str:
        return f"{self.args[0]} ({self.hint})"


class BadArgument(KvbenchError, ValueError):
    """A value is wrong; the message names the argument."""


class Unsupported(KvbenchError):
    """This CPU, this build or this operating system cannot do what was asked for."""


class Refused(KvbenchError):
    """The environment (operating system, installation, memory) does not allow it."""

    exit_code = Exit.REFUSED


class OutOfMemory(Refused, MemoryError):
    """There is too little memory."""


class BadLibrary(Refused):
    """The kernel library is missing, or was built from another interface."""


class WrongAnswer(KvbenchError):
    """A kernel's result failed its check; no time may be reported for it."""

    exit_code = Exit.ERRORS


class BadRun(KvbenchError):
    """The folder is not a run directory, or was damaged; the message names the file and what is
    wrong.
    """


class Unwritable(KvbenchError):
    """The output cannot be written: no room, no permission, or another process writes it."""


class NotComparable(KvbenchError):
    """Two numbers do not belong together; the message names what differs."""

    exit_code = Exit.NOTHING


def refuse_beyond(argument: str, value: float, limits: tuple[float, float]) -> None:
    """Raise BadArgument if a value is outside its limits; NaN always is."""
    least, most = limits
    if not least <= value <= most:
        raise BadArgument(f"{argument} is {str(value)[:60]}", f"{least:g} to {most:g}")


def unknown_word(argument: str, word: object, allowed: Iterable[str]) -> BadArgument:
    return BadArgument(f"{argument}: {word!r} is not known", one_of(word, allowed))


def one_of(word: object, allowed: Iterable[str]) -> str:
    """The hint for an unknown word: the nearest allowed word, then all of them."""
    allowed = tuple(allowed)
    near = get_close_matches(word[:60], allowed, 1, 0.5) if isinstance(word, str) else ()
    return (f"did you mean {near[0]}? " if near else "") + f"one of: {', '.join(allowed)}"
