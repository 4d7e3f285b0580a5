"""A model of bigger servers: tokens per second a core against memory bandwidth a core. It is the
slower of two: bytes over bandwidth, and the core's own speed. Nothing else is in it.
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

LEAST, MOST = 1.0, 40.0  # GB/s a core


@dataclass(frozen=True, slots=True)
class Line:
    """One dtype. Tokens/s a core at b GB/s a core: the lesser of b / bytes and `core`."""

    dtype: Annotated[str, about("number format of the cache")]
    point: Annotated[str, about("the point that it is computed from")]
    bytes: Annotated[float, about("bytes: that one token reads, in all layers")]
    core: Annotated[float, about("tokens per second a core: from a private cache")]
    knee: Annotated[float, about("GB/s a core: from which the core limits")]

    def at(self, bandwidth: float) -> float:
        """Tokens per second a core."""
        return min(bandwidth * GB / self.bytes, self.core)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bandwidths at which one dtype is the fastest."""

    dtype: Annotated[str, about("number format of the cache")]
    low: Annotated[float, about("GB/s a core: from there")]
    high: Annotated[float, about("GB/s a core: up to there")]


@dataclass(frozen=True, slots=True)
class Servers:
    here: Annotated[float | None, about("GB/s a core: plain reads of this machine")]
    lines: Annotated[tuple[Line, ...], about("by dtype")]
    fastest: Annotated[tuple[Stretch, ...], about("by bandwidth, from least to most")]


def servers(found: Decodes, page: Workload, memory: float | None) -> Servers:
    """`memory`: GB/s of plain reads by the workload's threads."""
    lines = tuple(line for row in found.rows for line in _line(row, page.threads))
    here = memory / page.threads if memory and page.threads else None
    return Servers(here, lines, tuple(_stretches(lines)))


def _line(row: Decode, threads: int) -> Iterator[Line]:
    """None of a dtype whose core speed was not measured."""
    speed, rate, core = row.speed.figure, row.rate.figure, row.core.figure
    if speed and rate and core:
        read = rate.value * GB / speed.value
        most = core_speed(speed, core) / threads
        yield Line(row.dtype, row.point, read, most, most * read / GB)


def core_speed(speed: Figure, share: Figure) -> float:
    """What the core alone allows, of a speed and its share of that. It allows what was reached: a
    share above 1 counts as 1.
    """
    return speed.value / min(1.0, share.value)


def _stretches(lines: Sequence[Line]) -> Iterator[Stretch]:
    """The order of two can change only where one is at its core's speed, and the other reads as
    many tokens: between such bandwidths one stays the fastest.
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
