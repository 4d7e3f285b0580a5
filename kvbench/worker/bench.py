"""The programs of one point in a room: the kernel and its witnesses. And whether its answers are
right.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from kvbench.closing import Owner
from kvbench.errors import WrongAnswer
from kvbench.machine.allowance import Disturbed
from kvbench.machine.placement import neighbours
from kvbench.model import AUTO, COPY_NT, PACE, PLAIN, POINT, Plan, Point, Role, Sample
from kvbench.model.program import AHEAD, CORE, MEMORY, ROTATED, SLICE
from kvbench.native import (
    Arena,
    Cache,
    Part,
    Task,
    block_of,
    decode_task,
    forms,
    probe_task,
    store_task,
)
from kvbench.oracle import TILE, rounding
from kvbench.plan import needs
from kvbench.plan.classes import near_memory
from kvbench.regime import dram_bytes, far_bytes, levels
from kvbench.units import MIB
from kvbench.worker.answers import Answer, Answers
from kvbench.worker.loop import Program, rounds
from kvbench.worker.neighbour import PIECES, Neighbour
from kvbench.worker.probing import FORM_EVERY, ROUNDS
from kvbench.worker.room import SEED, Room

_PACE = 0.001  # seconds of a sample
_STEP = 16  # tokens that a kernel takes together, at least
# of a core roof, at least: walked by 16, f32 in L1 took a fifth longer than by 64 in L2
_WINDOW = 64
_UNKNOWN = 256 << 10  # bytes of a private cache, where none is declared
_PIECES = 1024  # of a copy, at most
_OTHERS = 3  # slices that are checked with other queries, beside the first
_STALE = 0xFF  # bytes of what is still to be written: no number in any format, nor is a scale


class Bench(Owner):
    """`own`: the point as a program; `witnesses`: what every sample of it is held against. Each is
    made when first asked for, and lives as long as the bench.
    """

    def __init__(self, point: Point, room: Room, answers: Answers, seed: int = 0) -> None:
        self.point, self.room, self._answers, self._random = (
            point,
            room,
            answers,
            random.Random(seed),
        )
        self.team, self._seed = room.team(point.cpus), seed
        silent = needs.stores(point) or self.foreign
        # that runs; tuning may choose another
        self.schedule = "" if silent else room.library.schedule(point.schedule)
        self.far_schedule = ""  # of copies in memory, where there are any; else the same
        super().__init__()

    @property
    def stores(self) -> bool:
        return needs.stores(self.point)

    def _prepare(self) -> None:
        shape = self.point.shape
        vectors = (self.room.layers, shape.batch, shape.q_heads, shape.head_dim)
        self.q, self.out = np.empty((2, *vectors), dtype=np.float32)
        self.ask(SEED)
        machine = self.room.ground.machine
        self.far_bytes = far_bytes(machine, self.point.cpus)
        self.between, least = None, dram_bytes(machine, self.point.cpus) or self.far_bytes
        if self.point.residency == "evicted":  # it throws the caches' contents out
            self.between = self.probe("read", to=self.far, size=self.far.size)
        self._warm = self.between is None and self.room.needs.footprint < least

    def ask(self, seed: int) -> None:
        """Queries that `seed` tells; each layer's with the signs of its K, so that one answer
        serves all.
        """
        self.asked = np.random.default_rng(seed).standard_normal(self.q.shape[1:], dtype=np.float32)
        np.multiply(self.asked, self.room.signs[:, 0, None, None], out=self.q)
        self._answer = None

    # ---- programs --------------------------------------------------------------------------------

    @property
    def programs(self) -> list[Program]:
        return [self.own, *self.witnesses, self.pace]

    @cached_property
    def own(self) -> Program:
        if self.stores:
            return self._program("point", *self.stored(self.point.variant == "nt"))
        return self.under("point", self.schedule or AUTO)

    @cached_property
    def witnesses(self) -> list[Program]:
        if self.stores:
            return [self.plainest, self._copy(COPY_NT.name)]
        first, out = (self.room.caches[0], self.q[0]), np.empty_like(self.asked)
        core = Program(
            CORE,
            self.team,
            (self._decode("decode", *first, out, **self._walk(wrap=self.window[0])),),
        )
        ahead = AUTO if self.schedule == "off" else self.schedule or AUTO
        return [self.plainest, self.under(AHEAD.name, ahead, "twin"), core, *self._nearer()]

    @cached_property
    def plainest(self) -> Program:
        """The witness that does no more than read, or copy."""
        return self._copy("copy") if self.stores else self.under("twin", "off", "twin")

    def neighbour(self) -> Neighbour | None:
        """On all cores of its nodes that the point leaves free; None where there is none."""
        if not (cpus := neighbours(self.room.ground.machine, self.point.cpus)):
            return None
        reads = self._far_reads(self.far.size // PIECES // 64 * 64, PIECES, len(cpus))
        return Neighbour(self.room.team(cpus), cpus, reads)

    def _far_reads(self, piece: int, count: int, threads: int = 0) -> tuple[Task, ...]:
        parts = (self._far_arena.part(place * piece, piece) for place in range(count))
        return tuple(self.probe("read", threads, to=part, size=piece) for part in parts)

    def _nearer(self) -> list[Program]:
        """Where L3 feeds the point, and a little beyond: plain reads of its slice and of memory,
        and the same kernel on slices in memory.
        """
        if not near_memory(self.point, self.room.needs, self.room.ground.machine):
            return []
        # a pass over memory is as long as one over the slice
        piece = self.room.slices.size // 64 * 64
        memory = self._far_reads(piece, self.far.size // piece)
        plain = self.probe("read", to=self.room.slices, size=piece)
        reads = [
            Program(SLICE, self.team, (plain,)),
            Program(MEMORY, self.team, memory, warm=False),
        ]
        return (
            reads
            if self.foreign
            else [*reads, self.rotated(ROTATED, self.far_schedule or self.schedule)]
        )

    def rotated(self, name: str, schedule: str) -> Program:
        """The kernel on copies of the slice that no cache holds, with the schedule that is best
        there.
        """
        tasks = (
            self._decode("decode", *each, **self._walk(schedule=schedule)) for each in self._rotated
        )
        return Program(name, self.team, tuple(tasks), warm=False)

    @cached_property
    def _rotated(self) -> list[tuple[Cache, np.ndarray, np.ndarray]]:
        """More slices, in memory, together more than caches hold; each with its queries and room
        for an answer.
        """
        count, layers = self.room.slice_bytes, self._more_layers
        for copy, cache in enumerate(
            caches := [self.room.cache(copy, self._far_arena) for copy in range(len(layers))]
        ):
            self._owned.enter_context(cache).lengths[:] = self.room.caches[0].lengths
        self.room.make(layers, self._far_arena.view()[: len(layers) * count].reshape(-1, count))
        q = self.asked * self.room.signs_of(layers)[:, 0, None, None]
        return list(zip(caches, q, np.full_like(q, np.nan), strict=True))

    @property
    def _more_layers(self) -> range:
        return range(self.room.layers, self.room.layers + self.far.size // self.room.slice_bytes)

    def _copy(self, op: str) -> Program:
        """Along the slices, as what is stored goes: from one half of them to the other, in pieces
        of a MiB or more, so that what threads lose by meeting is no part of it.
        """
        half = min(self.room.slices.size, self.room.needs.footprint) // 2
        pieces = max(1, min(_PIECES, half // MIB))
        size = half // pieces // 64 * 64
        parts = [self.room.arena.part(place * size, size) for place in range(2 * pieces)]
        pairs = zip(parts[:pieces], parts[pieces:], strict=True)
        return self._program(
            op, *(self.probe(op, to=to, source=source, size=size) for to, source in pairs)
        )

    def _program(self, name: str, *tasks: Task) -> Program:
        return Program(name, self.team, tasks, self.between, self._warm)

    def under(self, name: str, schedule: str, op: str = "decode") -> Program:
        """The point, or its twin, as it would be with that one."""
        return self._program(name, *self._over_layers(op, **self._walk(schedule=schedule)))

    def stages(self) -> tuple[float, ...]:
        """Shares of QK, softmax and PV from a run of its own: reading the clock between them costs
        a little. None where the kernel does not tell them apart.
        """
        if self.stores or self.foreign:
            return ()
        tasks = self._over_layers("decode", **self._walk(stages=True))
        shares = self.team.run(*tasks, passes=len(tasks)).stage_share
        return shares if any(shares) else ()

    def stored(self, nt: bool) -> tuple[Task, ...]:
        op, bulk, tasks = self.point.op, self.point.op == "bulk", []
        facts = {"isa": self.point.isa, "nt": nt, "advance": not bulk}
        for cache, source in zip(self.room.caches, self.room.sources, strict=True):
            task = store_task(
                op, cache, *(source if bulk else source[:, :, 0]), self.team.threads, **facts
            )
            tasks.append(self._owned.enter_context(task))
        return tuple(tasks)

    def probe(self, op: str, threads: int = 0, **facts: Any) -> Task:
        """By the point's threads, or so many others."""
        task = probe_task(
            self.room.library, op, threads or self.team.threads, isa=self.point.isa, **facts
        )
        return self._owned.enter_context(task)

    def reads(self, name: str, walked: Part, between: Task | None = None) -> list[Program]:
        """Reads of so much memory, in all forms, of which each launch has seen a plug-in beaten by
        none.
        """
        size, found = walked.size // 64 * 64, []
        for form, how in forms("read", self.room.library).items():
            every = 1 if form == PLAIN or self.foreign else FORM_EVERY
            task = self.probe("read", to=walked, size=size, **how)
            found.append(Program(Role(name, form).name, self.team, (task,), between, every=every))
        return found

    @cached_property
    def pace(self) -> Program:
        """How fast the cores are now: in every round, beside the point."""
        return Program(PACE, self.team, (self.probe("flops", steps=ROUNDS // 8),), seconds=_PACE)

    def computed(self, op: str) -> Program:
        """What such instructions give at most."""
        return Program(op, self.team, (self.probe(op, steps=ROUNDS),))

    @cached_property
    def far(self) -> Part:
        """Memory that no cache of the point's CPUs helps with."""
        return self._far_arena.part(0, self.far_bytes // 64 * 64)

    @property
    def _far_arena(self) -> Arena:
        return self.room.ground.far(self.team, self.point.cpus, self.point.pages, self.far_bytes)

    def _walk(self, **more: Any) -> dict[str, Any]:
        own = {field.name: getattr(self.point, field.name) for field in POINT if field.walked}
        return own | {"schedule": self.schedule or AUTO} | more

    def _decode(self, op: str, cache: Cache, q: np.ndarray, out: np.ndarray, **facts: Any) -> Task:
        facts = {"variant": self.point.variant, "isa": self.point.isa, **facts}
        return self._owned.enter_context(decode_task(op, cache, q, out, self.team.threads, **facts))

    def _over_layers(self, op: str, **facts: Any) -> tuple[Task, ...]:
        slices = zip(self.room.caches, self.q, self.out, strict=True)
        return tuple(self._decode(op, *each, **facts) for each in slices)

    @property
    def core_level(self) -> str:
        return "" if self.stores else self.window[1]

    @cached_property
    def window(self) -> tuple[int, str]:
        """Tokens of the core roof's window, and the cache that they stay in: the first below the
        last level of which half holds K and V of so many. The other half is for scores, sums and
        queries, which take 4 to 16 KiB.
        """
        shape, cache = self.point.shape, self.room.caches[0].struct
        token = (
            2
            * cache.k.row_bytes
            * (shape.kv_heads if cache.k.head_stride < cache.k.token_stride else 1)
        )
        below = [*levels(self.room.ground.machine, self.point.cpus).items()][:-1]
        sizes = {f"L{level}": min(cache.size for cache in caches) for level, caches in below} or {
            "": _UNKNOWN
        }
        least = min(_WINDOW, shape.context) * token
        name = next((name for name, size in sizes.items() if size // 2 >= least), [*sizes][-1])
        fits = sizes[name] // 2 // token // _STEP * _STEP
        return max(1, min(shape.context, max(_STEP, min(TILE, fits)))), name

    # ---- answers ---------------------------------------------------------------------------------

    foreign = False  # whether the kernel is a plug-in's

    def measured(
        self, programs: Sequence[Program], samples: int, seconds: float, **how: Any
    ) -> tuple[tuple[Sample, ...], float]:
        """Samples, and the largest error of what the kernel answered before and after them. how:
        more for rounds().
        """
        error = self.verified()
        with self.watching():
            # Seconds of passes, which may be millions, are dropped as they come, unless they tell
            # of tails.
            taken = tuple(
                sample if sample.one_by_one else replace(sample, pass_seconds=())
                for sample in rounds(programs, samples, seconds, self._seed, **how)
            )
        own = min(sample.passes for sample in taken if sample.program == self.own.name)
        if any(program.name == ROTATED for program in programs):
            written = [out for *_, out in self._rotated]
            error = max(error, self._error(written, self.room.signs_of(self._more_layers), 1))
        error = max(error, self.verify_left(own), self.verify_changed())
        self.refuse_impossible(taken)
        return taken, error

    def verified(self) -> float:
        """As verify(), and looked after where the kernel is a plug-in's."""
        return self.verify()

    def watching(self) -> AbstractContextManager[None]:
        """Around the kernel's samples."""
        return nullcontext()

    def refuse_impossible(self, taken: Sequence[Sample]) -> None:
        """What our own kernels cannot do."""

    def _wrong(self, what: str) -> WrongAnswer:
        return WrongAnswer(
            f"{self.point.kernel} {what}",
            "run kvbench verify, and report its output as a bug of kvbench",
        )

    def verify(self) -> float:
        """The largest error of all slices, each of them walked once; of stores that of three, one
        of them drawn anew. Nothing is left of the answers.
        """
        last = self.room.layers - 1
        if self.stores:
            return max(
                self._verify_store(layer) for layer in {0, last, self._random.randint(0, last)}
            )
        return self._verify_layers(range(self.room.layers))

    def _verify_layers(self, layers: Sequence[int]) -> float:
        self.out[:] = np.nan
        self.team.run(*(self.own.tasks[layer] for layer in layers), passes=len(layers))
        error = self._error(self.out, self.room.signs, len(layers))
        self.out[:] = np.nan
        return error

    def verify_left(self, passes: int) -> float:
        """The largest error of what so many passes have left behind, or more. What was stored is
        stored again: copies were made over it.
        """
        if self.stores:
            return self.verify()
        return self._error(self.out, self.room.signs, min(passes, self.room.layers))

    def verify_changed(self) -> float:
        """The largest error of the first slice and three others, which other queries have been
        asked: an answer that a kernel has kept is a wrong one.
        """
        if self.stores:
            return 0.0
        others = range(1, self.room.layers)
        self.ask(SEED + 1)
        error = self._verify_layers([0, *self._random.sample(others, min(_OTHERS, len(others)))])
        self.ask(SEED)
        return error

    def _error(self, out: Sequence[np.ndarray], signs: np.ndarray, slices: int) -> float:
        """Of so many slices at least: those that no pass came to have no number."""
        answer = self._right()
        written = [
            (own, sign)
            for own, (_, sign) in zip(out, signs, strict=True)
            if not np.isnan(own).all()
        ]
        if len(written) < slices:
            raise self._wrong("leaves its output as it was")
        errors = reduce(np.maximum, (np.abs(own * sign - answer.out) for own, sign in written))
        if not (errors <= answer.limit).all():
            raise self._wrong(f"is off by {errors.max():.3g}")
        return float(errors.max())

    def right(self) -> np.ndarray:
        """What the first slice's queries, changed as its K is, are answered, but for the signs of
        V.
        """
        return self._right().out

    def _right(self) -> Answer:
        self._answer = self._answer or self._answers.of(
            self.point, self.room.caches[0], self.asked, self.room.signs[0]
        )
        return self._answer

    def _verify_store(self, layer: int) -> float:
        """What was stored reads back as the source, up to the format's own rounding; of tokens that
        come one at a time the last that the cache has room for, and the one behind it.
        """
        cache, source = self.room.caches[layer], self.room.sources[layer]
        capacity, tokens = cache.struct.capacity, source.shape[2]
        self._spoil(layer)
        first, passes = (capacity - 1, min(2, capacity)) if self.point.op == "append" else (0, 1)
        cache.lengths[:] = first
        self.team.run(self.own.tasks[layer], passes=passes)
        cache.lengths[:] = end = first + tokens * passes
        count = tokens * passes
        k, v = cache.rows(
            min(end, capacity) - count, count, cache.library.isas()[0], self.team.threads
        )
        cache.lengths[:] = self.point.shape.context - tokens
        return self._off(cache, (k, v), source)

    def _spoil(self, layer: int) -> None:
        """What lies there still is no right answer."""
        begin = layer * self.room.slice_bytes
        self.room.arena.view()[begin : begin + self.room.slice_bytes] = _STALE

    def _off(self, cache: Cache, found: Sequence[np.ndarray], source: Sequence[Any]) -> float:
        """The largest error of K and V that a cache holds."""
        block, scaled = block_of(cache.dtype, cache.library), self.own.traffic().scales > 0
        error = 0.0
        for got, want in zip(found, source, strict=True):
            off = np.abs(got - want)
            if not (off <= rounding(want, block, scaled)).all():
                raise self._wrong(f"stores rows off by {off.max():.3g}")
            error = max(error, float(off.max()))
        return error


def side_by_side(
    benches: Mapping[str, Bench],
    programs: Sequence[Program],
    plan: Plan,
    seed: int,
    watch: Callable[[], Disturbed],
) -> tuple[tuple[Sample, ...], float]:
    """Samples of programs, of which each bench has one by its name; and the largest error of what
    kernels answered before and after them. Of several seconds of passes none are kept.
    """
    error = max(bench.verified() for bench in benches.values())
    with ExitStack() as watching:
        for bench in benches.values():
            watching.enter_context(bench.watching())
        taken = tuple(
            sample if len(sample.pass_seconds) == 1 else replace(sample, pass_seconds=())
            for sample in rounds(programs, plan.samples, plan.sample_time, seed, watch=watch)
        )
    passes = {
        name: min(sample.passes for sample in taken if sample.program == name) for name in benches
    }
    error = max(error, *(bench.verify_left(passes[name]) for name, bench in benches.items()))
    return taken, max(error, *(bench.verify_changed() for bench in benches.values()))
