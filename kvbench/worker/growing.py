"""A step that grows: a model decodes token after token from a context on. Each token is stored
after those before it, and attends to all of them or to its window.

all memory is touched as far as the sequences will grow; then they are cut back to the context
for each token:
    a place for it in every layer      # paged caches take a block from their pool, rings turn
    its rows, and the decodes of all tokens held now, are planned
    timed: the step; then, in any order, the decodes alone, and at some of the tokens
        the same step again, the stores alone, the weights alone, and a plain read of
        always as many bytes, which tells whether the machine stays the same
    at the first and the last: answers are right, and all tokens stored so far read back
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from kvbench.machine import describe
from kvbench.model import Point, Record, Sample, Traffic
from kvbench.model.program import AGAIN, APPENDS, DECODES, LAST, WEIGHTS
from kvbench.model.shape import EVEN, LISTED
from kvbench.model.tuning import Ratios
from kvbench.native import Blocks, Cache, Series, Task, library_of
from kvbench.native.blocks import NONE
from kvbench.plan.needs import needs_here
from kvbench.worker.answers import Answers
from kvbench.worker.content import SEED
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program, rounds
from kvbench.worker.room import Room
from kvbench.worker.stepping import APPEND, DECODE, WEIGHT, Layers, Stepping, exact_rows
from kvbench.worker.steproom import room_of
from kvbench.worker.storing import off
from kvbench.worker.tuning import Tuner

_SPOTS = 32  # tokens, at least, at which all programs are timed; all if there are fewer
_ALL = (APPEND, DECODE, WEIGHT)


def grown_point(point: Point, tokens: int) -> Point:
    """The step once each sequence has `tokens` more."""
    shape = point.shape
    held = [length + tokens for length in shape.held]
    context = shape.context + tokens
    shape = replace(
        shape,
        context=context,
        capacity=max(shape.capacity, context),
        lengths=EVEN if shape.lengths == EVEN else f"{LISTED}:{','.join(map(str, held))}",
    )
    return replace(point, shape=shape)


def visit_growing(point: Point, tokens: int, evidence: Mapping[str, Ratios] | None) -> Record:
    """Visit a step that grows by `tokens`: a round for each. evidence: as in Tuner."""
    machine, end = describe(), grown_point(point, tokens)
    needed = needs_here((end,), machine)[end]
    needed = replace(needed, beside=needed.beside + _check(end, tokens))
    with (
        Ground(library_of(""), machine) as ground,
        room_of(end, needed, ground) as room,
        Stepping(end, needed, room, Answers()) as bench,
    ):
        tuner = Tuner(machine, evidence)
        tuner.choose(bench)
        return replace(grow(bench, point, tokens, room), tuned=tuner.taken())


def _check(point: Point, tokens: int) -> int:
    """Bytes needed to check one layer: all its stored tokens twice, and their differences."""
    shape = point.shape
    return 4 * 4 * 2 * tokens * shape.batch * shape.kv_heads * shape.head_dim


def grow(bench: Stepping, point: Point, tokens: int, room: Room) -> Record:
    """Grow and time the steps. `bench`: of the point at its full length."""
    bench.verified()
    growing = Growing(bench, point.shape.held)
    samples = tuple(growing.steps(tokens))
    return Record(
        launch=0,
        point=point,
        samples=samples,
        traffic=growing.traffic,
        max_abs_err=growing.error,
        ran=bench.ran,
        **room.facts(point, growing.traffic[LAST]),
    )


class Growing:
    """The steps of a bench, one token after another. `traffic`: of passes, by program. `error`: the
    largest of the checked answers.
    """

    def __init__(self, bench: Stepping, held: Sequence[int]) -> None:
        """held: tokens of each sequence before the first step."""
        self._bench = bench
        self._parts = [GrowingLayers(part, held) for part in bench.parts]
        self.traffic, self.error = dict[str, Traffic](), 0.0

    def steps(self, tokens: int) -> Iterator[Sample]:
        every = max(1, tokens // _SPOTS)
        for number in range(tokens):
            looked_at = number in (0, tokens - 1)
            spot = number % every == 0 and not looked_at
            for part in self._parts:
                part.take(number)
                if looked_at:
                    part.forget()
            # programs after a step would repair its answers
            kinds = {} if looked_at else self._beside(spot)
            with ExitStack() as planned:
                programs = self._programs(planned, {"point": _ALL} | kinds)
                programs += [replace(self._bench.memory, place=1)] * spot
                once = {program.name: 1 for program in programs}
                for sample in rounds(programs, 1, 0.0, number, once):
                    yield replace(sample, round=number)
                self._note(programs)
            if looked_at:
                self.error = max(self.error, *(part.checked(number + 1) for part in self._parts))

    def _beside(self, spot: bool) -> dict[str, Sequence[int]]:
        """The programs beside the step, each with the parts that it does. spot: all programs."""
        found: dict[str, Sequence[int]] = {DECODES: (DECODE,)}
        if spot:
            found |= {AGAIN: _ALL, APPENDS: (APPEND,)}
        if spot and self._bench.point.between:
            found[WEIGHTS] = (WEIGHT,)
        return found

    def _programs(self, planned: ExitStack, kinds: Mapping[str, Sequence[int]]) -> list[Program]:
        """Programs by name, from the parts of a step that each does. The step comes first."""
        bench = self._bench
        tasks = bench.in_order({part.layers: part.decodes(planned) for part in self._parts})
        found = []
        for name, taken in kinds.items():
            done, shares = zip(*(task for task in tasks if task[1] in taken), strict=True)
            task = Series(bench.room.library, done, shares, bench.team.threads)
            planned.enter_context(task)
            place = int(name != "point")
            found.append(Program(name, bench.team, (task,), warm=False, place=place))
        return found

    def _note(self, programs: Sequence[Program]) -> None:
        found = {program.name: program.traffic() for program in programs}
        self.traffic = found | self.traffic | {LAST: found["point"]}


class GrowingLayers:
    """Equal layers of a step, cut back to `held` tokens of each sequence. `pool`: of their blocks
    if paged; all layers use the same places.
    """

    def __init__(self, layers: Layers, held: Sequence[int]) -> None:
        self.layers, self._held = layers, np.array(held)
        first, self.pool = layers.room.caches[0], None
        if first.table is not None:
            self.pool = pool_of(first, self._held, np.array(layers.point.shape.held))
        first.lengths[:] = self._held
        self._follow()

    def take(self, number: int) -> None:
        """Make a place for token `number` in every layer, and take its rows to be stored."""
        shape = self.layers.point.shape
        first = self.layers.room.caches[0]
        if self.pool is not None:
            self.pool.fill(first, 1)
        first.lengths += 1
        self._follow()
        token = exact_rows((2, shape.batch, shape.kv_heads, shape.head_dim), number)
        signs = self.layers.room.signs[:, :, None, None]
        np.multiply(token, signs, out=self.layers.sources)

    def _follow(self) -> None:
        """Give all layers the first one's tables and lengths."""
        first = self.layers.room.caches[0]
        for cache, before in zip(self.layers.room.caches, self.layers.before, strict=True):
            cache.lengths[:] = first.lengths
            before.lengths[:] = first.lengths - 1
            if cache.table is not None:
                cache.table[:] = first.table

    def decodes(self, planned: ExitStack) -> list[Task]:
        """The decodes of all that is held now."""
        return [planned.enter_context(task) for task in self.layers.decodes_now()]

    # ---- answers ---------------------------------------------------------------------------------

    def forget(self) -> None:
        """Forget all answers; the next ones are of other tokens."""
        self.layers.queries.ask(SEED)
        self.layers.queries.out[:] = np.nan

    def checked(self, tokens: int) -> float:
        """The largest error of the answers, once `tokens` stored tokens were read back and
        checked.
        """
        layers = self.layers
        shape, capacity = layers.point.shape, layers.room.caches[0].struct.capacity
        dims = 2, shape.batch, shape.kv_heads, shape.head_dim
        kept = range(max(0, tokens - capacity), tokens)
        stored = np.stack([exact_rows(dims, number) for number in kept], axis=1)
        for cache, signs in zip(layers.room.caches, layers.room.signs, strict=True):
            if (cache.lengths != self._held + tokens).any() or shares_blocks(cache):
                raise layers.wrong("stores tokens in the places of others")
            found = self._read(cache, len(kept))
            off(cache, found, stored * signs[:, None, None, None], layers.wrong)
        return layers.queries.error(layers.room.slices)

    def _read(self, cache: Cache, count: int) -> np.ndarray:
        """The last `count` tokens of each sequence: [K, V][tokens][batch][heads][dim]."""
        shape, isa = self.layers.point.shape, cache.library.isas()[0]
        found = np.empty((2, count, shape.batch, shape.kv_heads, shape.head_dim), np.float32)
        firsts = np.minimum(cache.lengths, cache.struct.capacity) - count
        for first in np.unique(firsts):
            own = firsts == first
            rows = cache.rows(int(first), count, isa, self.layers.team.threads)
            for to, each in zip(found, rows, strict=True):
                to[:, own] = each[own].swapaxes(0, 1)
        return found


def pool_of(cache: Cache, held: np.ndarray, end: np.ndarray) -> Blocks:
    """A pool of the blocks after `held` tokens of each sequence, taken again in the table's order;
    blocks after `end` are left out, because nobody touched them.
    """
    c, table = cache.struct, cache.table
    assert table is not None
    pool, column = Blocks(c.blocks), np.arange(table.shape[1])
    pool.take(c.blocks)
    first, last = (-(-np.minimum(each, c.capacity) // c.block_tokens) for each in (held, end))
    behind = column >= first[:, None]
    again = behind & (column < last[:, None])
    pool.give_back(table.T[again.T][::-1].tolist())
    table[behind] = NONE
    return pool


def shares_blocks(cache: Cache) -> bool:
    """Whether two entries of a table are the same block."""
    if cache.table is None:
        return False
    held = cache.table[cache.table != NONE]
    return len(np.unique(held)) < len(held)
