"""By how much an answer of attention is off where the cache has a number format and a kernel of
the library reads it: what the format loses, and what the kernel rounds.
"""

from functools import cache

from kvbench.analysis.means.formats import attended, filled, relative_error
from kvbench.model.planes import apart
from kvbench.model.point import TOKEN
from kvbench.native import default_library


def is_ours(dtype: str, variant: str) -> bool:
    """Whether the library has both."""
    library = default_library()
    known = set(apart(dtype)) <= set(library.words("dtype"))
    return known and variant in library.own_variants


@cache
def output_errors(
    dtype: str, scale: str = "f32", k_scale: str = TOKEN, variant: str = "flash"
) -> dict[str, float]:
    """By KEYS: root mean square, as a share of that of attention to the rows that were stored. Of
    the scalar kernel: all tiers of a variant round alike.
    """
    return {
        keys: relative_error(own.decode(q, variant, "scalar"), attended(q, *rows))
        for keys, q, rows, own in filled(dtype, scale, k_scale)
    }
