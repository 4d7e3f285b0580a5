"""A suite as values: what to vary, and what to leave out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvbench.model import HEADS, MODEL_SAYS
from kvbench.units import KIB  # a k of tokens is 1024 of them, as sizes are

ALL = "all"  # of an axis of words: every word that has a kernel of the op
Axes = Mapping[str, tuple[Any, ...]]  # values by axis
# of a suite's keys
LIMITS = {"launches": (1, 1000), "samples": (1, 1000), "sample_time": (1e-4, 10.0)}
UNTIL = {"until_decided": (0.0, 1e6)}


@dataclass(frozen=True, slots=True)
class Relative:
    """A slice of K and V as a multiple of all caches of a level that serve the point's CPUs,
    together.
    """

    factor: float
    level: int

    def __str__(self) -> str:
        return f"{self.factor:g}xL{self.level}"


@dataclass(frozen=True, slots=True)
class Suite:
    """A question, and the points that answer it: every grid's axes crossed, without what a skip
    matches in all.
    """

    name: str
    source: str  # the file, as messages name it
    question: str
    grids: tuple[Axes, ...]  # each [[grid]], with the common axes in it
    skips: tuple[Axes, ...] = ()
    launches: int = 10
    samples: int = 3
    sample_time: float = 0.03  # seconds
    contrasts: bool = True  # whether points that differ in one thing are also timed side by side
    # seconds of a run, in which launches are added while questions are open; 0: none are
    until_decided: float = 0.0

    def with_axes(self, axes: Axes) -> "Suite":
        """These axes in place of the file's, in every grid. A model brings its own heads, and what
        it does to scores.
        """
        dropped = {*HEADS, *MODEL_SAYS} if "model" in axes else set()
        grids = (
            {**{name: values for name, values in grid.items() if name not in dropped}, **axes}
            for grid in self.grids
        )
        return replace(self, grids=tuple(grids))


def count_text(value: int) -> str:
    """Tokens and the like as suites write them: 64k."""
    return f"{value // KIB}k" if value and value % KIB == 0 else str(value)
