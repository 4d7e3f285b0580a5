"""What rows of a number format are made of, as the library lays them."""

import itertools

from kvbench.native.cache import Cache
from kvbench.native.library import Library

_LINE = 64


def block_of(dtype: str, library: Library | None = None) -> tuple[int, int]:
    """Elements and bytes: of one element, or of as many as a packed row keeps together. Other rows are whole lines."""

    def row(elements: int) -> int:
        return Cache.planned(1, elements, 1, dtype=dtype, library=library).k.row_bytes

    if row(1) % _LINE == 0:
        return 1, row(_LINE) // _LINE  # elements that fill lines leave nothing over
    return next(count for count in itertools.count(1) if row(count + 1) > row(1)), row(1)
