"""What a run and each of its processes measure, what cannot be measured, and how much memory it
takes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeGuard

from kvbench.model.annotated import Count, Number, Positive, Size, about
from kvbench.model.hardware import Machine
from kvbench.model.point import Point, Visited


def several(paths: Iterable[str] | str | None) -> tuple[str, ...]:
    """The paths as a tuple, from one path, several or none."""
    if isinstance(paths, str):
        paths = (paths,)
    return tuple(filter(None, paths or ()))


@dataclass(frozen=True, slots=True)
class Skip:
    """A combination of a suite's axes that cannot be measured here, and why."""

    facts: Annotated[dict[str, Any], about("the value of each axis")]
    reason: Annotated[str, about("the kind of reason")]
    detail: Annotated[str, about("particulars")]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a point needs, in bytes.

    slice_bytes: K and V of one layer. slice_walked: the bytes of a slice that a pass reads or
    writes, with the rows that it stores from. slices: in rotation.

    cache_bytes: all slices. source_bytes: the rows that are stored into them. beside: buffers that
    evict caches or are compared, decoded copies for the check, and a process's own data for each
    slice. far: the footprint that is too large for the caches of the point's CPUs. chain: the part
    of `beside` that a thread chases through; 0 without a chase.
    """

    slice_bytes: Count
    slice_walked: Count
    slices: Count
    cache_bytes: Count
    source_bytes: Count
    beside: Count
    far: Count
    chain: Count = 0

    @property
    def arena(self) -> int:
        return self.cache_bytes + self.source_bytes

    @property
    def memory(self) -> int:
        return self.arena + self.beside

    @property
    def walked(self) -> int:
        """Bytes that passes over all slices walk, by their geometry."""
        return self.slice_walked * self.slices


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures. Each launch visits all points, and takes `samples` samples of
    `sample_time` seconds of each.
    """

    points: tuple[Visited, ...]
    launches: Size
    samples: Size
    sample_time: Positive
    seed: Count
    # name of the run; its records have it, and are never compared with another run's records
    run: str = ""
    patience: Positive = 300.0  # seconds without a sign of life until a visit counts as hung
    library: str = ""  # path of the kernels' library; empty: the installed one
    # paths of plug-ins, whose kernels are added to that library's
    plugin: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()  # the plug-ins' variants: their points run in extra processes
    against: str = ""  # path of a second library; if given, each visit is a duel of the two
    against_plugin: tuple[str, ...] = ()  # paths of the plug-ins beside the second library
    # names of the points that are controls in a duel: both sides are `library`, loaded twice
    controls: tuple[str, ...] = ()
    # Ratios of earlier runs by class of points, as in Tuned. None: nothing is tuned, and points
    # without a schedule have the default.
    tuning: dict[str, dict[str, tuple[Number, ...]]] | None = None
    chosen: dict[str, str] = field(default_factory=dict)  # schedules already chosen, by class
    neighbour: bool = False  # whether points are also timed beside a neighbour
    peers: dict[str, str] = field(default_factory=dict)  # paths of libraries, by engine
    pythons: dict[str, str] = field(default_factory=dict)  # paths of interpreters, by engine
    # whether each visit compares two builds of an engine, named ENGINE@base and ENGINE@head
    contest: bool = False

    def is_foreign(self, point: Visited) -> TypeGuard[Point]:
        """Whether the point's kernel is a plug-in's."""
        return isinstance(point, Point) and point.variant in self.foreign


@dataclass(frozen=True, slots=True)
class Job:
    """What one process measures of a launch: all of it, or, as a further `part`, what an earlier
    process left undone. `needs`: by the names of the points.
    """

    plan: Plan
    launch: Count
    part: Count
    points: tuple[Visited, ...]
    machine: Machine
    needs: dict[str, Needs]
    # folder in which the run's processes share the reference answers
    references: str
    # time.monotonic() at which the process is stopped; None: never
    until: Number | None = None
