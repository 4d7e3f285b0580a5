"""The memory of a point, filled: slices of K and V in one arena, and the teams that walk them.
Points may share it.
"""

import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from kvbench.closing import Owner
from kvbench.errors import OutOfMemory
from kvbench.machine import available_memory
from kvbench.model import Needs, Point, Traffic
from kvbench.model.point import LOCAL, ONE_TOKEN
from kvbench.native import Arena, Cache, Library, Part, Team, decode_task
from kvbench.plan import needs
from kvbench.regime import classify
from kvbench.units import size
from kvbench.worker.content import SEED, Content, signs
from kvbench.worker.ground import Ground, fill, touch

_PLACES = 1 << 24  # layers: more than any room has


class Room(Owner):
    """The memory of a point. `caches`: one for each layer, filled to the shape's lengths. `signs`:
    [layers][K, V][elements of the wider rows], by which their values differ from those that all
    rooms of such a point begin with.

    Stores have `sources`, float32 [layers][needs.sources()], behind the slices. If tokens come one
    at a time, caches are rings: a full one begins again. Ops on plain matrices have no caches; a
    slice is a target.
    """

    def __init__(
        self,
        point: Point,
        needed: Needs,
        ground: Ground,
        library: Library | None = None,
        place: int = 0,
    ) -> None:
        """place: number of the ground's arena, for rooms that exist side by side."""
        self.point, self.needs, self.ground, self.place = point, needed, ground, place
        self.library = library or ground.library
        super().__init__()

    def _prepare(self) -> None:
        point = self.point
        self.slices, self.slice_bytes = self.needs.slices, self.needs.slice_bytes
        self.arena = self._arena()
        self._teams: dict[tuple[int, ...], Team] = {}
        self.signs = self.signs_of(range(self.slices))
        cached = range(0 if point.op in needs.UNCACHED else self.slices)
        self.caches = [self._owned.enter_context(self.cache(layer)) for layer in cached]
        if cached:
            self.content = Content(self.caches[0])
        self.fill()
        if self.needs.source_bytes:
            self.sources = self._sources()

    def team(self, cpus: tuple[int, ...]) -> Team:
        """A team with a thread on each CPU, asleep while another team works."""
        if cpus not in self._teams:
            self._teams[cpus] = self._owned.enter_context(Team(len(cpus), cpus, self.library))
        return self._teams[cpus]

    @cached_property
    def memory(self) -> dict[str, int]:
        """What Arena.inspect() says of the memory."""
        return self.arena.inspect()

    def facts(self, point: Point, traffic: Traffic) -> dict[str, Any]:
        """Facts for a record: what such passes walk here, and which level of the machine feeds
        them. If tokens come one at a time, passes go on along all slices.
        """
        each = self.slice_bytes if point.op in ONE_TOKEN else traffic.bytes_line
        footprint, evicted = self.slices * each, point.residency == "evicted"
        regime = classify(self.ground.machine, point.cpus, footprint, evicted=evicted)
        sizes = {"slices": self.slices, "slice_bytes": self.slice_bytes, "footprint": footprint}
        return sizes | {"level": regime.word, "memory": self.memory}

    @property
    def whole(self) -> Part:
        """The memory of all caches together."""
        return self.arena.part(0, self.needs.cache_bytes)

    @property
    def rows(self) -> np.ndarray:
        """The bytes of each slice."""
        return self.arena.view()[: self.slices * self.slice_bytes].reshape(self.slices, -1)

    def refuse_too_large(self) -> None:
        """Refuse a point that does not fit memory, before anything is allocated."""
        wanted = self.needs.memory
        if wanted > available_memory():
            self.ground.spare()
        free = available_memory()
        if wanted > free and wanted > (free := free + self.ground.held()):
            raise OutOfMemory(
                f"the point needs {size(wanted)} of memory, {size(free)} are free",
                "use less context, layers or batch",
            )

    def _arena(self) -> Arena:
        self.refuse_too_large()
        point = self.point
        return self.ground.arena(
            point.cpus, point.pages, self.needs.arena, self.place, point.memory
        )

    def cache(self, layer: int, arena: Arena | None = None, capacity: int | None = None) -> Cache:
        """An empty cache on the slice of a layer; or on the slice with that number in another
        arena. `capacity`: instead of the point's.
        """
        point, shape = self.point, self.point.shape
        return Cache(
            shape.kv_heads,
            shape.head_dim,
            capacity or shape.capacity,
            batch=shape.batch,
            window=shape.window or None,
            shuffle=point.order,
            ring=point.op == "append" or shape.context > shape.capacity,
            arena=arena or self.arena,
            offset=layer * self.slice_bytes,
            library=self.library,
            **needs.as_cache(shape.kv_heads, shape.head_dim, needs.sized(point)),
        )

    # ---- data ------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Fill the memory with the same content each time. Every page is first touched on the node
        of the threads that walk it; by these threads if they are on several nodes.
        """
        if self.caches:
            self._fill_caches()
        else:
            touch(self.team(self.point.cpus), self.whole)
            fill(self.arena.view()[: self.needs.cache_bytes], self.point.threads)
        if self.point.memory != LOCAL:
            self.ground.refuse_elsewhere(self.arena, self.needs.cache_bytes, self.point.memory)

    def _fill_caches(self) -> None:
        point, near = self.point, self.ground.node(self.point.cpus) is not None
        shape, team, own = point.shape, self.team(point.cpus), _cut(point)
        if own.get("variant") not in self.library.words("variant"):
            own.pop("variant", None)  # a plug-in's units are those of the default
        q = np.zeros((shape.batch, shape.q_heads, shape.head_dim), dtype=np.float32)
        for layer, cache in enumerate(self.caches):
            whole = point.op in ("append", "repack")
            cache.lengths[:] = shape.capacity if whole else shape.held
            if not (near and layer):
                facts = {"isa": point.isa, "seed": SEED, **own}
                with decode_task("fill", cache, q, q, team.threads, **facts) as task:
                    team.run(task)
        if self.place:
            self.content.begin(self.rows[0])
            self.content.make(self._own_layer, self.rows[0], self.rows[0])
        self.follow()

    def follow(self) -> None:
        """Make all other slices from the first one; that takes a tenth of the time of new
        numbers.
        """
        self.content.begin(self.rows[0])
        self.make(range(1, self.slices), self.rows[1:])

    def make(self, layers: Sequence[int], slices: np.ndarray) -> None:
        """Write the content of these layers, which may lie beyond the room's."""
        first = self.rows[0]
        with near_threads(self.point.cpus) as pool:
            list(pool.map(lambda layer, own: self.content.make(layer, first, own), layers, slices))

    def signs_of(self, layers: Iterable[int]) -> np.ndarray:
        shape = self.point.shape
        dim = max(shape.head_dim, shape.width_of_v)
        return np.stack([signs(layer, dim) for layer in layers]) * signs(self._own_layer, dim)

    @property
    def _own_layer(self) -> int:
        """The first slice's layer number, unlike those of rooms side by side."""
        return self.place and _PLACES + self.place

    def source(self, layer: int) -> list[np.ndarray]:
        """A layer's rows of K and V, or of logits."""
        return self._apart(self.sources[layer])

    def _apart(self, values: np.ndarray) -> list[np.ndarray]:
        dims = needs.sources(self.point)
        ends = np.cumsum([math.prod(each) for each in dims])[:-1]
        return [own.reshape(each) for own, each in zip(np.split(values, ends), dims, strict=True)]

    def _sources(self) -> np.ndarray:
        point, dims = self.point, needs.sources(self.point)
        for cache in self.caches:
            cache.lengths[:] = point.shape.context - dims[0][1]
        begin, count = self.needs.cache_bytes, self.needs.source_bytes
        if self.ground.node(point.cpus) is None:  # on all nodes alike
            touch(self.team(point.cpus), self.arena.part(begin, count // 64 * 64))
        floats = self.arena.view()[begin : begin + count].view(np.float32)
        self.sources = floats.reshape(self.slices, -1)
        own = self.signs
        if point.op == "logits":  # logits have no elements of a head
            either = np.array([1, -1], np.float32)
            own = np.random.default_rng(SEED).choice(either, (self.slices, 1, dims[0][-1]))
        drawn = np.random.default_rng(SEED).standard_normal(self.sources.shape[1], dtype=np.float32)

        def store(layer: int) -> None:
            rows = zip(self._apart(drawn), self.source(layer), own[layer], strict=True)
            for one, to, sign in rows:
                np.multiply(one, sign[: to.shape[-1]], out=to)

        with near_threads(self.point.cpus) as pool:
            list(pool.map(store, range(self.slices)))
        return self.sources


def near_threads(cpus: Sequence[int]) -> ThreadPoolExecutor:
    """A pool with as many threads as CPUs, all allowed on all of them."""
    return ThreadPoolExecutor(len(cpus), initializer=os.sched_setaffinity, initargs=(0, cpus))


def key(point: Point, slices: int, ground: Ground) -> tuple[object, ...]:
    """The key of a point's room: points with equal keys share one. CPUs of one node may walk what
    its other CPUs touched; on several nodes only what is cut into the same units.
    """
    node = ground.node(point.cpus)
    return (
        needs.room(point, slices),
        (point.cpus, *_cut(point).values()) if node is None else node,
    )


def _cut(point: Point) -> dict[str, Any]:
    """What decides, besides the shape, which thread reads what."""
    return (
        {}
        if needs.stores(point)
        else {"variant": point.variant, "deterministic": point.deterministic}
    )
