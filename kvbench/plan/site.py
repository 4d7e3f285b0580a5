"""What an expansion asks the machine and the library, each question once: points of a sweep repeat
them. And what the words of a grid's axes stand for here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from kvbench.errors import BadArgument, unknown_word
from kvbench.machine.placement import (
    POWERS,
    chaser,
    loading,
    memory_nodes,
    place,
    powers,
    words_of,
)
from kvbench.model import DEFAULTS, MODEL_SAYS, OURS, PLACES, Kernel, Machine
from kvbench.model.point import STEP
from kvbench.native import Cache, Library, block_of, default_library, pages_given
from kvbench.peers.builds import Build, engine_of
from kvbench.peers.known import Known, known
from kvbench.plan.needs import ALONE, slice_bytes
from kvbench.regime import far_bytes, levels, suggestion
from kvbench.suite import AXES
from kvbench.suite.axes import BY_KERNEL, NODES, words
from kvbench.suite.values import ALL, Axes

NONE = "-"  # of a layout or dtype: a kernel has none


class Site:
    """`memory`: bytes that a point may take. `isa`: the tier that "best" means. `peers`: builds of
    those that are asked for, by word; empty where all are.
    """

    def __init__(
        self,
        machine: Machine,
        memory: int,
        isa: str | None = None,
        pages: tuple[str, ...] | None = None,
        library: Library | None = None,
        peers: Mapping[str, Build] | None = None,
    ) -> None:
        self.machine, self.memory = machine, memory
        self.library, self.peers = library or default_library(), peers or {}
        self.isa = self.library.isa(isa)
        self.pages = pages_given(1, self.library) if pages is None else pages
        self.nodes = tuple(f"node{node}" for node in memory_nodes(machine))
        self.cpu_nodes = tuple(
            f"node{node.node}" for node in machine.nodes if set(node.cpus) & set(machine.allowed)
        )
        axes = ("op", *BY_KERNEL)
        self.kernels = {
            tuple(getattr(kernel, axis) for axis in axes): kernel
            for kernel in kernels_of(self.library)
        }

    def peer(self, word: str) -> Known:
        build = self.peers.get(word, Build())
        return known(word, build.path, build.python)

    def engines(self, asked: Iterable[str]) -> tuple[str, ...]:
        """Words of engines: of one that a grid names, all its builds that are asked for."""
        found = dict[str, None]()
        for engine in asked:
            own = [word for word in self.peers if engine in (word, engine_of(word))]
            found |= dict.fromkeys(own if own and engine != OURS else (engine,))
        return tuple(found)

    @cache
    def words_of(self, op: str, axis: str) -> tuple[str, ...]:
        """What an op's kernels have of an axis, in the registry's order. A plug-in adds its
        variants, and no tier or format that the library's own kernels are not for.
        """
        kernels = (
            kernel
            for kernel in self.kernels.values()
            if kernel.op == op
            and (axis == "variant" or kernel.variant not in self.library.foreign_variants)
        )
        return tuple(dict.fromkeys(getattr(kernel, axis) for kernel in kernels))

    @cache
    def lacks(self, op: str) -> dict[str, str]:
        """What no kernel of an op has, by axis, with the word that stands for that."""
        axes = ("layout", "dtype")
        return {axis: NONE for axis in axes if self.words_of(op, axis) == (NONE,)}

    @cache
    def cpus(self, cpus: str | None, threads: int | str) -> tuple[int, ...]:
        """One CPU for each thread, sorted: the same ones are one point. A sweep does not put two
        threads on one CPU.
        """
        found = place(self.machine, cpus, threads)
        if len(set(found)) < len(found):
            raise BadArgument(f"{len(found)} threads on {len(set(found))} CPUs", "fewer threads")
        return tuple(sorted(found))

    @cache
    def loading(self, cpus: str | None, where: str) -> tuple[int, ...]:
        """As placement.loading() has them, sorted."""
        return tuple(sorted(loading(self.machine, cpus, where)))

    @cache
    def chaser(self, cpus: tuple[int, ...], where: str) -> int | None:
        return chaser(self.machine, cpus, where)

    def refuse_unknown(self, cpus: str | None) -> None:
        """What is neither a list of CPUs nor a word for some here."""
        known = (*PLACES, *words_of(self.machine))
        if cpus and not cpus[0].isdigit() and cpus not in known:
            raise unknown_word("cpus", cpus, known)

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
        return (
            dtype != NONE
            and len(
                {
                    slice_bytes(1, 64, 1024, 1, dtype=dtype, scale=scale)
                    for scale in self.library.words("scale")
                }
            )
            > 1
        )

    @cache
    def scales_blocks(self, dtype: str) -> bool:
        """Whether a scale is of a block of elements, and lies in their row."""
        return dtype != NONE and block_of(dtype, self.library)[0] > 1

    @cache
    def has_scales(self, dtype: str) -> bool:
        return self.scaled(dtype) or self.scales_blocks(dtype)

    @cache
    def paged(self, layout: str) -> bool:
        return layout != NONE and Cache.is_paged(layout, self.library)


def kernels_of(library: Library) -> list[Kernel]:
    """What points may be of: the library's own, and whole steps."""
    return [*library.kernels(), *(_steps(library) if library.takes_series else ())]


def _steps(library: Library) -> list[Kernel]:
    """A whole step stores and decodes: it takes what both have a kernel of. No plug-in's does."""
    stored = {
        (each.layout, each.dtype, each.isa) for each in library.kernels() if each.op == "append"
    }
    return [
        replace(kernel, op=STEP)
        for kernel in library.kernels()
        if kernel.op == "decode"
        and kernel.variant not in library.foreign_variants
        and (kernel.layout, kernel.dtype, kernel.isa) in stored
    ]


def resolved(axes: Axes, op: str, site: Site) -> dict[str, tuple[Any, ...]]:
    """All axes, for one op: "all" spelled out, "best" named, what is not asked for by default."""
    found = {axis: axes.get(axis, (DEFAULTS[axis],)) for axis in AXES} | {"op": (op,)}
    found |= {axis: axes.get(axis, (None,)) for axis in MODEL_SAYS}  # as the model has it
    for axis, values in found.items():
        if axis not in ("threads", "op") and ALL in values:
            found[axis] = site.words_of(op, axis) if axis in BY_KERNEL else words(axis)
    found["engine"] = site.engines(found["engine"])
    if found["variant"] == (None,):
        first, *others = site.words_of(op, "variant")
        found["variant"] = (
            first,
            *(word for word in others if word in site.library.foreign_variants),
        )
    return found | {axis: (word,) for axis, word in site.lacks(op).items()} | _named(found, site)


def threads_of(op: str, asked: int | str) -> int | str:
    """All threads, of an op that is of one, are that one."""
    return 1 if op in ALONE and asked == DEFAULTS["threads"] else asked


def _named(axes: Axes, site: Site) -> dict[str, tuple[Any, ...]]:
    """What "best" and "powers" mean, where they are asked for; no place may be named that this
    machine lacks.
    """
    found: dict[str, tuple[Any, ...]] = {}
    if isas := axes.get("isa"):
        found["isa"] = tuple(
            dict.fromkeys(site.isa if isa == DEFAULTS["isa"] else isa for isa in isas)
        )
    for axis, nodes in (("cpus", site.cpu_nodes), ("memory", site.nodes)):
        if NODES in (asked := axes.get(axis, ())):
            found[axis] = tuple(
                dict.fromkeys(
                    one for word in asked for one in (nodes if word == NODES else (word,))
                )
            )
    places = found.get("cpus", axes.get("cpus", (None,)))
    for word in places:
        site.refuse_unknown(word)
    if POWERS in (threads := axes.get("threads", ())):
        series = sorted({count for word in places for count in powers(site.machine, word)})
        found["threads"] = tuple(
            dict.fromkeys((*series, *(value for value in threads if value != POWERS)))
        )
    return found


def constraint(table: Axes, site: Site) -> Axes:
    """ "all" of an axis of words matches any."""
    axes = {
        axis: values for axis, values in table.items() if axis == "threads" or ALL not in values
    }
    return axes | _named(axes, site)
