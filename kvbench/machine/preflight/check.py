"""From a look at the machine to a check."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from kvbench.errors import KvbenchError
from kvbench.machine.preflight.scene import Scene
from kvbench.model import Check


@dataclass(frozen=True, slots=True)
class Finding:
    """A check without its name and its reason. Of what is unknown, `value` says why."""

    status: str
    value: str
    advice: str = ""


def ok(value: str) -> Finding:
    return Finding("ok", value)


def warn(value: str, advice: str) -> Finding:
    return Finding("warn", value, advice)


def judged(fine: bool, value: str, advice: str) -> Finding:
    return ok(value) if fine else warn(value, advice)


def unknown(reason: str, advice: str = "") -> Finding:
    return Finding("unknown", reason, advice)


def check(name: str, why: str) -> Callable[[Callable[[Scene], Finding]], Callable[[Scene], Check]]:
    """Make a check of a function. What it does not find (LookupError), cannot try or does not understand is unknown: no
    crash, and in no words of Python's."""

    def named(look: Callable[[Scene], Finding]) -> Callable[[Scene], Check]:
        @wraps(look)
        def checked(scene: Scene) -> Check:
            try:
                found = look(scene)
            except KvbenchError as error:
                found = unknown(error.args[0], error.hint)
            except OSError as error:
                found = unknown(f"the system does not allow it: {error.strerror or error}")
            except (ValueError, IndexError, KeyError):
                found = unknown("what the system says of it is not understood")
            except LookupError as error:
                found = unknown(str(error))
            return Check(name, found.status, found.value, why, found.advice)

        return checked

    return named
