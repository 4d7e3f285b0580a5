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
from numpy.lib.stride_tricks import as_strided

from kvbench.closing import Owner
from kvbench.errors import OutOfMemory
from kvbench.machine import available_memory
from kvbench.model import Point
from kvbench.model.point import LOCAL, ONE_TOKEN
from kvbench.native import LANES, Arena, Cache, Library, Part, Team, block_of, decode_task
from kvbench.plan import needs
from kvbench.regime import far_bytes
from kvbench.units import size
from kvbench.worker.ground import Ground, fill, touch

SEED = 1
_PLACES = 1 << 24  # layers, more than any room has
_HALF = 16  # elements: so far apart two of q4_0 share a byte, and therefore a sign
_SCALE = 2  # bytes before the codes of a packed block


class Room(Owner):
    """`caches`, one for each layer, hold `context` tokens each. `signs`, [layers][K, V][head_dim]:
    by which their values differ from those that all rooms of such a point begin with.

    Stores have `sources`, float32 [layers] of what needs.sources() says, behind the slices. Where
    tokens come one at a time, caches are rings: what is full begins again. Ops on plain matrices
    have no caches, and a slice is a target.
    """

    def __init__(
        self, point: Point, ground: Ground, library: Library | None = None, place: int = 0
    ) -> None:
        """place: of the ground's arenas, for rooms that stand side by side."""
        self.point, self.ground, self.library, self.place = (
            point,
            ground,
            library or ground.library,
            place,
        )
        self.needs = needs.needs(point, far_bytes(ground.machine, point.cpus))
        super().__init__()

    def _prepare(self) -> None:
        point = self.point
        self.layers, self.slice_bytes = self.needs.layers, self.needs.slice_bytes
        self.arena = self._arena()
        self._teams: dict[tuple[int, ...], Team] = {}
        self.signs = self.signs_of(range(self.layers))
        cached = range(0 if point.op in needs.UNCACHED else self.layers)
        self.caches = [self._owned.enter_context(self.cache(layer)) for layer in cached]
        if cached:
            self.content = Content(self.caches[0])
        self.fill()
        if self.needs.sources:
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
    def along(self) -> int:
        """Bytes along which passes go on, where one of them does not walk all."""
        return self.layers * self.slice_bytes if self.point.op in ONE_TOKEN else 0

    @property
    def slices(self) -> Part:
        """All caches together."""
        return self.arena.part(0, self.needs.slices)

    def _arena(self) -> Arena:
        """Refused before anything is allocated."""
        point, wanted = self.point, self.needs.memory
        free = available_memory()
        if wanted > free and wanted > (free := free + self.ground.held()):
            raise OutOfMemory(
                f"the point needs {size(wanted)} of memory, {size(free)} are free",
                "less context, layers or batch",
            )
        return self.ground.arena(
            point.cpus, point.pages, self.needs.arena, self.place, point.memory
        )

    def cache(self, layer: int, arena: Arena | None = None) -> Cache:
        """A cache on the slice of that layer, of no tokens yet; or of as many slices in another
        arena.
        """
        point, shape = self.point, self.point.shape
        facts = {name: getattr(point, name) for name in needs.SIZED_BY}
        facts |= {"batch": shape.batch, "shuffle": point.shuffle, "ring": point.op == "append"}
        where = {
            "arena": arena or self.arena,
            "offset": layer * self.slice_bytes,
            "library": self.library,
        }
        return Cache(
            shape.kv_heads,
            shape.head_dim,
            shape.capacity,
            window=shape.window or None,
            **facts,
            **where,
        )

    # ---- data ------------------------------------------------------------------------------------

    def fill(self) -> None:
        """The same bytes each time. Every page is first touched on the node of the threads that
        walk it, by them where they are of several.
        """
        if self.caches:
            self._fill_caches()
        else:
            touch(self.team(self.point.cpus), self.slices)
            fill(self.arena.view()[: self.needs.slices], len(self.point.cpus))
        if self.point.memory != LOCAL:
            self.ground.refuse_elsewhere(self.arena, self.needs.slices, self.point.memory)

    def _fill_caches(self) -> None:
        point, near = self.point, self.ground.node(self.point.cpus) is not None
        shape, team, own = point.shape, self.team(point.cpus), _cut(point)
        if own.get("variant") not in self.library.words("variant"):
            own.pop("variant", None)  # a plug-in's units are those of the default
        q = np.zeros((shape.batch, shape.q_heads, shape.head_dim), dtype=np.float32)
        for layer, cache in enumerate(self.caches):
            whole = point.op in ("append", "repack")
            cache.lengths[:] = shape.capacity if whole else shape.context
            if not (near and layer):
                facts = {"isa": point.isa, "seed": SEED, **own}
                with decode_task("fill", cache, q, q, team.threads, **facts) as task:
                    team.run(task)
        if self.place:
            first = self.arena.view()[: self.slice_bytes]
            self.content.begin(first)
            self.content.make(self._own_layer, first, first)
        self.follow()

    def follow(self) -> None:
        """All other slices as the first one has it; that takes a tenth of the time that new numbers
        take.
        """
        slices = self.arena.view()[: self.layers * self.slice_bytes].reshape(
            self.layers, self.slice_bytes
        )
        self.content.begin(slices[0])
        self.make(range(1, self.layers), slices[1:])

    def make(self, layers: Sequence[int], slices: np.ndarray) -> None:
        """What those layers hold, or would hold if there were so many."""
        first = self.arena.view()[: self.slice_bytes]
        with near_threads(self.point.cpus) as pool:
            list(pool.map(lambda layer, own: self.content.make(layer, first, own), layers, slices))

    def signs_of(self, layers: Iterable[int]) -> np.ndarray:
        dim = self.point.shape.head_dim
        return np.stack([signs(layer, dim) for layer in layers]) * signs(self._own_layer, dim)

    @property
    def _own_layer(self) -> int:
        """That the first slice is, so that rooms side by side have nothing in common."""
        return self.place and _PLACES + self.place

    def _sources(self) -> np.ndarray:
        point, dims = self.point, needs.sources(self.point)
        for cache in self.caches:
            cache.lengths[:] = point.shape.context - dims[2]
        one = np.random.default_rng(SEED).standard_normal(dims, dtype=np.float32)
        begin, count = self.needs.slices, self.needs.sources
        if self.ground.node(point.cpus) is None:  # on all nodes alike
            touch(self.team(point.cpus), self.arena.part(begin, count // 64 * 64))
        found = (
            self.arena.view()[begin : begin + count].view(np.float32).reshape(self.layers, *dims)
        )
        own = self.signs[:, :, None, None, None]
        if point.op == "logits":  # which have no elements of a head
            own = np.random.default_rng(SEED).choice(np.float32([1, -1]), (self.layers, dims[-1]))
        with near_threads(self.point.cpus) as pool:
            list(
                pool.map(
                    lambda layer: np.multiply(one, own[layer], out=found[layer]), range(self.layers)
                )
            )
        return found


def near_threads(cpus: Sequence[int]) -> ThreadPoolExecutor:
    """As many as there are CPUs, on all of these."""
    return ThreadPoolExecutor(len(cpus), initializer=os.sched_setaffinity, initargs=(0, cpus))


def key(point: Point, layers: int, ground: Ground) -> tuple[object, ...]:
    """Points with the same answer share a room. CPUs of one node may walk what others of it have
    touched; of several, only what is cut into units in the same way.
    """
    node = ground.node(point.cpus)
    return (
        needs.room(point, layers),
        (point.cpus, *_cut(point).values()) if node is None else node,
    )


def _cut(point: Point) -> dict[str, Any]:
    """What decides, beside the shape, which thread reads what."""
    return (
        {}
        if needs.stores(point)
        else {"variant": point.variant, "deterministic": point.deterministic}
    )


# ---- content -------------------------------------------------------------------------------------
#
# Each layer holds bytes of its own, so that no hypervisor keeps two pages as one; and yet one
# answer serves all: a layer is the first one with some signs changed, of the same elements in all
# rows of K, of others in all rows of V. A query with the signs of K changed in the same way gets
# the first layer's answer, with those of V changed.


def signs(layer: int, head_dim: int) -> np.ndarray:
    """[K, V][head_dim] of 1 and -1; all 1 in the first layer."""
    if not layer:
        return np.ones((2, head_dim), dtype=np.float32)
    drawn = np.random.default_rng([SEED, layer]).choice(
        np.float32([1, -1]), (2, -(-head_dim // (2 * _HALF)), 1, _HALF)
    )
    return np.repeat(drawn, 2, axis=2).reshape(2, -1)[:, :head_dim]


class Content:
    """Layers of a cache's kind as bytes. Floats have a bit for the sign; codes of whole numbers are
    inverted, and 1 is added; or 17 where a byte holds two of them, for these are stored with 8
    added.
    """

    def __init__(self, cache: Cache) -> None:
        self._c, (elements, size) = cache.struct, block_of(cache.dtype, cache.library)
        self._cell, self._size = cache.library.cell(cache.layout, cache.dtype), size
        packed, whole = elements > 1, elements > 1 or self._c.k.scale_bytes > 0
        self._halves = packed and size - _SCALE < elements
        block, place = np.divmod(np.arange(self._c.k.row_bytes), size)
        # that a byte is of, or the first of those
        element = block * elements + (place - _SCALE if packed else 0)
        coded = (element < self._c.head_dim) & (place >= (_SCALE if packed else 0))
        sign = np.where(whole, 0xFF, np.where(place == size - 1, 0x80, 0))
        self._element = np.where(coded, element, 0)
        self._inverts = (coded * sign).astype(np.uint8)
        self._adds = (coded * (17 if self._halves else 1)).astype(np.uint8) if whole else None

    def begin(self, first: np.ndarray) -> None:
        """Makes the first layer one that the others can follow: of 4 bits, the least code is no
        other one's negative.
        """
        for rows in self._planes(first) if self._halves else ():
            codes = rows.reshape(*rows.shape[:2], -1, self._size)[..., _SCALE:]
            codes += codes & 0x0F == 0
            codes += (codes < 0x10) * np.uint8(0x10)

    def make(self, layer: int, first: np.ndarray, to: np.ndarray) -> None:
        changed = signs(layer, self._c.head_dim)[:, self._element] < 0
        for side, (rows, found) in enumerate(
            zip(self._planes(first), self._planes(to), strict=True)
        ):
            np.bitwise_xor(rows, self._along(self._inverts * changed[side], side, rows), out=found)
            if self._adds is not None:
                np.add(found, self._along(self._adds * changed[side], side, rows), out=found)
        if self._c.k.scale_bytes:
            own = slice(self._c.k.bytes + self._c.v.bytes, self._c.bytes)
            to[own] = first[own]
            # f16 has no bit to spare
            if min(self._c.k.scale_token_stride, self._c.k.scale_head_stride) >= 4:
                scales = to[own].view(np.uint32)  # whose last bit is half of what a sum rounds
                scales ^= np.random.default_rng([SEED, layer]).integers(
                    0, 2, scales.size, dtype=np.uint32
                )

    def _planes(self, layer: np.ndarray) -> list[np.ndarray]:
        """K and V as [stretches][parts][bytes of some rows]; stretches are side by side, or what
        pads lies between. Rows are those of a block where K is transposed, else as many as leave
        nothing over.
        """
        found, begin = [], 0
        for side, plane in enumerate((self._c.k, self._c.v)):
            step = plane.seq_stride if plane.head_stride < plane.token_stride else plane.head_stride
            rows = LANES if side == 0 and self._cell else math.gcd(step // plane.row_bytes, LANES)
            together = rows * plane.row_bytes
            shape = (plane.bytes // step, step // together, together)
            found.append(as_strided(layer[begin:], shape, (step, together, 1)))
            begin += plane.bytes
        return found

    def _along(self, row: np.ndarray, side: int, rows: np.ndarray) -> np.ndarray:
        """Bytes for a row, for as many rows as are taken at once."""
        count = rows.shape[2] // row.size
        if side == 0 and self._cell:
            return np.repeat(row.reshape(-1, 1, self._cell), count, axis=1).ravel()
        return np.tile(row, count)
