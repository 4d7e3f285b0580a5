"""Which points are timed in the same rounds: one set for each question that a suite's points ask side by side.

for factor in factors:
    for lines of points that differ in it alone, and are fed from the same level:
        the one with most points, then the one nearest to the defaults, that fits a quarter of memory
"""

from collections.abc import Mapping, Sequence

from kvbench.model import DEFAULTS, POINT, SHAPE, Contrast, Machine, Point
from kvbench.model.contrast import FACTORS, lines, value
from kvbench.plan.classes import level
from kvbench.plan.needs import Needs

_MOST = 8  # points of a set
_SHARE = 0.25  # of the memory there is, for a set's arenas


def contrasts(needs: Mapping[Point, Needs], machine: Machine, memory: int) -> tuple[Contrast, ...]:
    """`memory`: bytes that there are."""
    found: dict[tuple[str, ...], Contrast] = {}
    for factor in FACTORS:
        found_lines = (_of_each_value(line, factor) for line in lines(needs, factor))
        for line in sorted(found_lines, key=lambda line: (-len(line), sum(map(_unusual, line)))):
            levels = {level(point, needs[point], machine) for point in line}
            if len(levels) == 1 and sum(needs[point].arena for point in line) <= _SHARE * memory:
                found.setdefault((factor, line[0].op, *levels), Contrast(factor, line))
    return tuple(found.values())


def _of_each_value(line: Sequence[Point], factor: str) -> tuple[Point, ...]:
    """Of points with one value the one nearest to the defaults."""
    found: dict[str, Point] = {}
    for point in sorted(line, key=_unusual):
        found.setdefault(value(point, factor), point)
    return tuple(sorted(list(found.values())[:_MOST], key=line.index))


def _unusual(point: Point) -> int:
    """How many values are not the defaults."""
    owners = [(point, field) for field in POINT] + [(point.shape, field) for field in SHAPE]
    return sum(getattr(owner, field.name) != DEFAULTS[field.name] for owner, field in owners)
