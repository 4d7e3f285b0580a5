"""Points that differ in one factor only, and the visit that times them in the same rounds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import Annotated, Any

from kvbench.grouping import grouped
from kvbench.model.annotated import Cpus, about
from kvbench.model.masks import CHAIN
from kvbench.model.point import (
    FIELDS,
    PLAIN_SCORES,
    POINT,
    SHAPE,
    STEP,
    TOKEN,
    Point,
    Visited,
)
from kvbench.model.shape import EVEN, lengths_word

# The fastest kernel of each dtype, whatever its variant and layout. A plan does not have this
# factor: its points are chosen from what was measured. Its values are dtypes.
KERNEL = "kernel"
# Sequences of several lengths, beside even ones that hold as many tokens in total, and beside even
# ones that are each as long as the longest.
LENGTHS = "lengths"
LAYOUT = "layout"


class NoLine(StrEnum):
    """Why a run does not time the fastest kernels of all dtypes side by side."""

    NONE = ""
    ALONE = "the suite times nothing side by side"
    FEW = "fewer than two dtypes at the workload"
    LARGE = "their caches together take too much memory"


# The fields that depend on each factor, and so differ with it.
_WITH = {
    LAYOUT: {field.name for field in FIELDS if field.within == "layout"},
    "dtype": {field.name for field in FIELDS if field.within == "dtype"},
    "variant": set(),
    "block_tokens": set(),
    "order": {"order"},
    "pages": set(),
    "memory": set(),
    "group": {"q_heads"},
    "threads": {"cpus"},
    LENGTHS: set(),
}
FACTORS = tuple(_WITH)
# Contexts within this ratio count as equal: if a context is sized by a cache, the padding of each
# layout shifts it a little.
_NEAR = 1.004


@dataclass(frozen=True, slots=True)
class Contrast(Visited):
    """Points that differ in the factor. Each has an arena of its own, and a round samples all of
    them.
    """

    factor: Annotated[str, about("the factor in which they differ")]
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
    """The point's value of the factor, as a word."""
    words = {
        KERNEL: point.kv_dtype,
        "dtype": f"{point.kv_dtype}{'' if point.k_scale == TOKEN else f' by {point.k_scale}'}",
        "block_tokens": f"block={point.block_tokens}",
        "order": "sequential" if point.order is None else "shuffled",
        "group": f"group={point.shape.group}",
        "threads": f"threads={point.threads}",
        LENGTHS: f"{EVEN}:{point.shape.context}"
        if point.shape.lengths == EVEN
        else lengths_word(point.shape.lengths),
    }
    return words.get(factor) or getattr(point, factor)


def alone_of(point: Point) -> Point:
    """The first point of this point's family: the plainer point that it is timed beside.

    That point reads nothing between its passes. If nothing is read there anyway, it has one query
    for each sequence. If the point has one query already, it has plain scores. A step has no such
    point: it is timed beside its parts.
    """
    shape = point.shape
    if point.op == STEP:
        return point
    if point.streamed:
        return replace(point, between=0)
    if shape.q_len > 1:
        return replace(point, shape=replace(shape, q_len=1, mask=CHAIN))
    return replace(point, shape=replace(shape, **PLAIN_SCORES))


def evenly(held: Sequence[int]) -> int:
    """Tokens of each sequence if all were equally long and held as many in total, rounded."""
    return (2 * sum(held) + len(held)) // (2 * len(held))


def lines(points: Iterable[Point], factor: str) -> Iterator[list[Point]]:
    """Sets of points that are equal but for the factor, and for the fields that depend on it.

    Each set has at least two values of the factor. Contexts may differ a little if each point fills
    its context's capacity.
    """
    points = list(points)
    if factor == LENGTHS:
        yield from _beside_even(points)
        return
    first = _first(sorted({point.shape.context for point in points}))
    rest = _but(frozenset(_WITH[factor] | {factor}))
    alike = grouped(
        ((rest(point), _beyond(point), first[point.shape.context]), point) for point in points
    )
    yield from (
        line for line in alike.values() if len({value(point, factor) for point in line}) > 1
    )


def _beside_even(points: list[Point]) -> Iterator[list[Point]]:
    """Each point of several lengths, between the even points that belong to it."""
    rest = _but(frozenset({LENGTHS}))
    alike = grouped(((rest(point), _beyond(point)), point) for point in points)
    for own in alike.values():
        even = {point.shape.context: point for point in own if point.shape.lengths == EVEN}
        for point in own:
            if point.shape.lengths != EVEN:
                as_many, longest = evenly(point.shape.held), max(point.shape.held)
                line = [even.get(as_many), point, even.get(longest)]
                if len(found := [each for each in line if each]) > 1:
                    yield found


@cache
def _but(own: frozenset[str]) -> Callable[[Point], tuple[Any, ...]]:
    """A function that returns every field of a point except these, the context and the capacity."""
    own |= {"context", "capacity"}
    names = [field.name for field in POINT] + [f"shape.{field.name}" for field in SHAPE]
    return attrgetter(*(name for name in names if name.rpartition(".")[2] not in own))


def _beyond(point: Point) -> int:
    """The point's capacity if it is more than the context; else 0."""
    shape = point.shape
    return 0 if shape.capacity == shape.context else shape.capacity


def _first(contexts: list[int]) -> dict[int, int]:
    """Map each context to the smallest context that counts as equal to it."""
    found: dict[int, int] = {}
    last = 0
    for context in contexts:
        found[context] = found[last] if last and context < _NEAR * last else context
        last = context
    return found
