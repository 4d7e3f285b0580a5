"""A model of bigger servers: tokens per second a core against memory bandwidth a core. It is the
slower of two: bytes over bandwidth, and the core's own speed. Nothing else is in it.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.decodes import Decodes
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about

LEAST, MOST = 1.0, 40.0  # GB/s a core


@dataclass(frozen=True, slots=True)
class Line:
    """One dtype. Tokens/s a core at b GB/s a core: the lesser of b / bytes and `core`."""

    dtype: Annotated[str, about("number format of the cache")]
    point: Annotated[str, about("the point that it is computed from")]
    bytes: Annotated[float, about("bytes: that one token reads, in all layers")]
    core: Annotated[float, about("tokens per second a core: from a private cache")]
    knee: Annotated[float, about("GB/s a core: from which the core limits")]


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
    return Servers(None, (), ())
