"""Compute what a point needs: bytes of a slice, slices in rotation, memory. Nothing is
allocated.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from kvbench.machine.placement import chaser
from kvbench.model import POINT, Contrast, Machine, Needs, Point
from kvbench.model.chases import NONE
from kvbench.model.masks import CHAIN
from kvbench.model.point import ATTENDS, CHANNEL, PLAIN_SCORES, STEP, Visited
from kvbench.native import Cache, usual_channel
from kvbench.oracle import BLOCK
from kvbench.plan.steps import parts
from kvbench.regime import far_bytes
from kvbench.units import MIB, whole_lines

SIZED_BY = tuple(field.name for field in POINT if field.sized)  # they set a slice's size
PROCESS = 160 * MIB  # a measuring process without the memory of a point
UNCACHED = ("transpose", "logits")  # ops on plain matrices, whose kernels have no layout
ALONE = ("repack",)  # ops that run on one thread
_LINE = 64
_SOME = 256  # tokens from which the size of one token is estimated
# bytes of the objects of a slice: for the slice, and for each sequence and KV head
_OBJECTS, _UNITS = 12 << 10, 256


def needs(point: Point, far: int, chain: int = 0) -> Needs:
    """What a point needs.

    far: the footprint that is too large for the caches of the point's CPUs, from
    regime.far_bytes(). chain: see chain_bytes().
    """
    if point.op == STEP:
        return _of_step(point, far)
    count, rows = slice_of(point), slice_of(replace(point, pad=0))  # padding is not walked
    # as many slices as without kept tokens: the point is timed beside that one
    least = replace(point, shape=replace(point.shape, kept=0))
    slices = _slices(point, _walked(least, rows), far)
    return Needs(
        slice_bytes=count,
        slice_walked=_walked(point, count),
        slices=slices,
        cache_bytes=-(-slices * count // _LINE) * _LINE,
        source_bytes=slices * _sources(point),
        beside=far + _check(point) + slices * _held(point) + chain,
        far=far,
        chain=chain,
    )


def _of_step(step: Point, far: int) -> Needs:
    """The needs of a step with all its layers; a slice is the mean over the layers.

    The rows that each layer stores lie beside it. The bytes read after each layer count as walked.
    """
    found = [needs(part.point, far) for part in parts(step)]
    layers, shape = step.shape.layers, step.shape
    stored = 4 * shape.batch * shape.kv_heads * (shape.head_dim + shape.width_of_v)
    return Needs(
        slice_bytes=sum(each.slice_bytes * each.slices for each in found) // layers,
        slice_walked=sum(each.walked for each in found) // layers + step.between,
        slices=layers,
        cache_bytes=sum(each.cache_bytes for each in found),
        source_bytes=0,
        beside=sum(each.beside for each in found) - (len(found) - 1) * far + layers * stored,
        far=far,
    )


def chain_bytes(machine: Machine, point: Point) -> int:
    """Size of the cycle that a thread chases beside the point: too large for the thread's caches
    and for the point's. 0 without a chase.
    """
    if point.chase == NONE:
        return 0
    cpu = chaser(machine, point.cpus, point.chase)
    own = point.cpus if cpu is None else (cpu,)
    return whole_lines(max(far_bytes(machine, point.cpus), far_bytes(machine, own)))


def room(point: Point, slices: int) -> tuple[object, ...]:
    """The key of points that share memory. They differ only in how, and on which CPUs, they walk
    it.
    """
    facts = tuple(sized(point).values())
    shape = replace(point.shape, q_heads=point.shape.kv_heads, layers=slices, q_len=1, mask=CHAIN)
    shape = replace(shape, **PLAIN_SCORES)
    return (point.op, facts, shape, point.order, point.pages, point.memory)


def needs_here(visited: Iterable[Visited], machine: Machine) -> dict[Point, Needs]:
    """The needs of each point, and of the points of contrasts. Probes have none."""
    own = [point for each in visited for point in members(each)]
    far = {cpus: far_bytes(machine, cpus) for cpus in {point.cpus for point in own}}
    return {point: needs(point, far[point.cpus], chain_bytes(machine, point)) for point in own}


def members(visited: Visited) -> tuple[Point, ...]:
    """The points whose memory a visit uses."""
    if isinstance(visited, Contrast):
        return visited.points
    return (visited,) if isinstance(visited, Point) else ()


def slice_of(point: Point) -> int:
    """Bytes of one slice of a point."""
    shape = point.shape
    if point.op in UNCACHED:  # a row for each token: of the transposed matrix, or of logits
        return _sources(point) * (shape.context if point.op == "logits" else 1)
    heads = shape.kv_heads, shape.head_dim
    return slice_bytes(*heads, shape.capacity, shape.batch, **sized(point))


def sized(point: Point) -> dict[str, Any]:
    """The facts of a point that the size of its slice depends on."""
    own = {name: getattr(point, name) for name in SIZED_BY}
    return sized_by(own | {"dtype": point.kv_dtype, "v_dim": point.shape.v_dim})


def sized_by(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of sized() from one value of each axis, and `v_dim`. Defaults of later fields are
    left out.
    """
    found = {name: facts[name] for name in SIZED_BY if name != "k_scale"}
    found |= {"v_dim": facts["v_dim"]} if facts["v_dim"] else {}
    return found | ({"k_scale": CHANNEL} if facts["k_scale"] == CHANNEL else {})


def as_cache(kv_heads: int, head_dim: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of sized_by() as arguments of a Cache."""
    found = {name: fact for name, fact in facts.items() if name != "k_scale"}
    if "k_scale" in facts:
        found["channel"] = usual_channel(kv_heads, head_dim)
    return found


@cache
def slice_bytes(kv_heads: int, head_dim: int, capacity: int, batch: int, **facts: Any) -> int:
    """Bytes of one layer's K and V. Cached, as is tokens_in(): the points of a sweep repeat the
    question.
    """
    own = as_cache(kv_heads, head_dim, facts)
    return Cache.size_of(kv_heads, head_dim, capacity, batch=batch, **own)


@cache
def tokens_in(
    wanted: float, up: bool, kv_heads: int, head_dim: int, batch: int, **facts: Any
) -> int:
    """The most tokens whose slice takes at most `wanted` bytes; 0 if not even one token fits. With
    `up`, the fewest tokens that take at least as many.
    """

    def fits(tokens: int) -> bool:
        count = slice_bytes(kv_heads, head_dim, tokens, batch, **facts)
        return count < wanted if up else count <= wanted

    each = slice_bytes(kv_heads, head_dim, _SOME, batch, **facts) / _SOME
    around = max(1, round(wanted / each))  # padding shifts it a little
    low, high, step = around - 1, around, 1
    while fits(high):
        low, high, step = high, high + step, 2 * step
    while low and not fits(low):
        low, high, step = max(0, low - step), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return high if up else low


def _walked(point: Point, count: int) -> int:
    """Bytes of a slice of `count` bytes that a pass reads or stores, with the rows that it stores
    from.

    Appends walk along all of a slice, one token at a time. A cache that grows reads and writes
    overlapping bytes, within the slice.
    """
    shape = point.shape
    each = {
        "append": shape.capacity,
        "bulk": shape.context,
        "repack": min(2 * shape.context, shape.capacity),
        **dict.fromkeys(UNCACHED, shape.capacity),
    }.get(point.op)
    if each is None:
        tokens = sum(min(shape.reach or held, held) for held in shape.held)
    else:
        tokens = each * shape.batch
    return max(1, count * tokens // max(shape.capacity * shape.batch, 1)) + _sources(point)


def _slices(point: Point, part: int, far: int) -> int:
    """Slices in rotation. part: bytes of each that count against the caches."""
    if point.shape.layers:
        return point.shape.layers
    if point.residency in ("hot", "evicted"):
        return 1
    return max(1, -(-far // part))


def _sources(point: Point) -> int:
    """Bytes of the float32 rows that one slice is stored from. Each slice has rows of its own, as
    in a model.
    """
    return 4 * sum(map(math.prod, sources(point)))


def sources(point: Point) -> tuple[tuple[int, ...], ...]:
    """Dimensions of the float32 rows that one slice is stored from: K and V of each sequence, or
    logits. Their sizes are 0 if the op stores nothing from outside.
    """
    shape = point.shape
    if point.op == "logits":
        return ((shape.batch, shape.vocabulary),)
    tokens = {"append": 1, "bulk": shape.context, "transpose": shape.context}.get(point.op, 0)
    rows = shape.batch, tokens, shape.kv_heads
    return (*rows, shape.head_dim), (*rows, shape.width_of_v)


def _check(point: Point) -> int:
    """Bytes of a check: the float64 scores of all tokens, those of one sequence twice more, and K
    and V decoded in blocks.
    """
    shape = point.shape
    scores = (shape.batch + 2) * shape.q_len * shape.q_heads * shape.context * 8
    whole = point.op in ("bulk", "repack", "transpose")
    tokens = shape.context if whole else min(shape.context, BLOCK)
    widest = max(shape.head_dim, shape.width_of_v)
    return max(0, scores + 5 * shape.batch * tokens * shape.kv_heads * widest * 4)


def _held(point: Point) -> int:
    """Bytes that a slice needs besides its rows: objects, queries and outputs."""
    shape = point.shape
    rows = shape.q_heads * (shape.head_dim + shape.width_of_v) * 4  # of a query and its answer
    ends = 0 if stores(point) else shape.batch * shape.q_len * rows
    return max(0, ends + _OBJECTS + _UNITS * shape.batch * shape.kv_heads)


def stores(point: Point) -> bool:
    """Whether the op answers no queries."""
    return point.op not in ATTENDS
