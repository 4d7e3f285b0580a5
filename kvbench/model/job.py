"""What is to be measured, or cannot be: of a run, and of one process of it; and what memory that
takes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeGuard

from kvbench.model.annotated import Count, Number, Positive, Size, about
from kvbench.model.hardware import Machine
from kvbench.model.point import Point, Visited


def several(paths: Iterable[str] | str | None) -> tuple[str, ...]:
    """Paths where one may stand alone, and "" or None for none."""
    if isinstance(paths, str):
        paths = (paths,)
    return tuple(filter(None, paths or ()))


@dataclass(frozen=True, slots=True)
class Skip:
    """A combination of a suite's axes that is no point here: its values, the kind of reason, and
    the particulars.
    """

    facts: Annotated[dict[str, Any], about("its values, by axis")]
    reason: Annotated[str, about("the kind of reason")]
    detail: Annotated[str, about("particulars")]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a point needs, in bytes: of one layer's K and V, `slice_bytes`, of which and of what is
    stored there a pass walks `slice_walked`. `slices` in rotation.

    Memory: `cache_bytes`, all slices; `source_bytes`, what is stored there; `beside`, what evicts
    or is compared with them, the check's decoded copies, and what a process holds for each slice.
    `far`: the footprint that no cache of the point's CPUs helps with. `chain`: of `beside`, the
    cycle that a thread chases; 0 where none does.
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
        """By passes over all slices, as their geometry has it."""
        return self.slice_walked * self.slices


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures. Every launch visits all points, `samples` samples of `sample_time`
    seconds each time.
    """

    points: tuple[Visited, ...]
    launches: Size
    samples: Size
    sample_time: Positive
    seed: Count
    # which run it is; its records bear the name, and are compared with no other run's
    run: str = ""
    patience: Positive = 300.0  # seconds without a sign of life after which a visit has hung
    library: str = ""  # path of the kernels' library; the installed one where none is named
    # paths of plug-ins, whose kernels stand beside that library's
    plugin: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()  # their variants, whose points have processes of their own
    against: str = ""  # path of a second library: then every visit is a duel of the two
    against_plugin: tuple[str, ...] = ()  # and of the plug-ins beside that
    # names of points that in a duel have `library` on both sides, loaded twice
    controls: tuple[str, ...] = ()
    # What earlier runs have seen, by class of points, as Tuned has it. None: nothing is tuned, and
    # who asks for no schedule has the default.
    tuning: dict[str, dict[str, tuple[Number, ...]]] | None = None
    chosen: dict[str, str] = field(default_factory=dict)  # schedules that stand already, by class
    neighbour: bool = False  # whether points are timed beside a neighbour too
    peers: dict[str, str] = field(default_factory=dict)  # paths of libraries, by engine's word
    pythons: dict[str, str] = field(default_factory=dict)  # and of interpreters
    # whether two builds of an engine meet in every visit: its words with @base and @head
    contest: bool = False

    def is_foreign(self, point: Visited) -> TypeGuard[Point]:
        """Whether its kernel is a plug-in's."""
        return isinstance(point, Point) and point.variant in self.foreign


@dataclass(frozen=True, slots=True)
class Job:
    """What one process does of a launch: all of it, or as a new `part` what a process before it
    left undone. `needs`: of the points' own memory, by their names.
    """

    plan: Plan
    launch: Count
    part: Count
    points: tuple[Visited, ...]
    machine: Machine
    needs: dict[str, Needs]
    # a folder where the run's processes leave each other what answers are checked against
    references: str
    # time.monotonic() at which it is ended, whatever it is at; None: it has all the time
    until: Number | None = None
