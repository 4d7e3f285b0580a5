"""A decode on the bench: the kernel over all slices, beside reads of the same rows, the core roof,
and memory.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kvbench.model import AUTO, POINT, Point
from kvbench.model.contrast import alone_of
from kvbench.model.point import FLOPS
from kvbench.model.program import AHEAD, ALONE, CORE, CORE_OFF, MEMORY, ROTATED, SLICE
from kvbench.native import Cache, Task, decode_task
from kvbench.oracle import TILE
from kvbench.plan.classes import FROM_MEMORY, level, near_memory
from kvbench.regime import levels
from kvbench.worker.bench import Bench
from kvbench.worker.content import SEED
from kvbench.worker.loop import Program
from kvbench.worker.probing import ROUNDS
from kvbench.worker.queries import Queries, asked_of

_STEP = 16  # tokens that a kernel takes together, at least
_UNKNOWN = 256 << 10  # assumed bytes of a private cache if none is declared
_OTHERS = 3  # slices checked with other queries, besides the first


class Decoding(Bench):
    """A bench of a decode. `queries`: of all layers, each with room for its answer."""

    def _prepare(self) -> None:
        super()._prepare()
        if not self.foreign:
            self.ran = self.room.library.schedule(self.point.schedule)
        self.queries = Queries(self.point, self.room, self._answers, self.wrong)

    # ---- programs --------------------------------------------------------------------------------

    @cached_property
    def kernel(self) -> Program:
        return self.under("point", self.ran or AUTO)

    @property
    def alone(self) -> list[Program]:
        """The simpler point beside it: one query beside several, or plain scores beside changed
        ones.
        """
        return super().alone or ([self._single] if self._one else [])

    @cached_property
    def _one(self) -> Queries | None:
        """Queries of the simpler point beside it: only the newest token's query if there are
        several, else plain scores. None if anything is read between passes.
        """
        if self.point.streamed or alone_of(self.point) == self.point:
            return None
        found = Queries(alone_of(self.point), self.room, self._answers, self.wrong)
        found.out[:] = np.nan
        return found

    @cached_property
    def _single(self) -> Program:
        assert self._one
        own = zip(self.room.caches, self._one.q, self._one.out, strict=True)
        walk = self._walk(alone_of(self.point))
        return self.program(ALONE, *(self._decode("decode", *each, **walk) for each in own))

    @cached_property
    def plainest(self) -> Program:
        return self.under("twin", "off", "twin")

    @cached_property
    def witnesses(self) -> list[Program]:
        return [*self.alone, *self.limits, *self._nearer()]

    @cached_property
    def limits(self) -> list[Program]:
        """Reads of the same rows, and the core roof. The reads have nothing between passes; if the
        point has, they are not its limit.
        """
        return self.cores if self.point.streamed else [*self.twins, *self.cores]

    @cached_property
    def twins(self) -> list[Program]:
        ahead = AUTO if self.ran == "off" else self.ran or AUTO
        return [self.plainest, self.under(AHEAD.name, ahead, "twin")]

    @cached_property
    def cores(self) -> list[Program]:
        """The core roof in the point's own schedule and in none: in a cache either may be faster.
        Both share the time of one sample. A plug-in's kernel has no schedule.
        """
        forms = {CORE: self.ran or AUTO}
        if self.ran not in ("", "off"):
            forms[CORE_OFF.name] = "off"
        return [
            Program(name, self.team, (self._wrapped(schedule),), sharers=len(forms))
            for name, schedule in forms.items()
        ]

    def more(self) -> Iterator[Program]:
        """Add reads of memory, if a cache can help the point's own; and roofs of products other
        than float32.
        """
        yield from super().more()
        if self.room.whole.size < self.far.bytes:
            yield from self.reads("dram", self.far.whole)
        own = self.room.library.computes(self.point.variant, self.point.kv_dtype)
        for op in dict.fromkeys(own):
            if op != FLOPS:
                yield Program(op, self.team, (self.probe(op, steps=ROUNDS),))

    def under(self, name: str, schedule: str, op: str = "decode") -> Program:
        """The point, or its twin, under another schedule."""
        return self.program(name, *self._over_layers(op, **self._walk(schedule=schedule)))

    def stages(self) -> tuple[float, ...]:
        """Shares of QK, softmax and PV, from a separate run: reading the clock between stages costs
        a little. Empty if the kernel does not tell them apart.
        """
        if self.foreign:
            return ()
        tasks = self._over_layers("decode", **self._walk(stages=True))
        shares = self.team.run(*tasks, passes=len(tasks)).stage_share
        return shares if any(shares) else ()

    def _walk(self, point: Point | None = None, **more: Any) -> dict[str, Any]:
        point = point or self.point
        own = {field.name: getattr(point, field.name) for field in POINT if field.walked}
        return own | {"schedule": self.ran or AUTO} | asked_of(point.shape) | more

    def _decode(self, op: str, cache: Cache, q: np.ndarray, out: np.ndarray, **facts: Any) -> Task:
        return self._owned.enter_context(self._planned(op, cache, q, out, **facts))

    def _planned(self, op: str, cache: Cache, q: np.ndarray, out: np.ndarray, **facts: Any) -> Task:
        facts = {"variant": self.point.variant, "isa": self.point.isa, **facts}
        return decode_task(op, cache, q, out, self.team.threads, **facts)

    @property
    def _slices(self) -> Iterator[tuple[Cache, np.ndarray, np.ndarray]]:
        """Each cache with its queries and room for its answer."""
        return zip(self.room.caches, self.queries.q, self.queries.out, strict=True)

    def _over_layers(self, op: str, **facts: Any) -> tuple[Task, ...]:
        return tuple(self._decode(op, *each, **facts) for each in self._slices)

    # ---- the core roof ---------------------------------------------------------------------------

    def _wrapped(self, schedule: str) -> Task:
        """The walk over a window. All threads walk the same one, each in its private cache."""
        out = np.empty_like(self.queries.out[0])
        walk = self._walk(schedule=schedule, wrap=self.window[0])
        return self._decode("decode", self._longest, self.queries.q[0], out, **walk)

    @cached_property
    def _longest(self) -> Cache:
        """Return the cache of the first slice, its lengths sorted so that the first sequence is the
        longest: the core's window holds that sequence.
        """
        cache = self._owned.enter_context(self.room.cache(0))
        cache.lengths[:] = sorted(self.point.shape.held, reverse=True)
        return cache

    @property
    def core_level(self) -> str:
        return self.window[1]

    @cached_property
    def window(self) -> tuple[int, str]:
        """Tokens of the core roof's window, and the cache that holds it: the largest private cache.
        K and V take half of it. The other half is for scores, sums and queries, which take 4 to 16
        KiB.

        A walk has no block longer than its window, and short blocks cost time. In L1, by 64 tokens,
        i8 with byte products took 1.4 times as long as by 1,024 in L2, and q4_0 1.2 times.
        """
        shape, cache = self.point.shape, self.room.caches[0].struct
        token = (cache.k.row_bytes + cache.v.row_bytes) * (
            shape.kv_heads if cache.k.head_stride < cache.k.token_stride else 1
        )
        below = [*levels(self.room.ground.machine, self.point.cpus).items()][:-1]
        sizes = {f"L{level}": min(cache.size for cache in caches) for level, caches in below} or {
            "": _UNKNOWN
        }
        *_, (name, size) = sizes.items()
        fits = size // 2 // token // _STEP * _STEP
        return max(1, min(max(shape.held), max(_STEP, min(TILE, fits)))), name

    # ---- beside memory ---------------------------------------------------------------------------

    def _nearer(self) -> list[Program]:
        """The programs that compare with memory. For a point in memory: plain reads of memory. For
        a point that L3 feeds, or a little beyond: also reads of its slice, and the same kernel on
        slices in memory.
        """
        if not near_memory(self.point, self.needs, self.room.ground.machine):
            return [self.memory] if self.from_memory else []
        # a pass over memory is as long as one over the slice
        piece = self.room.whole.size // 64 * 64
        memory = self.far_reads(piece, self.far.whole.size // piece)
        plain = self.probe("read", to=self.room.whole, size=piece)
        reads = [
            Program(SLICE, self.team, (plain,)),
            Program(MEMORY, self.team, memory, warm=False),
        ]
        return (
            reads
            if self.foreign
            else [*reads, self.rotated(ROTATED, self.far_schedule or self.ran)]
        )

    @property
    def from_memory(self) -> bool:
        return level(self.point, self.needs, self.room.ground.machine) == FROM_MEMORY

    @cached_property
    def memory(self) -> Program:
        """Plain reads of memory by the point's threads."""
        return self.memory_by(self.point.cpus)

    def memory_by(self, cpus: tuple[int, ...]) -> Program:
        """Plain reads of memory by a thread on each of `cpus`, each pass as long as one over a
        slice: of the room's own slices in rotation, if no cache helps with them.
        """
        room, piece, threads = self.room, max(64, self.needs.slice_walked // 64 * 64), len(cpus)
        if self.needs.walked < self.far.bytes:
            reads = self.far_reads(piece, self.far.whole.size // piece, threads)
        else:
            starts = (-(-layer * room.slice_bytes // 64) * 64 for layer in range(room.slices))
            parts = (room.arena.part(start, piece) for start in starts)
            reads = tuple(self.probe("read", threads, to=part, size=piece) for part in parts)
        return Program(MEMORY, room.team(cpus), reads, warm=False)

    def rotated(self, name: str, schedule: str) -> Program:
        """The kernel on copies of the slice that no cache holds, with the best schedule there."""
        tasks = (
            self._decode("decode", *each, **self._walk(schedule=schedule)) for each in self._rotated
        )
        return Program(name, self.team, tuple(tasks), warm=False)

    @cached_property
    def _rotated(self) -> list[tuple[Cache, np.ndarray, np.ndarray]]:
        """More slices, in memory, each with its queries and room for an answer."""
        caches = self.far.slices(self._owned)
        q = self.queries.of(self.room.signs_of(self.far.layers))
        out = np.full((len(q), *self.queries.out.shape[1:]), np.nan, dtype=np.float32)
        return list(zip(caches, q, out, strict=True))

    # ---- answers ---------------------------------------------------------------------------------

    def verify(self) -> float:
        """The largest error of all slices, each walked once. The answers are forgotten first."""
        return self._verify_layers(range(self.room.slices))

    def _verify_layers(self, layers: Sequence[int]) -> float:
        self.queries.out[:] = np.nan
        self.own.team.run(*(self.own.tasks[layer] for layer in layers), passes=len(layers))
        error = self.queries.error(len(layers))
        self.queries.out[:] = np.nan
        return error

    def verify_beside(self, programs: Sequence[Program]) -> float:
        names, error = {program.name for program in programs}, 0.0
        if ALONE in names and self._one:
            error = self._one.error(1)
        if ROTATED in names:
            written = [out for *_, out in self._rotated]
            signs = self.room.signs_of(self.far.layers)
            error = max(error, self.queries.error_of(written, signs, 1))
        return error

    def verify_left(self, passes: int) -> float:
        return self.queries.error(min(passes, self.room.slices))

    def verify_changed(self) -> float:
        """The largest error of the first slice and three others, asked other queries: a kernel that
        returns a remembered answer is found out.
        """
        others = range(1, self.room.slices)
        self.queries.ask(SEED + 1)
        error = self._verify_layers([0, *self._random.sample(others, min(_OTHERS, len(others)))])
        self.queries.ask(SEED)
        return error
