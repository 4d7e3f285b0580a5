"""What an expansion asks the machine and the library, each question once: points of a sweep repeat them."""

from collections.abc import Mapping
from functools import cache

from kvbench.errors import BadArgument, unknown_word
from kvbench.machine.placement import memory_nodes, place, powers, words_of
from kvbench.model import PLACES, Kernel, Machine
from kvbench.native import Cache, Library, default_library, pages_given
from kvbench.peers import Known, known
from kvbench.plan.needs import slice_bytes
from kvbench.regime import THRESHOLDS, far_bytes, levels, suggestion


class Site:
    """`memory`: bytes that a point may take. `isa`: the tier that "best" means. `peers`: those that are asked for, of
    all that there are, and the paths that some have."""

    def __init__(
        self,
        machine: Machine,
        memory: int,
        isa: str | None = None,
        pages: tuple[str, ...] | None = None,
        library: Library | None = None,
        peers: Mapping[str, str] | None = None,
    ) -> None:
        self.machine, self.memory = machine, memory
        self.library, self.peers = library or default_library(), peers or {}
        self.isa = self.library.isa(isa)
        self.pages = pages_given(1, self.library) if pages is None else pages
        self.nodes = tuple(f"node{node}" for node in memory_nodes(machine))
        self.cpu_nodes = tuple(f"node{node.node}" for node in machine.nodes if set(node.cpus) & set(machine.allowed))
        self._kernels = {
            (kernel.op, kernel.variant, kernel.layout, kernel.dtype, kernel.isa): kernel
            for kernel in self.library.kernels()
        }

    def kernel(self, *words: str) -> Kernel | None:
        """By op, variant, layout, dtype and isa."""
        return self._kernels.get(words)

    def peer(self, engine: str) -> Known:
        return known(engine, self.peers.get(engine, ""))

    @cache
    def words_of(self, op: str, axis: str) -> tuple[str, ...]:
        """What an op's kernels have of an axis, in the registry's order. A plug-in adds its variants, and no tier or
        format that the library's own kernels are not for."""
        kernels = (
            kernel
            for kernel in self._kernels.values()
            if kernel.op == op and (axis == "variant" or kernel.variant not in self.library.foreign_variants)
        )
        return tuple(dict.fromkeys(getattr(kernel, axis) for kernel in kernels))

    @cache
    def cpus(self, cpus: str | None, threads: int | str) -> tuple[int, ...]:
        """One CPU for each thread, sorted: the same ones are one point. A sweep does not put two threads on one CPU."""
        found = place(self.machine, cpus, threads)
        if len(set(found)) < len(found):
            raise BadArgument(f"{len(found)} threads on {len(set(found))} CPUs", "fewer threads")
        return tuple(sorted(found))

    def refuse_unknown(self, cpus: str | None) -> None:
        """What is neither a list of CPUs nor a word for some here."""
        known = (*PLACES, *words_of(self.machine))
        if cpus and not cpus[0].isdigit() and cpus not in known:
            raise unknown_word("cpus", cpus, known)

    @cache
    def powers(self, cpus: str | None) -> tuple[int, ...]:
        return powers(self.machine, cpus)

    @cache
    def far(self, cpus: tuple[int, ...]) -> int:
        return far_bytes(self.machine, cpus)

    @cache
    def level_bytes(self, cpus: tuple[int, ...], level: int) -> int | None:
        """All caches of a level that serve these CPUs; None unless it is known for each of them."""
        found = levels(self.machine, cpus).get(level, ())
        served = {cpu for cache in found for cpu in cache.cpus}
        return sum(cache.size for cache in found) if set(cpus) <= served else None

    @cache
    def closed(self, cpus: tuple[int, ...]) -> str:
        """Why no footprint tests L3 on these CPUs; empty where one does."""
        return suggestion(self.machine, cpus)

    @cache
    def scaled(self, dtype: str) -> bool:
        """Whether a dtype has scales: only then their own dtype matters."""
        return len({slice_bytes(1, 64, 1024, 1, dtype=dtype, scale=scale) for scale in self.library.words("scale")}) > 1

    @cache
    def paged(self, layout: str) -> bool:
        return Cache.is_paged(layout, self.library)


L3_SHARE = THRESHOLDS.last  # of L3: a larger slice asks for something else
