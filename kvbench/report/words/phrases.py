"""Numbers and lists, written for sentences and tables."""

import math
from collections.abc import Iterable

from kvbench.analysis.answers.answer import Figure, Unit
from kvbench.model.point import DOT8, DOT16, FLOPS
from kvbench.units import duration

# names of the witness of a point, by its kind
WITNESS = {"twin": "read", "copy": "copy", "memory": "memory read"}
LEVELS = {"DRAM": "memory"}  # what feeds a point, as sentences call it
_PRODUCTS = {FLOPS: "multiply-adds", DOT8: "byte products", DOT16: "bf16 products"}


def peak(*ops: str) -> str:
    """The name of a peak of instructions: "peak of multiply-adds", "peak of byte products and bf16
    products".
    """
    return f"peak of {' and '.join(_PRODUCTS.get(op, op) for op in dict.fromkeys(ops))}"


def number(value: float) -> str:
    """Three digits, never as a power of ten: "23.7", "1234"."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def share(value: float) -> str:
    """A share: "82%", "0.3%"."""
    return f"{value:.0%}" if value >= 0.1 else f"{100 * value:.2g}%"


_WRITTEN = {
    Unit.TIMES: "{:.2f}x".format,
    Unit.LENGTH: "{:.2f}".format,
    Unit.SHARE: share,
    Unit.SECONDS: duration,
    Unit.CONTEXT: "{:,.0f} tokens".format,
}
_BARE = {**_WRITTEN, Unit.TIMES: "{:.2f}".format, Unit.CONTEXT: "{:,.0f}".format}


def figure(found: Figure) -> str:
    """A figure with its unit: "1.25x", "90.2 tokens/s"."""
    write = _WRITTEN.get(found.unit)
    return write(found.value) if write else f"{number(found.value)} {found.unit}"


def bare(found: Figure | None) -> str:
    """A figure without its unit: "1.25", "82%"; empty for None."""
    return _BARE.get(found.unit, number)(found.value) if found else ""


def ends(found: Figure) -> str:
    """An interval: "1.20 to 1.31"; empty if there is none."""
    if math.isnan(found.low) or math.isnan(found.high):
        return ""
    write = _BARE.get(found.unit, number)
    return f"{write(found.low).removesuffix('%')} to {write(found.high)}"


def enclosed(found: Figure) -> str:
    """A figure with its interval: "1.25x (1.20 to 1.31)"."""
    within = ends(found)
    return f"{figure(found)} ({within})" if within else figure(found)


def narrow(found: Figure | None) -> str:
    """ "82% (78-85)", for a cell of a table; empty for None. Ends of shares are rounded outward, so
    89.9 % is never shown as 90 %, which is a limit.
    """
    if found is None or not ends(found):
        return bare(found)
    low, high = found.low, found.high
    if found.unit is Unit.SHARE:
        return f"{bare(found)} ({math.floor(100 * low)}-{math.ceil(100 * high)})"
    write = _BARE[found.unit] if found.unit is Unit.LENGTH else number
    return f"{bare(found)} ({write(low)}-{write(high)})"


def between(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}"


def longer(seconds: float) -> str:
    """A difference of times: "1.2 ms longer", "300 µs shorter"."""
    return f"{duration(abs(seconds))} {'shorter' if seconds < 0 else 'longer'}"


def more(ratio: Figure) -> str:
    """ "more" or "less": on which side of 1 the ratio lies."""
    return "less" if ratio.value < 1 else "more"


def level(regime: str) -> str:
    """The level that feeds a point, as sentences name it: "memory", "L3"."""
    return LEVELS.get(regime, regime)


def listed(items: Iterable[str], most: int | None = None) -> str:
    """Join items: "a, b and c", or "a, b and 3 more" if more than `most`."""
    found = list(items)
    if most is not None and len(found) > most:
        found = [*found[:most], f"{len(found) - most} more"]
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))
