"""The memory and the programs of one point: caches for its layers in one arena, the kernel, and its witnesses."""

from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from kvbench.errors import Refused
from kvbench.machine import available_memory, describe
from kvbench.model import Point
from kvbench.native import AHEAD, Arena, Cache, Library, Team, decode_task, default_library, probe_task, store_task
from kvbench.plan import needs
from kvbench.regime import far_bytes, levels
from kvbench.units import size
from kvbench.worker.loop import Program
from kvbench.worker.probing import ROUNDS

_WRAP_TOKENS = 64  # of the core roof's window, or fewer where they would not fit a private cache
_SEED = 1


class Bench:
    """Owns everything that the point's programs touch. `programs` are what a visit samples in turn."""

    def __init__(self, point: Point, library: Library | None = None) -> None:
        self.point = point
        self.library = library or default_library()
        self._owned = ExitStack()
        self._machine = describe()
        self.far_bytes = far_bytes(self._machine, point.cpus)
        try:
            self._prepare()
        except BaseException:
            self._owned.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._owned.close()

    # ---- memory --------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        point, shape = self.point, self.point.shape
        facts = self._cache_facts()
        self.slice_bytes = Cache.size_of(shape.kv_heads, shape.head_dim, shape.capacity, **facts)
        self.layers = needs.layers(point, needs.walked(point, self.slice_bytes), self.far_bytes)
        self._refuse_too_much()
        self.team = self._owned.enter_context(Team(len(point.cpus), point.cpus, self.library))
        self.arena = self._arena(self.layers * self.slice_bytes)
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
        vectors = (self.layers, shape.batch, shape.q_heads, shape.head_dim)
        self.q = np.random.default_rng(_SEED).standard_normal(vectors[1:], dtype=np.float32)
        self.out = np.zeros(vectors, dtype=np.float32)
        self._fill()
        between = self._sweep() if point.residency == "evicted" else None
        self.programs = self._store_programs(between) if self.stores else self._decode_programs(between)

    def _refuse_too_much(self) -> None:
        """Before anything is allocated: slices, what they are compared with, and the check's float64 copies."""
        needed = needs.memory(self.point, self.slice_bytes, self.layers, self.far_bytes)
        free = available_memory()
        if needed > free:
            raise Refused(
                f"the point needs {size(needed)} of memory, {size(free)} are free", "less context, layers or batch"
            )

    @property
    def stores(self) -> bool:
        return needs.stores(self.point)

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

    def _private(self) -> int:
        """Bytes of the largest cache below the last level that one CPU has; 256 KiB where nothing is declared."""
        below = list(levels(self._machine, self.point.cpus).values())[:-1]
        return max((cache.size for caches in below for cache in caches), default=256 << 10)

    def _arena(self, size: int) -> Arena:
        return self._owned.enter_context(Arena(-(-size // 64) * 64, self.point.pages, library=self.library))

    def _fill(self) -> None:
        """Every slice holds `context` tokens, first touched by the threads that read them."""
        for layer, cache in enumerate(self.caches):
            cache.lengths[:] = self.point.shape.context
            with self._decode("fill", layer, seed=_SEED + layer) as task:
                self.team.run(task)

    # ---- programs ------------------------------------------------------------------------------------------------

    def _decode(self, op: str, layer: int, **facts: Any) -> Any:
        point = self.point
        facts = {"variant": point.variant if point.op == "decode" else "flash", "isa": point.isa, **facts}
        return decode_task(op, self.caches[layer], self.q, self.out[layer], len(point.cpus), **facts)

    def _over_layers(self, op: str, **facts: Any) -> tuple[Any, ...]:
        return tuple(self._owned.enter_context(self._decode(op, layer, **facts)) for layer in range(self.layers))

    def _decode_programs(self, between: Any) -> list[Program]:
        point = self.point
        facts = {"prefetch": point.prefetch, "distance": point.distance, "deterministic": point.deterministic}
        self.staged = Program("stages", self._over_layers("decode", **facts, stages=True), between)
        wrapped = self._owned.enter_context(self._decode("decode", 0, **facts, wrap=self._wrap()))
        return [
            Program("point", self._over_layers("decode", **facts), between),
            Program("twin", self._over_layers("twin", prefetch="off"), between),
            Program("twin_ahead", self._over_layers("twin", prefetch="cross"), between),
            Program("core", (wrapped,)),
            *self._reads("ceiling", self.arena, between),
            *self._far_reads(),
            Program("fma", (self._probe("flops", steps=ROUNDS),)),
        ]

    def _wrap(self) -> int:
        """Tokens of the core roof's window: K and V of it fill half of a private cache at most."""
        shape, cache = self.point.shape, self.caches[0].struct
        side_by_side = shape.kv_heads if cache.head_stride < cache.token_stride else 1
        fits = self._private() // 2 // (2 * cache.row_bytes * side_by_side) // 16 * 16
        return max(1, min(shape.context, max(16, min(_WRAP_TOKENS, fits))))

    def _probe(self, op: str, **facts: Any) -> Any:
        task = probe_task(self.library, op, len(self.point.cpus), isa=self.point.isa, **facts)
        return self._owned.enter_context(task)

    def _reads(self, name: str, arena: Arena, between: Any = None) -> list[Program]:
        size = arena.size // 64 * 64
        return [
            Program(name, (self._probe("read", to=arena, size=size),), between),
            Program(f"{name}_ahead", (self._probe("read", to=arena, size=size, distance=AHEAD),), between),
        ]

    def _far_reads(self) -> list[Program]:
        """DRAM for comparison, where the point's own footprint may fit a cache."""
        if self.arena.size >= self.far_bytes:
            return []
        far = self._arena(self.far_bytes)
        self.team.run(self._probe("write", to=far, size=far.size))
        return self._reads("dram", far)

    def _sweep(self) -> Any:
        """A task that throws the caches' contents out."""
        far = self._arena(self.far_bytes)
        self.team.run(self._probe("write", to=far, size=far.size))
        return self._probe("read", to=far, size=far.size)

    def _store_programs(self, between: Any) -> list[Program]:
        """The store, with both kinds of stores where it has them, beside copies of as many bytes."""
        point = self.point
        self.sources = self._sources()
        to, of = self._arena(self.arena.size), self._arena(self.arena.size)
        for arena in (to, of):
            self.team.run(self._probe("write", to=arena, size=arena.size))
        programs = [Program("point", self._stores(point.variant == "nt"), between)]
        if point.op == "bulk":
            programs.append(Program("other", self._stores(point.variant != "nt"), between))
        for op in ("copy", "copy_nt"):
            programs.append(Program(op, (self._probe(op, to=to, source=of, size=to.size),), between))
        return [*programs, *self._reads("ceiling", self.arena, between)]

    def _sources(self) -> np.ndarray:
        """Rows to store, [layers][K, V][batch][tokens][kv_heads][head_dim]: each slice has its own, as in a model."""
        shape, bulk = self.point.shape, self.point.op == "bulk"
        for cache in self.caches:
            cache.lengths[:] = 0 if bulk else shape.context - 1
        dims = (2, shape.batch, shape.context if bulk else 1, shape.kv_heads, shape.head_dim)
        one = np.random.default_rng(_SEED).standard_normal(dims, dtype=np.float32)
        return np.broadcast_to(one, (self.layers, *dims)).copy()

    def _stores(self, nt: bool) -> tuple[Any, ...]:
        op, threads, bulk = self.point.op, len(self.point.cpus), self.point.op == "bulk"
        tasks = (
            store_task(op, cache, *(source if bulk else source[:, :, 0]), threads, isa=self.point.isa, nt=nt)
            for cache, source in zip(self.caches, self.sources, strict=True)
        )
        return tuple(self._owned.enter_context(task) for task in tasks)
