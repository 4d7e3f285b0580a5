"""A pair of number formats beside its halves: bytes, error and speed of each."""

from collections.abc import Sequence
from dataclasses import replace

from kvbench.analysis.means.formats import KEYS, format_errors
from kvbench.errors import unknown_word
from kvbench.model import DEFAULTS
from kvbench.model.explained import Beside, Explained, Half
from kvbench.model.planes import apart, is_pair
from kvbench.native import default_library
from kvbench.sizing.decoder import kept, token_bytes


def shown(asked: Sequence[str], among_all: bool) -> tuple[str, ...]:
    """The formats to show: the default, those asked for, and the halves of pairs. `among_all`: also
    all formats of the library.
    """
    words = default_library().words("dtype")
    found = [half for dtype in asked for half in apart(dtype)]
    if odd := [half for half in found if half not in words]:
        raise unknown_word("--dtype", odd[0], words)
    others = words if among_all or not asked else (DEFAULTS["dtype"],)
    return tuple(sorted({*others, *found, *asked}))


def beside_halves(found: Explained, context: int) -> tuple[Beside, ...]:
    """Each shown pair beside its halves, at the longest context of the table up to `context`."""
    row = max(
        (row for row in found.rows if row.context <= context),
        key=lambda row: row.context,
        default=found.rows[0],
    )
    pairs = [each.dtype for each in found.formats if is_pair(each.dtype)]
    return tuple(
        Beside(
            pair,
            row.context,
            tuple(_half(found, dtype, row.context) for dtype in (*apart(pair), pair)),
        )
        for pair in pairs
    )


def _half(found: Explained, dtype: str, context: int) -> Half:
    decoder = replace(found.decoder, dtype=dtype)
    cell = next(row for row in found.rows if row.context == context).of(dtype)
    errors = format_errors(dtype, decoder.scale)
    return Half(
        dtype=dtype,
        bytes_per_token=kept(decoder) * token_bytes(decoder),
        error=errors[KEYS[0]],
        error_heavy=errors[KEYS[1]],
        alone=decoder.batch / cell.seconds if cell.seconds else None,
        tokens=cell.tokens,
        decode=next(each.decode for each in found.formats if each.dtype == dtype),
    )
