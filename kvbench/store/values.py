"""Values as JSON objects and back, by the types of their fields. A ValueError names the part that
does not fit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from kvbench.model import Contrast, Point, Probe, Record
from kvbench.model.point import Visited

ERROR = 1.0  # above every error that the oracle allows: q4_0 allows an eighth, of values below 8
_SHOWN = 60  # characters
_Kind = TypeVar("_Kind")


# ---- to JSON -------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value of the model as dictionaries, lists, numbers and texts. Types that JSON lacks become
    text.
    """
    return msgspec.to_builtins(value, enc_hook=_other)


def line(value: Any, other: Callable[[Any], Any] | None = None) -> str:
    """A value as JSON in one line; NaN and infinity become null. Raises ValueError for half a
    character, as paths may have. `other`: converts what JSON lacks.
    """
    try:
        return msgspec.json.encode(value, enc_hook=other or _other).decode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[:_SHOWN]!r} cannot be written as text") from None


def record_line(found: Record) -> str:
    """A record as JSON, its point by name. Raises TypeError for a value that JSON lacks; records
    read from JSON have none.
    """
    named: Any = found.point.name
    return line(replace(found, point=named), _float)


def _float(value: Any) -> float:
    """Convert numpy's floats."""
    if not isinstance(value, float):
        raise TypeError(f"JSON has no {type(value).__name__}")
    return float(value)


def _other(value: Any) -> Any:
    # numpy's floats are floats of Python
    return float(value) if isinstance(value, float) else str(value)


# ---- from JSON -----------------------------------------------------------------------------------


def parsed(text: str | bytes) -> Any:
    """Parse JSON. Raises ValueError or RecursionError if the text is not JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:  # not a ValueError in older versions
        raise ValueError(str(error)) from None


def read(kind: type[_Kind], value: Any) -> _Kind:
    """Read a value as a dataclass, or as a type of its fields. A value of that type is returned as
    it is; unknown keys are ignored.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_visited)
    except msgspec.ValidationError as error:
        raise _named(error) from None


def decoder(kind: Any, points: Mapping[str, Visited]) -> Callable[[str | bytes], Any]:
    """A decoder for JSON that has points by name; it replaces the names by the points."""

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
    """A point or contrast, told apart by its fields."""
    if not isinstance(value, dict):
        return value
    return read(Point if "shape" in value else Contrast if "factor" in value else Probe, value)


def refuse_unfit(found: Record) -> Record:
    """Refuse a record from which rates cannot be computed, with a ValueError."""
    if missing := {sample.program for sample in found.samples} - found.traffic.keys():
        raise ValueError(f"traffic: that of {min(missing)[:40]!r} is missing")
    for number, sample in enumerate(found.samples):
        if sample.latency and not _is_latency(sample.latency):
            raise ValueError(
                f"samples[{number}].latency: it has two, and the second is not below the first"
            )
    if not found.error and not 0 <= found.max_abs_err <= ERROR:
        raise ValueError(
            f"max_abs_err: an answer with an error of {found.max_abs_err:g} was accepted"
        )
    return found


def _is_latency(seconds: Sequence[float]) -> bool:
    """Whether these may be the median and the 95th percentile of a chase's steps."""
    return len(seconds) == 2 and seconds[0] <= seconds[1]
