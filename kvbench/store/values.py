"""Values as JSON objects and back, by the types of their fields. A ValueError names the place of
what does not fit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from kvbench.model import Contrast, Point, Probe, Record
from kvbench.model.point import Visited

ERROR = 1.0  # above all that the oracle allows: an eighth, by q4_0, of values that are less than 8
_SHOWN = 60  # characters
_Kind = TypeVar("_Kind")


# ---- to JSON -------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value of the model as dictionaries, lists, numbers and texts. What JSON does not know
    becomes text.
    """
    return msgspec.to_builtins(value, enc_hook=_other)


def line(value: Any, other: Callable[[Any], Any] | None = None) -> str:
    """The same as JSON, in one line; a number that is none is null. ValueError for half a
    character, as paths have. `other`: makes of what JSON does not know something that it does.
    """
    try:
        return msgspec.json.encode(value, enc_hook=other or _other).decode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[:_SHOWN]!r} is no text that can be written") from None


def record_line(found: Record) -> str:
    """A record as JSON, its point by name. TypeError where it holds what no JSON has: what was read
    from JSON does not.
    """
    named: Any = found.point.name
    return line(replace(found, point=named), _float)


def _float(value: Any) -> float:
    """numpy's are."""
    if not isinstance(value, float):
        raise TypeError(f"{type(value).__name__} is none of JSON's")
    return float(value)


def _other(value: Any) -> Any:
    # numpy's numbers are such floats
    return float(value) if isinstance(value, float) else str(value)


# ---- from JSON -----------------------------------------------------------------------------------


def parsed(text: str | bytes) -> Any:
    """ValueError or RecursionError where it is no JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:  # older ones are no ValueError
        raise ValueError(str(error)) from None


def read(kind: type[_Kind], value: Any) -> _Kind:
    """A value of a dataclass, or of what its fields may be. What is such a value already is taken
    as it is; keys that nobody knows are left alone.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_visited)
    except msgspec.ValidationError as error:
        raise _named(error) from None


def decoder(kind: Any, points: Mapping[str, Visited]) -> Callable[[str | bytes], Any]:
    """Of JSON in which points are their names: each of those, as read() has it."""

    def visited(own: type, value: Any) -> Any:
        if isinstance(value, str) and value not in points:
            raise ValueError(f"the run has no point {value[:_SHOWN]!r}")
        return points[value] if isinstance(value, str) else _visited(own, value)

    decode = msgspec.json.Decoder(kind, dec_hook=visited).decode

    def decoded(text: str | bytes) -> Any:
        try:
            return decode(text)
        except msgspec.ValidationError as error:
            raise _named(error) from None
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from None

    return decoded


def _named(error: msgspec.ValidationError) -> ValueError:
    why, _, place = str(error).rpartition(" - at `$")
    return ValueError(f"{place.strip('.`')[:_SHOWN]}: {why}" if why else str(error))


def _visited(kind: type, value: Any) -> Any:
    """By its own fields it says what it is."""
    if not isinstance(value, dict):
        return value
    return read(Point if "shape" in value else Contrast if "factor" in value else Probe, value)


def refuse_unfit(found: Record) -> Record:
    """One that rates can be formed of; else ValueError."""
    if missing := {sample.program for sample in found.samples} - found.traffic.keys():
        raise ValueError(f"traffic: that of {min(missing)[:40]!r} is missing")
    for number, sample in enumerate(found.samples):
        if sample.latency and not _is_latency(sample.latency):
            raise ValueError(
                f"samples[{number}].latency: it has two, and the second is not below the first"
            )
    if not found.error and not 0 <= found.max_abs_err <= ERROR:
        raise ValueError(
            f"max_abs_err: an answer that is off by {found.max_abs_err:g} was taken as right"
        )
    return found


def _is_latency(seconds: Sequence[float]) -> bool:
    """Whether they may be what half of the steps of a chase do not exceed, and what 95 % do not."""
    return len(seconds) == 2 and seconds[0] <= seconds[1]
