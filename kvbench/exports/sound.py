"""A comparison of which every form can hold every value, so that no form has to look after that itself."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from numbers import Real
from typing import Any

from kvbench.model import Comparison, Judged
from kvbench.texts import printable

_LARGEST = 1e30  # no time, rate or share that was measured comes near; its multiples are all finite


def sound(comparison: Comparison) -> Comparison:
    """One-line printable texts, finite numbers, and no name twice among the points or among the families."""
    texts = {
        field.name: printable(value)
        for field in fields(comparison)
        if isinstance(value := getattr(comparison, field.name), str)
    }
    return replace(
        comparison,
        **texts,
        points=_sound(comparison.points),
        families=_sound(comparison.families),
        missing=tuple(map(printable, comparison.missing)),
        notes=tuple(map(printable, comparison.notes)),
    )


def unique(names: Iterable[str], longest: int | None = None) -> Iterator[str]:
    """Each in at most so many characters; where one comes again it gets a number."""
    seen: set[str] = set()
    for name in names:
        word, number = name[:longest], 1
        while word in seen:
            number += 1
            ending = f" ({number})"
            word = name[: longest and longest - len(ending)] + ending
        seen.add(word)
        yield word


def moment(created: str) -> datetime | None:
    """In UTC, as which a time without a zone is taken; None if it is no time."""
    try:
        time = datetime.fromisoformat(created)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _sound(judged: Sequence[Judged]) -> tuple[Judged, ...]:
    names = unique(printable(one.name) or "(no name)" for one in judged)
    return tuple(replace(one, **(_values(one) | {"name": name})) for one, name in zip(judged, names, strict=True))


def _values(judged: Judged) -> dict[str, Any]:
    values = {field.name: getattr(judged, field.name) for field in fields(judged)}
    return {name: _value(value) for name, value in values.items() if name != "launches"}


def _value(value: Any) -> str | float | None:
    if isinstance(value, str):
        return printable(value)
    known = isinstance(value, Real) and math.isfinite(value) and abs(value) < _LARGEST
    return float(value) if known else None
