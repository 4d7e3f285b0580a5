"""The memory of a point, filled: slices of K and V in one arena, and the teams that walk them. Points may share it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from kvbench.errors import Refused
from kvbench.machine import available_memory
from kvbench.model import Point
from kvbench.native import Arena, Cache, Part, Team, decode_task
from kvbench.plan import needs
from kvbench.regime import dram_bytes, far_bytes
from kvbench.units import size
from kvbench.worker.ground import Ground

SEED = 1
_LINE = 64


class Room:
    """`caches`, one for each layer, hold `context` tokens each: the same ones, so that one answer serves all layers.

    Stores have `sources`, [layers][K, V][batch][tokens][kv_heads][head_dim], behind the slices.
    """

    def __init__(self, point: Point, ground: Ground) -> None:
        self.point, self.ground, self.library = point, ground, ground.library
        self.far_bytes = far_bytes(ground.machine, point.cpus)
        self.dram_bytes = dram_bytes(ground.machine, point.cpus) or self.far_bytes
        self._owned = ExitStack()
        try:
            self._prepare()
        except BaseException:
            self._owned.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._owned.close()

    def _prepare(self) -> None:
        point, shape = self.point, self.point.shape
        facts = self._cache_facts()
        self.slice_bytes = Cache.size_of(shape.kv_heads, shape.head_dim, shape.capacity, **facts)
        self.layers = needs.layers(point, needs.walked(point, self.slice_bytes), self.far_bytes)
        self._slices = -(-self.layers * self.slice_bytes // _LINE) * _LINE
        self.arena = self._arena()
        self._teams: dict[tuple[int, ...], Team] = {}
        self.caches = [
            self._owned.enter_context(
                Cache(
                    shape.kv_heads,
                    shape.head_dim,
                    shape.capacity,
                    shuffle=point.shuffle,
                    arena=self.arena,
                    offset=layer * self.slice_bytes,
                    **facts,
                )
            )
            for layer in range(self.layers)
        ]
        self._fill()
        if needs.stores(point):
            self.sources = self._sources()

    def team(self, cpus: tuple[int, ...]) -> Team:
        """A thread on each of them, asleep while another team works."""
        if cpus not in self._teams:
            self._teams[cpus] = self._owned.enter_context(Team(len(cpus), cpus, self.library))
        return self._teams[cpus]

    @cached_property
    def memory(self) -> dict[str, int]:
        """What the system gave, as Arena.inspect() has it."""
        return self.arena.inspect()

    @property
    def slices(self) -> Part:
        """All caches together."""
        return self.arena.part(0, self._slices)

    def _arena(self) -> Arena:
        """Refused before anything is allocated: slices, what they are compared with, and the check's copies."""
        point = self.point
        wanted, free = needs.needs(point, self.far_bytes), available_memory()
        if wanted.memory > free:
            raise Refused(
                f"the point needs {size(wanted.memory)} of memory, {size(free)} are free",
                "less context, layers or batch",
            )
        return self.ground.arena(point.cpus, point.pages, self._slices + needs.sources(point, self.layers))

    def _cache_facts(self) -> dict[str, Any]:
        point = self.point
        return {
            "batch": point.shape.batch,
            "layout": point.layout,
            "dtype": point.dtype,
            "window": point.shape.window or None,
            "ring": False,
            "block_tokens": point.block_tokens,
            "inner": point.inner,
            "scale": point.scale,
            "pad": point.pad,
            "library": self.library,
        }

    # ---- data ----------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Every page is first touched by the thread that reads it, wherever threads have memories of their own."""
        near = self.ground.node(self.point.cpus) is not None
        shape, team = self.point.shape, self.team(self.point.cpus)
        q = np.zeros((shape.batch, shape.q_heads, shape.head_dim), dtype=np.float32)
        for layer, cache in enumerate(self.caches):
            cache.lengths[:] = shape.context
            if not (near and layer):
                facts = {"isa": self.point.isa, "seed": SEED}
                with decode_task("fill", cache, q, q, team.threads, **facts) as task:
                    team.run(task)
        if near:
            self._repeat(team.threads)

    def _repeat(self, threads: int) -> None:
        """The first slice over all others; a copy takes a tenth of the time that new numbers take."""
        view, first = self.arena.view(), self.slice_bytes
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda layer: _copy(view, first, layer), range(1, self.layers)))

    def _sources(self) -> np.ndarray:
        point, shape = self.point, self.point.shape
        tokens = shape.context if point.op == "bulk" else 1
        for cache in self.caches:
            cache.lengths[:] = shape.context - tokens
        dims = (2, shape.batch, tokens, shape.kv_heads, shape.head_dim)
        one = np.random.default_rng(SEED).standard_normal(dims, dtype=np.float32)
        count = needs.sources(point, self.layers)
        found = self.arena.view()[self._slices : self._slices + count].view(np.float32).reshape(self.layers, *dims)
        found[:] = one
        return found


def key(point: Point, slices: int, ground: Ground) -> tuple[object, ...]:
    """Points with the same answer share a room: they differ only in how they walk it, and with which CPUs of a node."""
    facts = tuple(getattr(point, name) for name in needs.SIZED_BY)
    shape = replace(point.shape, q_heads=point.shape.kv_heads, layers=slices)
    node = ground.node(point.cpus)
    return (point.op, facts, shape, point.shuffle, point.cpus if node is None else node, point.pages)


def _copy(view: np.ndarray, count: int, layer: int) -> None:
    view[layer * count : (layer + 1) * count] = view[:count]
