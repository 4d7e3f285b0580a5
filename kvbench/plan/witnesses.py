"""Choose what a sweep measures beside its points, in the same run.

Witnesses are the probes that points are compared with: reads and copies of the same footprints on
the same CPUs, pages and tier; reads of memory, also by fewer threads; multiply-adds, and the clock;
and the latency of each level if a thread chases. Contrasts are sets of points that are timed in the
same rounds, one set for each question about a factor.
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

_PER_OCTAVE = 4  # steps of footprints; footprints of one step share a ceiling
_COPIES = ("copy", "copy_nt")
_MOST = 10  # points of a set, at most
_FIELDS = [field.name for field in POINT], [field.name for field in SHAPE]
_values = attrgetter(*_FIELDS[0], *(f"shape.{name}" for name in _FIELDS[1]))
_USUAL = DEFAULTS | {"order": None}  # a cache without blocks has no order
_UNPAGED: dict[str, Any] = {
    field.name: _USUAL[field.name] for field in POINT if field.within == "layout"
}
_DEFAULTS = tuple(_USUAL[name] for names in _FIELDS for name in names)
_SHARE = 0.25  # of free memory, for the arenas of a set


def witnesses(found: Mapping[Point, Needs], machine: Machine) -> tuple[Probe, ...]:
    """The probes for these points. Memory is read on every set of CPUs, to tell whether a cache is
    faster.
    """
    alike = {  # one point for each set of equal witnesses
        (n.walked, p.residency == "evicted", p.isa, p.cpus, p.pages, stores(p), _ops(p), p.chase): p
        for p, n in found.items()
    }
    probes = (probe for point in alike.values() for probe in _of(point, found[point], machine))
    return tuple(dict.fromkeys(probes))


def _of(point: Point, needed: Needs, machine: Machine) -> Iterator[Probe]:
    far = needed.far
    footprint = far if point.residency == "evicted" else needed.walked
    # fewer threads may read memory as fast
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
    """The probes that need no memory."""
    own = default_library().computes(point.variant, point.kv_dtype)
    return tuple(dict.fromkeys((FLOPS, *own, "clock")))


def _near(footprint: int, point: Point, machine: Machine, far: int) -> float:
    """The footprint of the probe: the far one for all that no cache holds; else a rounded one in
    the same regime, which several points can share.
    """
    if footprint >= (dram_bytes(machine, point.cpus) or far):
        return far
    near = 2.0 ** (round(math.log2(footprint) * _PER_OCTAVE) / _PER_OCTAVE)
    alike = (
        classify(machine, point.cpus, near).word == classify(machine, point.cpus, footprint).word
    )
    return near if alike else footprint


def contrasts(needs: Mapping[Point, Needs], machine: Machine, memory: int) -> tuple[Contrast, ...]:
    """The sets of points to time side by side. `memory`: bytes that are free.

    Candidates differ in one factor only, have one query, read nothing between passes and have no
    chase. For each factor, op and cache level: the largest set that fits a quarter of memory; of
    equal sets the one nearest the defaults. Exceptions:

    - layout: the set nearest the defaults, and further ones until each layout is in a set, because
      no dtype and variant has all layouts
    - lengths: every set that fits, because sets differ in how much they read
    - dtype, with pairs: one set for each variant; if that does not fit, each pair with its halves
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
    """A set for each pair of dtypes: the pair and its two formats, with all scales."""
    pairs = dict.fromkeys(point.kv_dtype for point in line if point.v_dtype)
    alike = ({pair, *apart(pair)} for pair in pairs)
    return [tuple(point for point in line if point.kv_dtype in own) for own in alike]


def _rank(factor: str, line: Sequence[Point]) -> tuple[int, ...]:
    """The order in which sets are tried, the smallest rank first."""
    if factor == LAYOUT:
        return min(map(_unusual, line)), -len(line)
    return -len(line), sum(map(_unusual, line))


def fit(points: Iterable[Point], needs: Mapping[Point, Needs], memory: int) -> bool:
    """Whether the arenas of a set fit in the share of memory that a set may take."""
    return sum(needs[point].arena for point in points) <= _SHARE * memory


def _of_each_value(line: Sequence[Point], factor: str) -> tuple[Point, ...]:
    """For each value of the factor, the point nearest the defaults."""
    found = grouped((value(point, factor), point) for point in sorted(line, key=_unusual))
    nearest = [first for first, *_ in found.values()]
    return tuple(sorted(nearest[:_MOST], key=line.index))


def _unusual(point: Point) -> int:
    """How many fields differ from the defaults."""
    return sum(map(ne, _values(point), _DEFAULTS))


# ---- lines of peers: the points that are timed in the same rounds --------------------------------


def line_of(point: Point) -> Point:
    """Our point whose memory, values and witnesses a whole line uses: of the first variant and
    layout.
    """
    variant, layout = (default_library().words(name)[0] for name in ("variant", "layout"))
    own = _UNPAGED | {"variant": variant, "layout": layout, "engine": OURS, "schedule": AUTO}
    return replace(point, **own)


def is_peer(point: Visited) -> TypeGuard[Point]:
    return isinstance(point, Point) and point.engine != OURS


def peer_lines(points: Iterable[Visited]) -> dict[Point, list[Point]]:
    """The lines that have peers, each with its points. Ours are left out if their layout needs
    other memory. Points that differ only in q_len belong to one line.
    """
    own = [point for point in points if isinstance(point, Point)]
    found: dict[Point, list[Point]] = {_of_one(point): [] for point in own if is_peer(point)}
    for point in own:
        line = _of_one(point)
        if line in found and (is_peer(point) or point.layout == line.layout):
            found[line].append(point)
    return found


def _of_one(point: Point) -> Point:
    """The line's point with one query per sequence."""
    line = line_of(point)
    return replace(line, shape=replace(line.shape, q_len=1))


def value_bytes(shape: Shape) -> int:
    """Bytes of a slice in float32. Every peer of a line gets these values."""
    return 4 * shape.kv_heads * shape.context * (shape.head_dim + shape.width_of_v)


def crowded(needed: Mapping[Point, Needs], memory: int) -> list[Point]:
    """Peers whose line does not fit memory. Each peer of a line has a store of its own, beside the
    values that all of them get.
    """
    found = []
    for line, points in peer_lines(needed).items():
        peers = [point for point in points if is_peer(point)]
        values = value_bytes(line.shape)
        each = max(needed[point].memory for point in points) + len(peers) * (2 * values + PROCESS)
        found += peers if each + sum(needed[point].arena for point in peers) > memory else []
    return found
