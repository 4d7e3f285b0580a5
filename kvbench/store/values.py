"""Values as JSON objects and back. A point says by its own fields whether it is a Point or a Probe.

What was read can be computed with: no count that is divided by is 0, no time is negative.
"""

import json
import math
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from kvbench.model import Job, Machine, Point, Probe, Record
from kvbench.store.typed import read

SECONDS = (1e-9, 1e9)  # of anything that was timed
_LATEST = 1e11  # seconds since 1970 that still are a date
ERROR = 1.0  # above all that the oracle allows: an eighth, by q4_0, of values that are less than 8
_MEMORY = {"resident_bytes", "huge_bytes"}  # what shares are formed with


def plain(value: Any) -> Any:
    """A value of the model as what json.dumps takes: as dataclasses.asdict, but that copies numbers and words, too."""
    if names := _names(type(value)):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(inner) for inner in value)
    return value


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def as_json(value: Any) -> Any:
    """Any values as JSON; what it does not know, as text."""
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    known = value is None or isinstance(value, bool | int | str) or isinstance(value, float) and math.isfinite(value)
    return value if known else str(value)


def line(value: Any) -> str:
    """Any values, those of the model among them, as JSON in one line. ValueError where a number is none."""
    return json.dumps(value, default=_by_fields, allow_nan=False, separators=(",", ":"))


def _by_fields(value: Any) -> dict[str, Any]:
    if names := _names(type(value)):
        return {name: getattr(value, name) for name in names}
    raise TypeError(f"{value!r} is no value of JSON")


def parsed(text: str) -> Any:
    """ValueError or RecursionError where it is no JSON, or names a key twice."""
    return json.loads(text, object_pairs_hook=_each_once, parse_constant=_no_constant)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number")


def point(facts: Any) -> Point | Probe:
    """ValueError where it is none."""
    return checked(read(Point | Probe, facts))


def checked(found: Point | Probe) -> Point | Probe:
    if not found.cpus:
        raise ValueError("cpus: there are none")
    if isinstance(found, Point):
        shape = found.shape
        if not min(shape.batch, shape.q_heads, shape.kv_heads, shape.head_dim, shape.context, shape.capacity):
            raise ValueError("shape: a size is 0")
    return found


def job(facts: Any) -> Job:
    """ValueError where it is none."""
    return read(Job, facts)


def machine(facts: Any) -> Machine:
    """ValueError where it is none."""
    return read(Machine, facts)


def record(facts: Any) -> Record:
    """ValueError where it is none. Its point may be read already."""
    found = read(Record, facts)
    checked(found.point)
    for number, sample in enumerate(found.samples):
        if not sample.passes or not SECONDS[0] <= sample.seconds <= SECONDS[1]:
            raise ValueError(f"samples[{number}]: {sample.passes} passes in {sample.seconds:g} s")
        if sample.program not in found.traffic:
            raise ValueError(f"traffic: that of {sample.program[:40]!r} is missing")
    if isinstance(found.point, Point) and any(traffic.compulsory <= 0 for traffic in found.traffic.values()):
        raise ValueError("traffic: a program of a point moves no byte")
    if isinstance(found.point, Probe) and found.point.bytes and any(t.line <= 0 for t in found.traffic.values()):
        raise ValueError("traffic: a probe touches no line")
    if isinstance(found.point, Probe) and found.samples and not found.steps:
        raise ValueError("steps: a probe has samples without")
    if not found.error and not 0 <= found.max_abs_err <= ERROR:
        raise ValueError(f"max_abs_err: an answer that is off by {found.max_abs_err:g} was taken as right")
    if found.memory and not _MEMORY <= found.memory.keys():
        raise ValueError(f"memory: one of {', '.join(sorted(_MEMORY))} is missing")
    if not 0 <= found.began <= _LATEST or not 0 <= found.wall <= SECONDS[1]:
        raise ValueError(f"a visit of {found.wall:g} s at {found.began:g} s")
    return found
