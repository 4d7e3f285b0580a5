"""What a point needs: bytes of a slice, slices in rotation, memory. Arithmetic alone; nothing is allocated."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kvbench.model import Machine, Point, Probe
from kvbench.native import Cache
from kvbench.oracle import BLOCK
from kvbench.regime import far_bytes

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
    """Bytes of one layer's K and V, those of them that a pass walks, and slices in rotation.

    Bytes of memory: `arena`, the slices with what is stored into them; `beside`, what evicts or is compared with them,
    and the check's decoded copies.
    """

    slice_bytes: int
    walked: int
    layers: int
    arena: int
    beside: int

    @property
    def memory(self) -> int:
        return self.arena + self.beside

    @property
    def footprint(self) -> int:
        return self.walked * self.layers


def needs(point: Point, far: int) -> Needs:
    """`far`: the footprint that no cache helps with, as regime.far_bytes() has it for the point's CPUs."""
    count = slice_of(point)
    part = walked(point, count)
    slices = layers(point, part, far)
    return Needs(count, part, slices, slices * count + sources(point, slices), far + _check(point))


def needs_here(points: Iterable[Point | Probe], machine: Machine) -> dict[Point, Needs]:
    """Of each point. Probes have none."""
    return {p: needs(p, far_bytes(machine, p.cpus)) for p in points if isinstance(p, Point)}


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
    """Bytes of a slice of `count` bytes that a pass walks: a window leaves the rest out, a prompt has sources."""
    shape = point.shape
    if stores(point) or not shape.window:
        return count + sources(point, 1)
    return max(1, count * min(shape.window, shape.context) // shape.capacity)


def layers(point: Point, part: int, far: int) -> int:
    """Slices in rotation, where `part` bytes of each are walked."""
    if point.shape.layers:
        return point.shape.layers
    if point.residency in ("hot", "evicted"):
        return 1
    return max(1, -(-far // part))


def sources(point: Point, slices: int) -> int:
    """Bytes of float32 rows to store: each slice has its own, as in a model."""
    tokens = {"append": 1, "bulk": point.shape.context}.get(point.op, 0)
    return 2 * slices * point.shape.batch * tokens * point.shape.kv_heads * point.shape.head_dim * 4


def _check(point: Point) -> int:
    """Scores of all tokens in float64, with two more of one sequence; K and V decoded by blocks."""
    shape = point.shape
    scores = (shape.batch + 2) * shape.q_heads * shape.context * 8
    tokens = shape.context if point.op == "bulk" else min(shape.context, BLOCK)
    return max(0, scores + 4 * shape.batch * tokens * shape.kv_heads * shape.head_dim * 4)


def stores(point: Point) -> bool:
    return point.op != "decode"
