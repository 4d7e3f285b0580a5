"""From a look at the machine to a check."""

from collections.abc import Callable
from functools import wraps

from kvbench.errors import KvbenchError
from kvbench.machine.preflight.scene import Scene
from kvbench.model import Check

Finding = tuple[str, str, str]  # status, value and advice of a check; of what is unknown, the value says why


def ok(value: str) -> Finding:
    return "ok", value, ""


def warn(value: str, advice: str) -> Finding:
    return "warn", value, advice


def judged(fine: bool, value: str, advice: str) -> Finding:
    return ok(value) if fine else warn(value, advice)


def unknown(reason: str, advice: str = "") -> Finding:
    return "unknown", reason, advice


def check(name: str, why: str) -> Callable[[Callable[[Scene], Finding]], Callable[[Scene], Check]]:
    """Make a check of a function. What it does not find (LookupError), cannot try or does not understand is unknown: no
    crash, and in no words of Python's."""

    def named(look: Callable[[Scene], Finding]) -> Callable[[Scene], Check]:
        @wraps(look)
        def checked(scene: Scene) -> Check:
            try:
                status, value, advice = look(scene)
            except KvbenchError as error:
                status, value, advice = unknown(error.args[0], error.hint)
            except OSError as error:
                status, value, advice = unknown(f"the system does not allow it: {error.strerror or error}")
            except (ValueError, IndexError, KeyError):
                status, value, advice = unknown("what the system says of it is not understood")
            except LookupError as error:
                status, value, advice = unknown(str(error))
            return Check(name, status, value, why, advice)

        return checked

    return named
