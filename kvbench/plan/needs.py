"""What a point needs: bytes of a slice, slices in rotation, memory. Arithmetic alone; nothing is allocated."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kvbench.model import Point
from kvbench.native import Cache

SIZED_BY = (
    "layout",
    "dtype",
    "block_tokens",
    "inner",
    "scale",
    "pad",
)  # fields of a point that a slice's size rests on


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes of one layer's K and V, those of them that a pass walks, slices in rotation, bytes of all memory at a time."""

    slice_bytes: int
    walked: int
    layers: int
    memory: int


def needs(point: Point, far: int) -> Needs:
    """`far`: the footprint that no cache helps with, as regime.far_bytes() has it for the point's CPUs."""
    count = slice_of(point)
    part = walked(point, count)
    slices = layers(point, part, far)
    return Needs(count, part, slices, memory(point, count, slices, far))


def slice_of(point: Point) -> int:
    shape = point.shape
    facts = {name: getattr(point, name) for name in SIZED_BY}
    return slice_bytes(shape.kv_heads, shape.head_dim, shape.capacity, shape.batch, **facts)


@cache
def slice_bytes(kv_heads: int, head_dim: int, capacity: int, batch: int, **facts: Any) -> int:
    """Bytes of one layer's K and V. Points of a sweep ask the same again and again."""
    return Cache.size_of(kv_heads, head_dim, capacity, batch=batch, **facts)


def tokens_in(wanted: float, up: bool, kv_heads: int, head_dim: int, batch: int, facts: Mapping[str, Any]) -> int:
    """The most tokens whose slice takes no more than `wanted` bytes, 0 where not even one does; or with `up` the
    fewest that take no less."""

    def fits(tokens: int) -> bool:
        count = slice_bytes(kv_heads, head_dim, tokens, batch, **facts)
        return count < wanted if up else count <= wanted

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return high if up else low


def walked(point: Point, count: int) -> int:
    """Bytes of a slice of `count` bytes that a pass walks: a window leaves the rest out."""
    shape = point.shape
    if stores(point) or not shape.window:
        return count
    return max(1, count * min(shape.window, shape.context) // shape.capacity)


def layers(point: Point, part: int, far: int) -> int:
    """Slices in rotation, where `part` bytes of each are walked."""
    if point.shape.layers:
        return point.shape.layers
    if point.residency in ("hot", "evicted"):
        return 1
    return max(1, -(-far // part))


def memory(point: Point, count: int, slices: int, far: int) -> int:
    """The slices, what they are compared with, and the float64 copies of the check."""
    shape = point.shape
    row = shape.batch * shape.context * shape.kv_heads * shape.head_dim
    check = 2 * row * 4 + 3 * row // shape.kv_heads * 8 if row > 0 else 0
    sources = 2 * slices * row * 4 if point.op == "bulk" else 0
    return slices * count * (3 if stores(point) else 1) + sources + check + far


def stores(point: Point) -> bool:
    return point.op != "decode"
