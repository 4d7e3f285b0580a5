"""Compute how far an answer of attention is off if the cache has a number format and a kernel of
the library reads it: the error of the format and of the kernel's rounding together.
"""

from functools import cache

from kvbench.analysis.means.formats import attended, filled, relative_error
from kvbench.model.planes import apart
from kvbench.model.point import TOKEN
from kvbench.native import default_library


def is_ours(dtype: str, variant: str) -> bool:
    """Whether the library has this dtype and this variant."""
    library = default_library()
    known = set(apart(dtype)) <= set(library.words("dtype"))
    return known and variant in library.own_variants


@cache
def output_errors(
    dtype: str, scale: str = "f32", k_scale: str = TOKEN, variant: str = "flash"
) -> dict[str, float]:
    """For each of KEYS: the root mean square error of the kernel, as a share of the exact answer
    from the rows before storing. It is computed with the scalar kernel, because all tiers of a
    variant round alike.
    """
    return {
        keys: relative_error(own.decode(q, variant, "scalar"), attended(q, *rows))
        for keys, q, rows, own in filled(dtype, scale, k_scale)
    }
