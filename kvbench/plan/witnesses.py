"""What a sweep measures beside its points, in the same run.

Witnesses: probes that points are held against: reads and copies of the same footprints, CPUs, pages
and tier; of memory by fewer of the threads, too; what computes, and the clock; the latency of each
level where a thread chases. Contrasts: which points are timed in the same rounds, one set for each
question that a suite's points ask side by side.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter, ne
from typing import Any, TypeGuard

from kvbench.grouping import grouped
from kvbench.machine.placement import chaser
from kvbench.model import (
    AUTO,
    DEFAULTS,
    OURS,
    POINT,
    Contrast,
    Machine,
    Needs,
    Point,
    Probe,
    Shape,
)
from kvbench.model.chases import NONE
from kvbench.model.contrast import FACTORS, LAYOUT, LENGTHS, lines, value
from kvbench.model.planes import apart
from kvbench.model.point import FLOPS, SHAPE, Visited
from kvbench.native import default_library
from kvbench.plan.classes import level
from kvbench.plan.needs import PROCESS, stores
from kvbench.plan.probes import GRAIN, latencies
from kvbench.regime import classify, dram_bytes

_PER_OCTAVE = 4  # footprints closer together than that share a ceiling
_COPIES = ("copy", "copy_nt")
_MOST = 10  # points of a set
_FIELDS = [field.name for field in POINT], [field.name for field in SHAPE]
_values = attrgetter(*_FIELDS[0], *(f"shape.{name}" for name in _FIELDS[1]))
_USUAL = DEFAULTS | {"order": None}  # most caches have no blocks
_UNPAGED: dict[str, Any] = {
    field.name: _USUAL[field.name] for field in POINT if field.within == "layout"
}
_DEFAULTS = tuple(_USUAL[name] for names in _FIELDS for name in names)
_SHARE = 0.25  # of the memory there is, for a set's arenas


def witnesses(found: Mapping[Point, Needs], machine: Machine) -> tuple[Probe, ...]:
    """Memory too, for every set of CPUs: whether a cache is faster than that is what is asked."""
    alike = {  # points with the same witnesses: each is asked for once
        (n.walked, p.residency == "evicted", p.isa, p.cpus, p.pages, stores(p), _ops(p), p.chase): p
        for p, n in found.items()
    }
    probes = (probe for point in alike.values() for probe in _of(point, found[point], machine))
    return tuple(dict.fromkeys(probes))


def _of(point: Point, needed: Needs, machine: Machine) -> Iterator[Probe]:
    far = needed.far
    footprint = far if point.residency == "evicted" else needed.walked
    # memory may need no more
    fewer = [point.cpus[: 1 << bit] for bit in range((point.threads - 1).bit_length())]
    walked = [
        (point.cpus, _near(footprint, point, machine, far)),
        *((cpus, far) for cpus in (point.cpus, *fewer)),
    ]
    for cpus, count in dict.fromkeys(walked):
        grain = GRAIN * len(cpus)
        size = (
            max(1, int(count // grain)) * grain if count < far else math.ceil(count / grain) * grain
        )
        for op in ("read", *(_COPIES if stores(point) else ())):
            yield Probe(op, point.isa, cpus, point.pages, size)
    for op in _ops(point):
        yield Probe(op, point.isa, point.cpus, point.pages, 0)
    cpu = chaser(machine, point.cpus, point.chase) if point.chase != NONE else None
    if cpu is not None:
        yield from latencies(machine, cpu, point.isa, point.pages, needed.chain)


def _ops(point: Point) -> tuple[str, ...]:
    """Of the probes that need no memory."""
    own = default_library().computes(point.variant, point.kv_dtype)
    return tuple(dict.fromkeys((FLOPS, *own, "clock")))


def _near(footprint: int, point: Point, machine: Machine, far: int) -> float:
    """All that no cache holds is alike. Else a neighbour of the same regime, which others may
    share.
    """
    if footprint >= (dram_bytes(machine, point.cpus) or far):
        return far
    near = 2.0 ** (round(math.log2(footprint) * _PER_OCTAVE) / _PER_OCTAVE)
    alike = (
        classify(machine, point.cpus, near).word == classify(machine, point.cpus, footprint).word
    )
    return near if alike else footprint


def contrasts(needs: Mapping[Point, Needs], machine: Machine, memory: int) -> tuple[Contrast, ...]:
    """`memory`: bytes that there are. Of points that differ in a factor alone, that the same level
    feeds and that have one query, nothing between their passes and no chase beside them, the line
    with most of them, then the one nearest to the defaults, that fits a share of it. Of layouts the
    one nearest to the defaults and further ones, until each stands beside another: no dtype and
    variant has all. Of several lengths every line that fits: they differ in how much they read. Of
    dtypes with pairs among them one of each variant, or where that does not fit each pair beside
    its halves.
    """
    found, seen = list[Contrast](), defaultdict[tuple[str, ...], set[str]](set)
    own = [p for p in needs if not p.streamed and p.shape.q_len == 1 and p.chase == NONE]
    for factor in FACTORS:
        found_lines = (_of_each_value(line, factor) for line in lines(own, factor))
        for line in sorted(found_lines, key=partial(_rank, factor)):
            levels = {level(point, needs[point], machine) for point in line}
            if factor == LENGTHS:
                levels = {point.name for point in line}
            elif len(levels) > 1:
                continue
            paired = factor == "dtype" and any(point.v_dtype for point in line)
            beside = seen[factor, line[0].op, line[0].variant if paired else "", *levels]
            values = {value(point, factor) for point in line}
            new = not values <= beside if factor == LAYOUT else not beside
            sets = _halves(line) if paired and not fit(line, needs, memory) else [line]
            if new and (fitting := [own for own in sets if fit(own, needs, memory)]):
                found += (Contrast(factor, own) for own in fitting)
                beside |= values
    return tuple(found)


def _halves(line: Sequence[Point]) -> list[tuple[Point, ...]]:
    """Each pair of dtypes beside those of its halves, by all scales."""
    pairs = dict.fromkeys(point.kv_dtype for point in line if point.v_dtype)
    alike = ({pair, *apart(pair)} for pair in pairs)
    return [tuple(point for point in line if point.kv_dtype in own) for own in alike]


def _rank(factor: str, line: Sequence[Point]) -> tuple[int, ...]:
    if factor == LAYOUT:
        return min(map(_unusual, line)), -len(line)
    return -len(line), sum(map(_unusual, line))


def fit(points: Iterable[Point], needs: Mapping[Point, Needs], memory: int) -> bool:
    """Whether the arenas of a set take no more than their share of memory."""
    return sum(needs[point].arena for point in points) <= _SHARE * memory


def _of_each_value(line: Sequence[Point], factor: str) -> tuple[Point, ...]:
    """Of points with one value the one nearest to the defaults."""
    found = grouped((value(point, factor), point) for point in sorted(line, key=_unusual))
    nearest = [first for first, *_ in found.values()]
    return tuple(sorted(nearest[:_MOST], key=line.index))


def _unusual(point: Point) -> int:
    """How many values are not the defaults."""
    return sum(map(ne, _values(point), _DEFAULTS))


# ---- lines of peers: what is timed in the same rounds --------------------------------------------


def line_of(point: Point) -> Point:
    """Ours whose memory, values and witnesses all of its line have: the first variant and
    layout.
    """
    variant, layout = (default_library().words(name)[0] for name in ("variant", "layout"))
    own = _UNPAGED | {"variant": variant, "layout": layout, "engine": OURS, "schedule": AUTO}
    return replace(point, **own)


def is_peer(point: Visited) -> TypeGuard[Point]:
    return isinstance(point, Point) and point.engine != OURS


def peer_lines(points: Iterable[Visited]) -> dict[Point, list[Point]]:
    """Those that have peers, each with ours that are of it: other layouts have memory of their
    own. Points that differ in the queries of a step are of one.
    """
    own = [point for point in points if isinstance(point, Point)]
    found: dict[Point, list[Point]] = {_of_one(point): [] for point in own if is_peer(point)}
    for point in own:
        line = _of_one(point)
        if line in found and (is_peer(point) or point.layout == line.layout):
            found[line].append(point)
    return found


def _of_one(point: Point) -> Point:
    line = line_of(point)
    return replace(line, shape=replace(line.shape, q_len=1))


def value_bytes(shape: Shape) -> int:
    """Of a slice in float32, which every peer of a line gets."""
    return 4 * shape.kv_heads * shape.context * (shape.head_dim + shape.width_of_v)


def crowded(needed: Mapping[Point, Needs], memory: int) -> list[Point]:
    """Peers whose line does not fit memory: there each has a store of its own, beside the values
    that all of them get.
    """
    found = []
    for line, points in peer_lines(needed).items():
        peers = [point for point in points if is_peer(point)]
        values = value_bytes(line.shape)
        each = max(needed[point].memory for point in points) + len(peers) * (2 * values + PROCESS)
        found += peers if each + sum(needed[point].arena for point in peers) > memory else []
    return found
