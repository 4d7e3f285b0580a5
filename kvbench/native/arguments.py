"""Convert what Python callers pass to what C expects. A wrong value raises an error that names the
argument.
"""

import operator
from typing import Any, TypeVar

import numpy as np

from kvbench.errors import BadArgument
from kvbench.units import cut

_Kind = TypeVar("_Kind")


def whole(name: str, value: object, bits: int = 64) -> int:
    """Check for an integer that fits a signed integer of `bits` bits."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # or TypeError
    except TypeError:
        raise BadArgument(_is(name, value), "expected is an integer") from None
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise BadArgument(_is(name, number), f"it must fit {bits} bits")
    return number


def place(name: str, value: object, count: int = 1 << 63) -> int:
    """Check for an index from 0 to `count` - 1."""
    if 0 <= (number := whole(name, value)) < count:
        return number
    raise BadArgument(f"{name} is {number}", f"0 to {count - 1}")


def real(name: str, value: Any) -> float:
    """Convert to a double."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadArgument(_is(name, value), "expected is a number") from None


def instance(name: str, value: object, kind: type[_Kind]) -> _Kind:
    if isinstance(value, kind):
        return value
    raise BadArgument(_is(name, value), f"expected is a {kind.__name__}")


_Shape = tuple[int | str, ...]  # a letter stands for any size from 1 on


def floats(name: str, value: Any, *shapes: _Shape) -> np.ndarray:
    """Convert to a C-ordered float32 array of one of these shapes."""
    try:
        array = np.asarray(value)
        array = array.astype(np.float32, order="C", casting="same_kind", copy=False)
    except (TypeError, ValueError) as error:
        raise BadArgument(
            f"{name} is not an array of real numbers: {error}", "pass float32"
        ) from None
    if not any(_fits(array.shape, shape) for shape in shapes):
        wanted = " or ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)
        raise BadArgument(f"{name} has the shape {list(array.shape)}", f"expected is {wanted}")
    return array


def _fits(found: tuple[int, ...], shape: _Shape) -> bool:
    return len(found) == len(shape) and all(
        got == want if isinstance(want, int) else got > 0
        for got, want in zip(found, shape, strict=True)
    )


def positive(name: str, value: Any, count: int) -> list[float]:
    """Check for `count` finite numbers above 0, and round them to float32."""
    with np.errstate(over="ignore"):
        numbers = floats(name, value, (count,))
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise BadArgument(_is(name, value), "each number must be above 0 and fit float32")
    return numbers.tolist()


def _is(name: str, value: object) -> str:
    return f"{name} is {cut(' '.join(repr(value).split()), 80)}"
