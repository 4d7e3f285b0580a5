"""Write a comparison in forms that other tools read. Each form is one function from a Comparison to
text.
"""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

from kvbench.errors import unknown_word
from kvbench.exports import junit, markdown, numbers
from kvbench.model import Comparison, Judged
from kvbench.store import write_text
from kvbench.store.files import writing
from kvbench.texts import printable

_LARGEST = 1e30  # every measured time, rate or share is far below it, and its multiples are finite
_FORMS: dict[str, Callable[[Comparison], str]] = {
    "markdown": partial(markdown.fitted, limit=markdown.SUMMARY),
    "comment": partial(markdown.fitted, limit=markdown.COMMENT),
    "junit": junit.junit,
    "annotations": markdown.annotations,
    "github-bigger": partial(numbers.github, unit="GB/s", name="head_gbps", times=1.0),
    "github-smaller": partial(numbers.github, unit="ns", name="head_seconds", times=1e9),
    "bencher": numbers.bencher,
    "csv": numbers.table,
}


def kinds() -> tuple[str, ...]:
    return tuple(_FORMS)


def write(comparison: Comparison, kind: str, path: Path | str | None = None) -> str:
    """Return the text. If a path is given, also replace that file in one step, or write to that
    pipe or device.
    """
    if kind not in _FORMS:
        raise unknown_word("export", kind, kinds())
    text = _FORMS[kind](_sound(comparison))
    if path is not None:
        with writing(Path(path), "then compare again"):
            write_text(Path(path), text, asked=True)
    return text


def _sound(value: Any) -> Any:
    """Make all texts one-line and printable and all numbers finite, so that every form can hold
    them.
    """
    if isinstance(value, tuple):
        return tuple(map(_sound, value))
    if isinstance(value, Comparison | Judged):
        return replace(
            value, **{field.name: _sound(getattr(value, field.name)) for field in fields(value)}
        )
    if isinstance(value, str):
        return printable(value)
    known = isinstance(value, Real) and math.isfinite(value) and abs(float(value)) < _LARGEST
    return value if known else None
