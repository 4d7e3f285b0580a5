"""Numbers and lists as sentences have them."""

from collections.abc import Iterable, Mapping
from typing import Any

WITNESS = {"twin": "read", "copy": "copy"}  # what a point is timed beside, by its kind
BINDS = {
    "memory": "memory",
    "rows": "reads of its rows",
    "core": "the core",
    "both": "reads and the core",
    "neither": "neither",
}


def number(value: float) -> str:
    """Three digits, never as a power of ten: "23.7", "1234"."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def times(row: Mapping[str, Any], name: str) -> str:
    """ "1.25x (1.20 to 1.31)": a ratio of a table's row, with its interval."""
    return f"{row[name]:.2f}x ({row[f'{name}_low']:.2f} to {row[f'{name}_high']:.2f})"


def between(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}"


def listed(items: Iterable[str], most: int | None = None) -> str:
    """ "a, b and c"; beyond `most` of them, how many more there are."""
    found = list(items)
    if most is not None and len(found) > most:
        found = [*found[:most], f"{len(found) - most} more"]
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))
