"""A whole step on the bench. For each layer of a model the token is stored, then the layer decodes,
then its weights are read. Beside the step: each of the three for all layers alone, and a plain read
of as many bytes.

before the samples  the place of the newest token becomes stale in every layer, and a step is done:
                    what it stored reads back, and every layer's answer is right
after the samples   what they left is checked in the same way, and then a step with other queries
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations, starmap

import numpy as np

from kvbench.model.point import STEP
from kvbench.model.program import APPENDS, DECODES, MEMORY, WEIGHTS
from kvbench.native import Cache, Series, Task, store_task, token_bytes, unpack_task
from kvbench.plan.needs import needs
from kvbench.plan.steps import parts
from kvbench.worker.bench import Bench
from kvbench.worker.content import SEED
from kvbench.worker.decoding import Decoding
from kvbench.worker.loop import Program
from kvbench.worker.steproom import StepRoom
from kvbench.worker.storing import STALE, off

APPEND, DECODE, WEIGHT = range(3)  # indexes of their times in a series
_BLOCK = 32  # elements of packed rows that share a scale
_MOST = 8  # the largest number of each block, so that codes of 4 bits are exact
_STEP = 0.25


class Layers(Decoding):
    """A bench of the equal layers of a step. `sources`: float32 [layers][K, V][batch][heads][dim],
    the token that each layer stores. `before`: each layer's cache without that token.
    """

    def _prepare(self) -> None:
        super()._prepare()
        room = self.room
        before = (behind(room.cache(layer), cache) for layer, cache in enumerate(room.caches))
        self.before = [self._owned.enter_context(cache) for cache in before]
        shape = self.point.shape
        token = exact_rows((2, shape.batch, shape.kv_heads, shape.head_dim))
        self.sources = token * room.signs[:, :, None, None]

    @cached_property
    def appends(self) -> tuple[Task, ...]:
        """The stores. Each pass stores at the same place."""
        threads, isa = self.team.threads, self.point.isa
        tasks = (
            store_task("append", cache, k, v, threads, isa=isa)
            for cache, (k, v) in zip(self.before, self.sources, strict=True)
        )
        return tuple(self._owned.enter_context(task) for task in tasks)

    @cached_property
    def decodes(self) -> tuple[Task, ...]:
        return self._over_layers("decode", **self._walk())

    def decodes_now(self) -> Iterator[Task]:
        """Decodes at the present lengths; the caller closes them."""
        for each in self._slices:
            yield self._planned("decode", *each, **self._walk())

    # ---- answers ---------------------------------------------------------------------------------

    def make_stale(self) -> None:
        """Make the newest token of each sequence stale in all layers, and all answers."""
        self.queries.out[:] = np.nan
        self.room.rows[:, self._newest] = STALE

    @cached_property
    def _newest(self) -> np.ndarray:
        """Which bytes of a slice hold the newest token of each sequence."""
        cache = self.room.caches[0]
        return np.concatenate(
            [
                places
                for sequence, held in enumerate(self.point.shape.held)
                for head in range(self.point.shape.kv_heads)
                for places in token_bytes(cache, held - 1, head, sequence)
            ]
        )

    def left(self) -> float:
        """The largest error of what the last passes stored and answered, in all layers."""
        self._refuse_misplaced()
        for cache, source in zip(self.room.caches, self.sources, strict=True):
            off(cache, self._read_back(cache), source, self.wrong)
        return self.queries.error(self.room.slices)

    def _read_back(self, cache: Cache) -> np.ndarray:
        """The newest token of each sequence: [K, V][batch][heads][dim]."""
        shape, held = self.point.shape, np.minimum(self.point.shape.held, cache.struct.capacity)
        found = np.full((2, shape.batch, shape.kv_heads, shape.head_dim), np.nan, np.float32)
        k, v = np.empty((2, shape.batch, 1, shape.kv_heads, shape.head_dim), np.float32)
        isa = cache.library.isas()[0]
        for count in np.unique(held):
            with unpack_task(cache, count - 1, k, v, self.team.threads, isa=isa) as task:
                self.team.run(task)
            own = held == count
            found[0, own], found[1, own] = k[own, 0], v[own, 0]
        return found

    def _refuse_misplaced(self) -> None:
        """Refuse a token that is not stored last in its sequence, or is stored over another
        sequence's.
        """
        held = np.array(self.point.shape.held)
        for cache, before in zip(self.room.caches, self.before, strict=True):
            if (cache.lengths != held).any() or (before.lengths != held - 1).any():
                raise self.wrong("stores or attends to other tokens than it should")
            if cache.table is not None and written_twice(cache):
                raise self.wrong("stores into a block that another sequence holds")


class Stepping(Bench):
    """A bench of a step. `parts`: groups of equal layers, each with a bench. `order`: for each
    layer of the model its part, and its place in that part.
    """

    room: StepRoom

    def _prepare(self) -> None:
        super()._prepare()
        self.ran = self.room.library.schedule(self.point.schedule)
        self.parts, answers = list[Layers](), self._answers.holding(STEP)
        found = parts(self.point)
        for part, room in zip(found, self.room.rooms, strict=True):
            how = part.point, needs(part.point, self.needs.far), room, answers, self._seed
            self.parts.append(self._owned.enter_context(Layers(*how)))
        places = {
            layer: (bench, place)
            for part, bench in zip(found, self.parts, strict=True)
            for place, layer in enumerate(part.layers)
        }
        self.order = [places[layer] for layer in range(self.point.shape.layers)]
        self._refuse_overlap()

    def _refuse_overlap(self) -> None:
        """Refuse caches and weights whose bytes overlap."""
        walked = [self.far.arena.view(), *(room.rows for room in self.room.rooms)]
        if any(starmap(np.may_share_memory, combinations(walked, 2))):
            raise self.wrong("has caches in the memory of weights, or of others")

    # ---- programs --------------------------------------------------------------------------------

    @cached_property
    def kernel(self) -> Program:
        return self._program("point", (APPEND, DECODE, WEIGHT))

    @cached_property
    def witnesses(self) -> list[Program]:
        kinds = {APPENDS: APPEND, DECODES: DECODE} | (
            {WEIGHTS: WEIGHT} if self.point.between else {}
        )
        alone = (self._program(name, (kind,)) for name, kind in kinds.items())
        return [*(replace(program, brief=True) for program in alone), self.memory]

    @property
    def plainest(self) -> Program:
        return self.memory

    @cached_property
    def memory(self) -> Program:
        """A plain read of memory, of as many bytes as a step moves."""
        whole = self.far.whole
        wanted = int(self.own.traffic().bytes_compulsory)
        count = -(-wanted // whole.size)
        read = self.probe("read", to=whole, size=whole.size, piece=-(-wanted // count // 64) * 64)
        return self._series(MEMORY, [(read, WEIGHT)] * count, warm=False)

    def more(self) -> Iterator[Program]:
        yield from self.reads("ceiling", self.room.whole if self._warm else self.far.whole)

    def under(self, name: str, schedule: str) -> Program:
        """The decodes of the first part under another schedule."""
        return self.parts[0].under(name, schedule)

    def tasks(self) -> list[tuple[Task, int]]:
        """The tasks of a step with the room's lengths."""
        for bench in self.parts:
            bench.ran = self.ran
        return self.in_order({bench: bench.decodes for bench in self.parts})

    def in_order(self, decodes: Mapping[Layers, Sequence[Task]]) -> list[tuple[Task, int]]:
        """The tasks of a step in the order of the model's layers, each with its kind. decodes: of
        each part's layers.
        """
        found = list[tuple[Task, int]]()
        for bench, place in self.order:
            found += [(bench.appends[place], APPEND), (decodes[bench][place], DECODE)]
            if self.point.between:
                found.append((self.weights, WEIGHT))
        return found

    @cached_property
    def weights(self) -> Task:
        """The read of one layer's weights. Each pass goes on where the last one stopped."""
        whole = self.far.whole
        return self.probe("read", to=whole, size=whole.size, piece=self.point.between)

    def _program(self, name: str, kinds: Sequence[int]) -> Program:
        own = [(task, kind) for task, kind in self.tasks() if kind in kinds]
        return self._series(name, own, warm=self._warm and name != WEIGHTS)

    def _series(self, name: str, tasks: Sequence[tuple[Task, int]], warm: bool) -> Program:
        each, kinds = zip(*tasks, strict=True)
        series = Series(self.room.library, each, kinds, self.team.threads)
        return Program(name, self.team, (self._owned.enter_context(series),), warm=warm)

    # ---- answers ---------------------------------------------------------------------------------

    def verify(self) -> float:
        """The largest error of a step over stale bytes. The answers are forgotten first."""
        for part in self.parts:
            part.make_stale()
        self.own.team.run(*self.own.tasks)
        error = self.verify_left(1)
        for part in self.parts:
            part.queries.out[:] = np.nan
        return error

    def verify_left(self, passes: int) -> float:
        """The largest error of what the last passes left behind. Each pass goes through all
        layers.
        """
        return max(part.left() for part in self.parts)

    def verify_changed(self) -> float:
        for part in self.parts:
            part.queries.ask(SEED + 1)
        error = self.verify()
        for part in self.parts:
            part.queries.ask(SEED)
        return error


def behind(view: Cache, cache: Cache) -> Cache:
    """A view of a cache whose sequences lack the newest token, on the same memory. Its table is
    that of `cache`, and lives as long as the view.
    """
    view.lengths[:] = cache.lengths - 1
    view.look_up_in(cache)
    return view


def written_twice(cache: Cache) -> bool:
    """Whether a block with the newest token of a sequence is also in another sequence."""
    c, table = cache.struct, cache.table
    assert table is not None
    blocks = -(-np.minimum(cache.lengths, c.capacity) // c.block_tokens)
    held = np.concatenate([row[:count] for row, count in zip(table, blocks, strict=True)])
    last = (cache.lengths - 1) % c.capacity // c.block_tokens
    written = table[np.arange(c.batch), last]
    return bool((np.sum(held == written[:, None], axis=1) != 1).any())


def exact_rows(dims: tuple[int, ...], number: int = 0) -> np.ndarray:
    """Rows that every format stores exactly, or rounds alike whatever the signs: integers times a
    power of two, the largest in every block of a packed row. `number`: different numbers give
    different rows.
    """
    rng = np.random.default_rng([SEED, number, *dims])
    rows = rng.integers(0, _MOST, dims).astype(np.float32)
    rows[..., ::_BLOCK] = _MOST
    return rows * rng.choice(np.array([_STEP, -_STEP], np.float32), dims)
