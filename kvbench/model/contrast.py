"""Points that differ in one thing alone, and what a launch visits to time them in the same
rounds.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Annotated, Any

from kvbench.model.annotated import Cpus, about
from kvbench.model.point import FIELDS, POINT, SHAPE, Point, Visited

# The fastest kernels of all dtypes, else free: no factor of a plan, but chosen from what was
# measured. Its values are dtypes.
KERNEL = "kernel"


class NoLine(StrEnum):
    """Why a run does not time the fastest kernels of all dtypes side by side."""

    NONE = ""
    ALONE = "the suite times nothing side by side"
    FEW = "fewer than two dtypes at the workload"
    LARGE = "their caches together take too much memory"


# What depends on each factor, and so differs with it.
_WITH = {
    "layout": {field.name for field in FIELDS if field.within == "layout"},
    "dtype": {field.name for field in FIELDS if field.within == "dtype"},
    "variant": set(),
    "block_tokens": set(),
    "order": {"order"},
    "pages": set(),
    "memory": set(),
    "group": {"q_heads"},
    "threads": {"cpus"},
}
FACTORS = tuple(_WITH)
# contexts that differ by less are one: sized by a cache, each layout's own padding shifts them a
# little
_NEAR = 1.004


@dataclass(frozen=True, slots=True)
class Contrast(Visited):
    """Points that differ in the factor, each with an arena of its own: a round samples all of
    them.
    """

    factor: Annotated[str, about("what they differ in")]
    points: tuple[Point, ...]

    @property
    def cpus(self) -> Cpus:
        return tuple(sorted({cpu for point in self.points for cpu in point.cpus}))

    @property
    def isa(self) -> str:
        return self.points[0].isa

    @property
    def words(self) -> tuple[str, ...]:
        return "contrast", self.factor, "-", "-", self.isa

    @property
    def name(self) -> str:
        return f"{self.kernel}/{len(self.points)}/{self.points[0].name}"


def value(point: Point, factor: str) -> str:
    """Of the factor, as a word."""
    words = {
        KERNEL: point.dtype,
        "block_tokens": f"block={point.block_tokens}",
        "order": "sequential" if point.order is None else "shuffled",
        "group": f"group={point.shape.group}",
        "threads": f"threads={point.threads}",
    }
    return words.get(factor) or getattr(point, factor)


def lines(points: Iterable[Point], factor: str) -> Iterator[list[Point]]:
    """Points that are equal but for the factor and what depends on it, of several values. Contexts
    may differ a little where both points fill theirs.
    """
    points = list(points)
    first = _first(sorted({point.shape.context for point in points}))
    own = _WITH[factor] | {factor, "context", "capacity"}
    found: dict[tuple[Any, ...], list[Point]] = defaultdict(list)
    for point in points:
        shape = point.shape
        alike = (
            *(getattr(point, field.name) for field in POINT if field.name not in own),
            *(getattr(shape, field.name) for field in SHAPE if field.name not in own),
        )
        beyond = 0 if shape.capacity == shape.context else shape.capacity
        found[(*alike, first[shape.context], beyond)].append(point)
    yield from (
        line for line in found.values() if len({value(point, factor) for point in line}) > 1
    )


def pairs(line: Iterable[Point], factor: str) -> Iterator[tuple[Point, Point]]:
    """Of a line. Contexts that are one only nearly pair where neither has an equal."""
    line = list(line)
    there = {(value(point, factor), point.shape.context) for point in line}
    for a, b in combinations(line, 2):
        crossed = {(value(a, factor), b.shape.context), (value(b, factor), a.shape.context)}
        if value(a, factor) != value(b, factor) and (
            a.shape.context == b.shape.context or not crossed & there
        ):
            yield a, b


def _first(contexts: list[int]) -> dict[int, int]:
    """By context the smallest that is nearly the same."""
    found: dict[int, int] = {}
    last = 0
    for context in contexts:
        found[context] = found[last] if last and context < _NEAR * last else context
        last = context
    return found
