"""The values of a suite: what to vary, and what to leave out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvbench.model import HEADS, MODEL_SAYS
from kvbench.units import KIB  # 1k tokens are 1024 tokens, as in sizes

ALL = "all"  # in an axis of words: every word for which the op has a kernel
Axes = Mapping[str, tuple[Any, ...]]  # values by axis
# least and most of a suite's numbers, by key
LIMITS = {"launches": (1, 1000), "samples": (1, 1000), "sample_time": (1e-4, 10.0)}
UNTIL = {"until_decided": (0.0, 1e6)}


@dataclass(frozen=True, slots=True)
class Relative:
    """The size of a slice of K and V, as a multiple of all caches of a level that serve the point's
    CPUs.
    """

    factor: float
    level: int

    def __str__(self) -> str:
        return f"{self.factor:g}xL{self.level}"


@dataclass(frozen=True, slots=True)
class Suite:
    """A question and the points that answer it: the crossed axes of every grid, without
    combinations that match a skip.
    """

    name: str
    source: str  # the file, as messages name it
    question: str
    grids: tuple[Axes, ...]  # each [[grid]], with the common axes added
    skips: tuple[Axes, ...] = ()
    launches: int = 10
    samples: int = 3
    sample_time: float = 0.03  # seconds
    contrasts: bool = True  # whether points that differ in one factor are also timed side by side
    # seconds from the start within which launches are added while questions are open; 0: none are
    until_decided: float = 0.0

    def with_axes(self, axes: Axes) -> "Suite":
        """The suite with these axes in place of its own in every grid. A new model brings its own
        heads, and its own operations on scores.
        """
        dropped = {*HEADS, *MODEL_SAYS} if "model" in axes else set()
        grids = (
            {**{name: values for name, values in grid.items() if name not in dropped}, **axes}
            for grid in self.grids
        )
        return replace(self, grids=tuple(grids))


def count_text(value: int) -> str:
    """A count, such as tokens, as suites write it: 64k."""
    return f"{value // KIB}k" if value and value % KIB == 0 else str(value)
