"""Points that one of two builds cannot measure, with the reason."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from kvbench.errors import KvbenchError
from kvbench.model import SIDES, Point
from kvbench.model.hardware import kernel_id
from kvbench.model.masks import CHAIN
from kvbench.model.planes import apart
from kvbench.model.point import CHANNEL, PLAIN_SCORES
from kvbench.model.shape import EVEN
from kvbench.native import Cache, Library, decode_task
from kvbench.plan.needs import as_cache, sized
from kvbench.plan.site import kernels_of
from kvbench.worker.queries import asked_of

_FEW = 64  # tokens of a cache that shows whether a build can do what a point asks for


def missing(points: Iterable[Point], opened: Mapping[str, Library]) -> dict[Point, str]:
    """The points that a side cannot measure, with reasons. `opened`: the builds by side. `points`
    have the kernels of base.
    """
    there = {kernel.id for kernel in kernels_of(opened["head"])}
    found = ((point, _why(point, there, opened)) for point in points)
    return {point: why for point, why in found if why}


def _why(point: Point, there: set[str], opened: Mapping[str, Library]) -> str:
    """Why a side cannot measure the point; empty if both can."""
    op, variant, layout, word, isa = point.words
    halves = (kernel_id(op, variant, layout, dtype, isa) for dtype in apart(word))
    if not there.issuperset(halves):
        return "only base has this kernel"
    old = [side for side in SIDES if not opened[side].reads_on]
    if point.between and old:
        return f"{' and '.join(old)} cannot read memory between passes"
    return next(filter(None, (_refused(point, side, opened[side]) for side in SIDES)), "")


def _refused(point: Point, side: str, library: Library) -> str:
    """Why a side refuses a pair of dtypes, a width, scales of K by channel, or what changes scores;
    empty if it does not.
    """
    shape = point.shape
    plain = all(getattr(shape, name) == usual for name, usual in PLAIN_SCORES.items())
    if plain and not (point.v_dtype or shape.v_dim or point.k_scale == CHANNEL):
        return ""
    least = replace(
        shape,
        batch=1,
        q_heads=1,
        kv_heads=1,
        context=_FEW,
        capacity=_FEW,
        window=min(shape.window, _FEW // 2),
        kept=min(shape.kept, _FEW // 2),
        lengths=EVEN,
        q_len=1,
        mask=CHAIN,
    )
    facts = as_cache(1, shape.head_dim, sized(point))
    window = least.window or None
    try:
        with Cache(1, shape.head_dim, _FEW, window=window, library=library, **facts) as cache:
            cache.lengths[:] = _FEW
            q, out = (np.zeros((1, 1, dim), np.float32) for dim in cache.dims)
            isa = library.isas()[0]
            with decode_task("decode", cache, q, out, 1, isa=isa, **asked_of(least)):
                return ""
    except KvbenchError as error:
        return f"{side} refuses it: {error.args[0]}"
    except (AttributeError, TypeError):  # from cffi, for a field that the side's interface lacks
        return f"{side} has no such field"
