"""Checks of whole steps, and faults planted in them. The bench that times steps does the check: it
makes the newest token stale in all layers, runs a step, and looks at what was stored and answered.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import numpy as np

from kvbench.errors import WrongAnswer
from kvbench.machine import describe
from kvbench.model import DEFAULTS, POINT, Kernel, Point, Shape
from kvbench.model.point import STEP
from kvbench.native import Cache, Library, Task
from kvbench.plan.needs import needs
from kvbench.plan.site import kernels_of
from kvbench.verify.faults import Fault
from kvbench.verify.moves import Moves
from kvbench.worker.answers import Answers
from kvbench.worker.ground import Ground
from kvbench.worker.stepping import Stepping
from kvbench.worker.steproom import StepRoom

_FAR = 1 << 16  # bytes that stand for memory
_BETWEEN = 64 * 70
_SHARED = 4  # blocks
# Every second layer slides; all slide, with their rings past the end; none slides.
_MIXED = Shape(2, 6, 2, 80, 340, 350, 90, 4, full_every=2, lengths="listed:333,70")
_RINGS = Shape(2, 8, 2, 64, 257, 257, 90, 2, lengths="listed:257,99")
_ODD = Shape(3, 21, 3, 37, 700, 701, 0, 2, lengths="listed:129,1,641")


def steps_of(library: Library) -> list[Kernel]:
    """One step for each layout, dtype and tier. Variants are checked as decodes."""
    first = library.words("variant")[0]
    return [each for each in kernels_of(library) if each.op == STEP and each.variant == first]


class Steps(Moves):
    """The checks of whole steps, each on its own memory."""

    def __init__(self, library: Library, quick: bool) -> None:
        super().__init__(library)
        self._shapes = (_MIXED,) if quick else (_MIXED, _RINGS, _ODD)
        self._machine = describe()
        self._ground = self.owned.enter_context(Ground(library, self._machine))

    def check_step(self, kernel: Kernel) -> float:
        worst = 0.0
        for threads, shape in enumerate(self._shapes, 1):
            with ExitStack() as owned:
                bench = self.bench(owned, kernel, shape, threads)
                worst = max(worst, _share(bench))
                if Cache.is_paged(kernel.layout, self.library) and shape is _MIXED:
                    share_blocks(bench)
                    worst = max(worst, _share(bench))
        return worst

    def bench(
        self,
        owned: ExitStack,
        kernel: Kernel,
        shape: Shape = _MIXED,
        threads: int = 1,
        make: type[Stepping] = Stepping,
    ) -> Stepping:
        point = self._point(kernel, shape, threads)
        needed = needs(point, _FAR)
        room = owned.enter_context(StepRoom(point, needed, self._ground))
        return owned.enter_context(make(point, needed, room, Answers()))

    def _point(self, kernel: Kernel, shape: Shape, threads: int) -> Point:
        cpus, paged = self._machine.allowed, Cache.is_paged(kernel.layout, self.library)
        own = {name: getattr(kernel, name) for name in ("variant", "layout", "dtype", "isa")}
        own |= {"op": STEP, "order": 1 if paged else None, "between": _BETWEEN, "shape": shape}
        own |= {"cpus": tuple(cpus[each % len(cpus)] for each in range(threads))}
        own["pages"] = self.library.words("pages")[0]
        return Point(**{field.name: DEFAULTS[field.name] for field in POINT} | own)


def _share(bench: Stepping) -> float:
    """The largest error of a step's answers, as a share of the allowed error."""
    bench.verify()
    bench.own.team.run(*bench.own.tasks)
    shares = []
    for part in bench.parts:
        answer, signs = part.queries.right(), part.room.signs[:, 1, None, None]
        shares.append(np.abs(part.queries.out * signs - answer.out) / answer.limit)
    return max(float(share.max()) for share in shares)


def share_blocks(bench: Stepping) -> None:
    """The second sequence begins with the first one's blocks."""
    for part in bench.parts[:1]:
        for cache in part.room.caches:
            assert cache.table is not None
            cache.table[1, :_SHARED] = cache.table[0, :_SHARED]
        part.queries.answer()


# ---- faults: each is planted before a step -------------------------------------------------------


class _Swapped(Stepping):
    def tasks(self) -> list[tuple[Task, int]]:
        found = super().tasks()
        found[:2] = found[1::-1]
        return found


def append_after_decode(bench: Stepping) -> None:
    """The first layer's store comes after its decode; _Swapped orders the tasks so."""


def ring_slot_before_its_own(bench: Stepping) -> None:
    for cache in bench.parts[-1].before:
        cache.lengths[0] -= 1


def token_of_another_layer(bench: Stepping) -> None:
    sources = bench.parts[0].sources
    sources[0] = sources[1]


def block_freed_too_early(bench: Stepping) -> None:
    """A block of the first sequence holds the newest token of the second one."""
    for cache in bench.parts[0].room.caches:
        if cache.table is not None:
            newest = (cache.lengths[1] - 1) // cache.struct.block_tokens
            cache.table[1, newest] = cache.table[0, 0]


FAULTS: dict[Callable[[Stepping], None], type[Stepping]] = {
    append_after_decode: _Swapped,
    ring_slot_before_its_own: Stepping,
    token_of_another_layer: Stepping,
    block_freed_too_early: Stepping,
}


def plant(library: Library, kernels: Iterable[Kernel]) -> Iterator[Fault]:
    """Plant each fault under each whole step that runs here; faults about blocks only in paged
    caches.
    """
    steps = [kernel for kernel in kernels if kernel.op == STEP and kernel.runnable]
    with Steps(library, quick=True) as checks:
        for fault, make in FAULTS.items():
            own = [
                kernel
                for kernel in steps
                if fault is not block_freed_too_early or Cache.is_paged(kernel.layout, library)
            ]
            caught = sum(_caught(checks, kernel, fault, make) for kernel in own)
            if own:
                yield Fault(f"step: {fault.__name__.replace('_', ' ')}", len(own), caught, None)


def _caught(
    checks: Steps, kernel: Kernel, fault: Callable[[Stepping], None], make: type[Stepping]
) -> bool:
    with ExitStack() as owned:
        bench = checks.bench(owned, kernel, make=make)
        fault(bench)
        try:
            bench.verify()
        except WrongAnswer:
            return True
    return False
