"""Axes given on the command line."""

from collections.abc import Iterable
from typing import Any

from kvbench.errors import BadArgument
from kvbench.native import Library
from kvbench.suite.axes import AXES, read_axis, shown, unknown

_FLAGS = {"true": True, "false": False}


def from_options(options: Iterable[str], library: Library | None = None) -> dict[str, tuple[Any, ...]]:
    """ "context=1k,8k" as values by axis; an axis given twice has both. `library`: whose words they are."""
    found: dict[str, list[Any]] = {}
    for option in options:
        name, given, text = option.partition("=")
        name = name.strip()
        if not given:
            raise BadArgument(f"--axis {shown(option)} has no value", "such as --axis context=1k,8k")
        if name not in AXES:
            raise unknown(f"--axis {shown(name)}", name, AXES, "is not an axis")
        found.setdefault(name, []).extend(_items(name, text))
    return {name: read_axis(f"--axis {name}", name, values, library) for name, values in found.items()}


def _items(name: str, text: str) -> list[Any]:
    """At commas; but those of a list of CPUs are its own."""
    if name == "cpus" and text[:1].isdigit():
        return [text]
    return [_FLAGS.get(item, item) if AXES[name].kind == "flag" else item for item in map(str.strip, text.split(","))]
