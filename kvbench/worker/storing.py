"""A store on the bench: the kernel over all slices, beside copies of as many bytes."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from kvbench.errors import WrongAnswer
from kvbench.model import COPY_NT
from kvbench.model.planes import PLANES
from kvbench.native import Cache, Task, block_of, store_task
from kvbench.oracle import rounding
from kvbench.units import MIB
from kvbench.worker.bench import Bench
from kvbench.worker.loop import Program

_PIECES = 1024  # of a copy, at most
_HALF = 0.501  # steps of rounding, for rows whose scales are given
STALE = 0xFF  # bytes of what is still to be written: NaN in every format, and not a scale


class Storing(Bench):
    """A bench of a store: each layer's rows of the room's sources go into its cache."""

    # ---- programs --------------------------------------------------------------------------------

    @cached_property
    def kernel(self) -> Program:
        return self.program("point", *self.stored(self.point.variant == "nt"))

    @cached_property
    def plainest(self) -> Program:
        return self._copy("copy")

    @cached_property
    def witnesses(self) -> list[Program]:
        return [*self.alone, self.plainest, self._copy(COPY_NT.name)]

    def more(self) -> Iterator[Program]:
        """Add the other kind of stores."""
        if self.point.op == "bulk":
            tasks = self.stored(self.point.variant != "nt")
            yield Program("other", self.team, tasks, self.between)
        yield from super().more()

    def stored(self, nt: bool) -> tuple[Task, ...]:
        op, bulk, tasks = self.point.op, self.point.op == "bulk", []
        threads, isa = self.team.threads, self.point.isa
        for layer, cache in enumerate(self.room.caches):
            k, v = (rows if bulk else rows[:, 0] for rows in self.room.source(layer))
            task = store_task(op, cache, k, v, threads, isa=isa, nt=nt, advance=not bulk)
            tasks.append(self._owned.enter_context(task))
        return tuple(tasks)

    def _copy(self, op: str) -> Program:
        """A program that copies along the slices, from one half to the other, in pieces of a MiB or
        more. So the cost of barriers does not count.
        """
        half = min(self.room.whole.size, self.needs.walked) // 2
        pieces = max(1, min(_PIECES, half // MIB))
        size = half // pieces // 64 * 64
        parts = [self.room.arena.part(place * size, size) for place in range(2 * pieces)]
        pairs = zip(parts[:pieces], parts[pieces:], strict=True)
        return self.program(
            op, *(self.probe(op, to=to, source=source, size=size) for to, source in pairs)
        )

    # ---- what is stored --------------------------------------------------------------------------

    def verify(self) -> float:
        """The largest error of three slices, one of them random."""
        last = self.room.slices - 1
        return max(self._verify_store(layer) for layer in {0, last, self._random.randint(0, last)})

    def verify_left(self, passes: int) -> float:
        """The largest error after a new store: copies have overwritten what was stored."""
        return self.verify()

    def _verify_store(self, layer: int) -> float:
        """The largest difference of what was stored from its source; more than the format's
        rounding is an error. For tokens that come one at a time: the last one that fits the cache,
        and the next one.
        """
        cache, source = self.room.caches[layer], self.room.source(layer)
        capacity, tokens = cache.struct.capacity, source[0].shape[1]
        self.room.rows[layer] = STALE
        first, passes = (capacity - 1, min(2, capacity)) if self.point.op == "append" else (0, 1)
        cache.lengths[:] = first
        self.own.team.run(self.own.tasks[layer], passes=passes)
        cache.lengths[:] = end = first + tokens * passes
        count = tokens * passes
        k, v = cache.rows(
            min(end, capacity) - count, count, cache.library.isas()[0], self.team.threads
        )
        cache.lengths[:] = self.point.shape.context - tokens
        return off(cache, (k, v), source, self.wrong)


def off(
    cache: Cache,
    found: Sequence[np.ndarray] | np.ndarray,
    source: Sequence[np.ndarray] | np.ndarray,
    wrong: Callable[[str], WrongAnswer],
) -> float:
    """The largest error of K and V that a cache holds. `wrong`: makes an error from a text, used if
    the error exceeds the format's rounding.
    """
    error = 0.0
    for plane, got, want in zip(PLANES, found, source, strict=True):
        far, scaled = np.abs(got - want), getattr(cache.struct, plane).scale_bytes > 0
        block = block_of(cache.half(plane)[0], cache.library)
        if plane == "k" and cache.channel is not None:
            allowed = cache.channel * _HALF
        else:
            allowed = rounding(want, block, scaled)
        if not (far <= allowed).all():
            raise wrong(f"stores rows off by {far.max():.3g}")
        error = max(error, float(far.max()))
    return error
