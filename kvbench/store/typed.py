"""JSON as values of frozen dataclasses, by the types of their fields. What does not fit is a ValueError naming where.

Numbers are finite and of a size that a measurement can have; whole numbers are counts or seeds, so never negative.
"""

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

_COUNT = 1 << 63  # tables hold no more
_NUMBER = 1e30
_SHOWN = 60  # characters

_Read = Callable[[Any], Any]


class _Misfit(ValueError):
    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self._why, self._path = why, path

    def below(self, key: object) -> "_Misfit":
        key = f"[{key}]" if isinstance(key, int) else str(key)[:_SHOWN]
        dot = "." if self._path and not self._path.startswith("[") else ""
        return _Misfit(self._why, f"{key}{dot}{self._path}")


def read(kind: Any, value: Any) -> Any:
    """A value of a dataclass, or of what its fields may be. What is such a value already is taken as it is."""
    return _reader(kind)(value)


def as_object(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _no("no object", value)


@cache
def _reader(kind: Any) -> _Read:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if is_dataclass(kind):
        return _dataclass(kind)
    if get_origin(kind) is tuple:
        return _tuple(_reader(get_args(kind)[0]))
    if get_origin(kind) is dict:
        return _dict(_reader(get_args(kind)[1]))
    if isinstance(kind, UnionType):
        return _union([member for member in get_args(kind) if member is not NoneType], NoneType in get_args(kind))
    raise TypeError(f"{kind} is not read from JSON")


def _no(what: str, value: Any) -> _Misfit:
    text = repr(value)
    return _Misfit(f"{text if len(text) <= _SHOWN else text[:_SHOWN] + '...'} is {what}")


# ---- single values ---------------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    """Without halves of characters, which JSON can spell and paths can hold: no file could be written with them."""
    if not isinstance(value, str):
        raise _no("no text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _no("no text that can be written", value) from None
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _no("neither true nor false", value)


def _count(value: Any) -> int:
    if type(value) is not int:
        raise _no("no whole number", value)
    if not 0 <= value < _COUNT:
        raise _Misfit("a number is negative or too large")
    return value


def _number(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise _no("no number", value)
    if not -_NUMBER < value < _NUMBER:
        raise _Misfit("a number is too large, or none")
    return float(value)


def _anything(value: Any) -> Any:
    """Any JSON whose texts and numbers are such."""
    if isinstance(value, dict):
        return _dict(_anything)(value)
    if isinstance(value, list):
        return list(_tuple(_anything)(value))
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value) or type(value) is int and abs(value) >= _COUNT:
        raise _Misfit("a number is too large, or none")
    return value


_PLAIN: dict[Any, _Read] = {str: _text, bool: _flag, int: _count, float: _number, Any: _anything}


# ---- what holds others -----------------------------------------------------------------------------------------------


def _tuple(item: _Read) -> _Read:
    def all_of(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise _no("no list", value)
        found, index = [], 0
        try:
            for index, single in enumerate(value):
                found.append(item(single))
        except _Misfit as misfit:
            raise misfit.below(index) from None
        return tuple(found)

    return all_of


def _dict(item: _Read) -> _Read:
    def all_of(value: Any) -> dict[str, Any]:
        items = as_object(value).items()
        found, key = {}, ""
        try:
            for key, single in items:
                found[_text(key)] = item(single)
        except _Misfit as misfit:
            raise misfit.below(key) from None
        return found

    return all_of


def _union(members: list[Any], optional: bool) -> _Read:
    """Of several dataclasses it is the one whose fields are named."""
    names = {member: {field.name for field in fields(member)} for member in members if is_dataclass(member)}

    def one(value: Any) -> Any:
        if value is None and optional:
            return None
        if len(members) == 1 or not isinstance(value, dict):
            found = next((member for member in members if isinstance(value, member)), members[0])
        else:
            found = max(members, key=lambda member: len(names[member] & value.keys()))
        return _reader(found)(value)

    return one


def _dataclass(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}

    def whole(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        if as_object(value).keys() != readers.keys():
            _named(value, needed, readers)
        found, name = {}, ""
        try:
            for name, single in value.items():
                found[name] = readers[name](single)
        except _Misfit as misfit:
            raise misfit.below(name) from None
        return kind(**found)

    return whole


def _named(value: dict[str, Any], needed: set[str], known: dict[str, _Read]) -> None:
    if missing := needed - value.keys():
        raise _Misfit("is missing", min(missing))
    if strange := value.keys() - known.keys():
        raise _Misfit("is not known", min(strange)[:_SHOWN])
