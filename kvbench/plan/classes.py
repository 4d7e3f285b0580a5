"""Classes of points that share a schedule. A tuning measures once for all points of a class."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import inf

from kvbench.grouping import grouped
from kvbench.model import AUTO, OURS, OWN, Machine, Needs, Point
from kvbench.model.point import STEP
from kvbench.model.tuning import called
from kvbench.native import Cache
from kvbench.plan.needs import needs as needs_of
from kvbench.plan.needs import stores
from kvbench.plan.steps import parts
from kvbench.regime import classify, levels, near_l3, nearest

FROM_MEMORY = "memory"  # the level of data that no cache holds
_DIMS = ((64, "d<=64"), (128, "d<=128"), (inf, "d>128"))  # the largest value of each, its word
_GROUPS = ((1, "g1"), (2, "g2"), (4, "g<=4"), (inf, "g>4"))
_BLOCKS = ((32, "block<=32"), (inf, "block>32"))


def class_of(point: Point, needs: Needs, machine: Machine, far: bool = False) -> tuple[str, ...]:
    """The parts of the point's class, in the order of PARTS in model/tuning.py.

    Facts that hardly change which schedule is best are left out: lengths, batch, the system's
    pages. far: the class of the point's slice if it lay in memory. A step has the class of its
    first part.
    """
    if point.op == STEP:
        first = parts(point)[0].point
        return class_of(first, needs_of(first, needs.far), machine)
    last = list(levels(machine, point.cpus).values())[-1:]
    shared = bool(last) and len(last[0]) == 1
    return (
        point.isa,
        f"{point.variant}.{point.kv_dtype}",
        _layout(point),
        _within(point.shape.head_dim, _DIMS),
        _within(point.shape.query_rows, _GROUPS),
        "1 thread" if point.threads == 1 else "threads of one L3" if shared else "more threads",
        FROM_MEMORY if far or _thrown_out(point, needs, machine) else level(point, needs, machine),
    )


def _thrown_out(point: Point, needs: Needs, machine: Machine) -> bool:
    """Whether L3 would hold the slice alone, but not together with the bytes read between passes.
    Then memory feeds the slice.
    """
    if not point.streamed or not near_memory(point, needs, machine):
        return False
    return classify(machine, point.cpus, needs.walked + point.streamed).word != "L3"


def level(point: Point, needs: Needs, machine: Machine) -> str:
    """The nearest cache that holds all slices of the point; or memory."""
    return nearest(machine, point.cpus, needs.walked, evicted=point.residency == "evicted")


def _layout(point: Point) -> str:
    if not _paged(point.layout):
        return point.layout
    order = "in order" if point.order is None else "shuffled"
    return f"{point.layout}.{point.inner} {order} {_within(point.block_tokens, _BLOCKS)}"


_paged = cache(Cache.is_paged)  # asked for thousands of points


def _within(value: int, classes: Sequence[tuple[float, str]]) -> str:
    return next(name for most, name in classes if value <= most)


def near_memory(point: Point, needs: Needs, machine: Machine) -> bool:
    """Whether the same kernel is also timed on slices in memory: if L3 feeds the point, or a part
    of it.
    """
    return (
        point.residency == "hot"
        and not stores(point)
        and near_l3(machine, point.cpus, needs.walked)
    )


def tunable(point: Point) -> bool:
    """Whether a measurement may choose the point's schedule."""
    return point.schedule in (AUTO, OWN) and point.engine == OURS and not stores(point)


def classes(
    points: Iterable[Point], needs: Mapping[Point, Needs], machine: Machine
) -> dict[str, list[Point]]:
    """The points whose schedule a measurement is to choose, by class."""
    return grouped(
        (called(class_of(point, needs[point], machine, far)), point)
        for point in filter(tunable, points)
        for far in (False, True)[: 1 + near_memory(point, needs[point], machine)]
    )
