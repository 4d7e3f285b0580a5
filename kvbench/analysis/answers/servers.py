"""A model of larger servers: tokens per second per core over memory bandwidth per core. The rate is
the lower of two: bandwidth over bytes, and the core's own speed. The model has no other parts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Annotated

from kvbench.analysis.answers.answer import Figure
from kvbench.analysis.answers.decodes import Decode, Decodes
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about
from kvbench.units import GB

LEAST, MOST = 1.0, 40.0  # GB/s per core


@dataclass(frozen=True, slots=True)
class Line:
    """The rate of one dtype: at b GB/s per core, tokens/s per core are the smaller of b / bytes and
    `core`.
    """

    dtype: Annotated[str, about("number format of the cache")]
    point: Annotated[str, about("point that it is computed from")]
    bytes: Annotated[float, about("bytes: that one token reads in all layers")]
    core: Annotated[float, about("tokens per second a core: with data in a private cache")]
    knee: Annotated[float, about("GB/s a core: from there on the core limits")]

    def at(self, bandwidth: float) -> float:
        """Tokens per second per core."""
        return min(bandwidth * GB / self.bytes, self.core)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The range of bandwidths in which one dtype is the fastest."""

    dtype: Annotated[str, about("number format of the cache")]
    low: Annotated[float, about("GB/s a core: lower end")]
    high: Annotated[float, about("GB/s a core: upper end")]


@dataclass(frozen=True, slots=True)
class Servers:
    here: Annotated[float | None, about("GB/s a core: plain reads of this machine")]
    lines: Annotated[tuple[Line, ...], about("by dtype")]
    fastest: Annotated[tuple[Stretch, ...], about("by bandwidth, in ascending order")]


def servers(found: Decodes, page: Workload, memory: float | None) -> Servers:
    """The model. `memory`: GB/s of plain reads by the workload's threads."""
    lines = tuple(line for row in found.rows for line in _line(row, page.threads))
    here = memory / page.threads if memory and page.threads else None
    return Servers(here, lines, tuple(_stretches(lines)))


def _line(row: Decode, threads: int) -> Iterator[Line]:
    """The line of a dtype; none if its core speed was not measured."""
    speed, rate, core = row.speed.figure, row.rate.figure, row.core.figure
    if speed and rate and core:
        read = rate.value * GB / speed.value
        most = core_speed(speed, core) / threads
        yield Line(row.dtype, row.point, read, most, most * read / GB)


def core_speed(speed: Figure, share: Figure) -> float:
    """The speed that the core alone allows, from a speed and its share of that. It is at least the
    speed that was reached: a share above 1 counts as 1.
    """
    return speed.value / min(1.0, share.value)


def _stretches(lines: Sequence[Line]) -> Iterator[Stretch]:
    """The ranges in ascending order. The order of two lines can change only where one reaches its
    core's speed and the other has the same rate; between such bandwidths one line stays the
    fastest.
    """
    if not lines:
        return
    meet = (one.core * other.bytes / GB for one, other in product(lines, repeat=2))
    borders = sorted({LEAST, MOST, *(each for each in meet if LEAST < each < MOST)})
    middles = ((low + high) / 2 for low, high in pairwise(borders))
    fastest = [max(lines, key=lambda line: line.at(middle)).dtype for middle in middles]
    changes = [n for n, (one, other) in enumerate(pairwise(fastest), 1) if one != other]
    for first, last in pairwise((0, *changes, len(fastest))):
        yield Stretch(fastest[first], borders[first], borders[last])
