"""A comparison of which every form can hold every value, so that no form has to look after that itself."""

import math
from dataclasses import fields, replace
from numbers import Real
from typing import Any

from kvbench.model import Comparison, Judged
from kvbench.texts import printable

_LARGEST = 1e30  # no time, rate or share that was measured comes near; its multiples are all finite


def sound(comparison: Comparison) -> Comparison:
    """One-line printable texts, and finite numbers."""
    return replace(comparison, **{field.name: _value(getattr(comparison, field.name)) for field in fields(comparison)})


def _value(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_value, value))
    if isinstance(value, Judged):
        return replace(value, **{field.name: _value(getattr(value, field.name)) for field in fields(value)})
    if isinstance(value, str):
        return printable(value)
    known = isinstance(value, Real) and math.isfinite(value) and abs(value) < _LARGEST
    return value if known else None
