"""Moves on the bench: a cache that grows, matrices that are transposed, rows of logits.

repack      K and V of `context` tokens grow in place to room for `capacity`. The first pass moves
            the tokens. Later passes move the bytes that then lie in the same places, equally many
transpose   K and V of all sequences, [tokens][heads][dim] -> [heads][tokens][dim]
logits      a row for each sequence, pass after pass to the next of `context` positions
"""

from abc import abstractmethod
from functools import cached_property

import numpy as np

from kvbench.native import Cache, Task, logits_task, repack_task, store_task, transpose_task
from kvbench.worker.content import SEED
from kvbench.worker.storing import STALE, Storing, off


class Moving(Storing):
    """Base of the moves. Subclasses check what a layer's task does."""

    def stored(self, nt: bool) -> tuple[Task, ...]:
        tasks = (self._task(layer) for layer in range(self.room.slices))
        return tuple(self._owned.enter_context(task) for task in tasks)

    @abstractmethod
    def _task(self, layer: int) -> Task:
        """The move of a layer."""

    def _anew(self, layer: int, passes: int = 1) -> None:
        """Do a layer's move again, over stale bytes."""
        self.room.rows[layer] = STALE
        self.own.team.run(self.own.tasks[layer], passes=passes)

    def _target(self, layer: int) -> np.ndarray:
        """A slice as plain floats."""
        return self.room.rows[layer].view(np.float32)

    def _same(self, got: np.ndarray, want: np.ndarray) -> float:
        if not np.array_equal(got, want):
            raise self.wrong(f"moves rows off in {np.mean(got != want):.0%} of their floats")
        return 0.0


class Repacking(Moving):
    @cached_property
    def _before(self) -> list[Cache]:
        """The caches before growing, on the same memory."""
        tokens = self.point.shape.context
        caches = (self.room.cache(layer, capacity=tokens) for layer in range(self.room.slices))
        found = [self._owned.enter_context(cache) for cache in caches]
        for cache in found:
            cache.lengths[:] = tokens
        return found

    def _task(self, layer: int) -> Task:
        before, after = self._before[layer], self.room.caches[layer]
        return repack_task(before, after, self.team.threads, isa=self.point.isa)

    def _verify_store(self, layer: int) -> float:
        """Store new tokens in the small cache. After the move the large cache must hold them."""
        shape, before, after = self.point.shape, self._before[layer], self.room.caches[layer]
        draw, rows = np.random.default_rng([SEED, layer]), (shape.batch, shape.context)
        source = [
            draw.standard_normal((*rows, shape.kv_heads, dim), dtype=np.float32)
            for dim in before.dims
        ]
        isa, threads = before.library.isas()[0], self.team.threads
        self.room.rows[layer] = STALE
        before.lengths[:] = after.lengths[:] = 0
        with store_task("bulk", before, source[0], source[1], threads, isa=isa) as store:
            self.team.run(store)
        before.lengths[:] = shape.context
        self.own.team.run(self.own.tasks[layer])
        if (after.lengths != shape.context).any():
            raise self.wrong("loses tokens")
        return off(after, after.rows(0, shape.context, isa, threads), source, self.wrong)


class Transposing(Moving):
    def _task(self, layer: int) -> Task:
        ends = self._ends(layer)
        return transpose_task(self.room.library, *ends, self.team.threads, isa=self.point.isa)

    def _ends(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        _, tokens, *row = self.room.source(layer)[0].shape
        source = self.room.sources[layer].reshape(-1, tokens, *row)
        return source, self._target(layer).reshape(-1, row[0], tokens, row[1])

    def _verify_store(self, layer: int) -> float:
        self._anew(layer)
        source, to = self._ends(layer)
        return self._same(to, source.swapaxes(1, 2))


class Placing(Moving):
    @cached_property
    def _positions(self) -> np.ndarray:
        return np.zeros((self.room.slices, 1), dtype=np.int64)

    def _task(self, layer: int) -> Task:
        where = *self._ends(layer), self._positions[layer]
        return logits_task(self.room.library, *where, self.team.threads, isa=self.point.isa)

    def _ends(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        (source,) = self.room.source(layer)
        return source, self._target(layer).reshape(source.shape[0], -1, source.shape[1])

    def _verify_store(self, layer: int) -> float:
        """Check the last row, and the next one, which is the first."""
        rows = self.point.shape.context
        self._positions[layer], passes = rows - 1, min(2, rows)
        self._anew(layer, passes)
        self._positions[layer] = 0
        source, to = self._ends(layer)
        return max(self._same(to[:, place - 1], source) for place in range(passes))


STORES = {"repack": Repacking, "transpose": Transposing, "logits": Placing}  # the ops that move
