"""The machine and the library as an expansion asks them. Answers are cached, because the points of
a sweep repeat the questions. Also: what the words of a grid's axes mean here.
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

NONE = "-"  # the layout or dtype of a kernel that has none


class Site:
    """What is available here.

    memory: bytes that a point may take. isa: the instruction set that "best" means. peers: the
    builds that were asked for, by name; empty if all peers are asked for.
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
        """The names of the engines in a grid. An engine's name stands for all its builds that were
        asked for.
        """
        found = dict[str, None]()
        for engine in asked:
            own = [word for word in self.peers if engine in (word, engine_of(word))]
            found |= dict.fromkeys(own if own and engine != OURS else (engine,))
        return tuple(found)

    @cache
    def words_of(self, op: str, axis: str) -> tuple[str, ...]:
        """The values of an axis that an op's kernels have, in the registry's order. A plug-in adds
        its variants, but no tier and no format that the library's own kernels lack.
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
        """The axes that no kernel of an op has, with the word "-" for them."""
        axes = ("layout", "dtype")
        return {axis: NONE for axis in axes if self.words_of(op, axis) == (NONE,)}

    @cache
    def cpus(self, cpus: str | None, threads: int | str) -> tuple[int, ...]:
        """One CPU for each thread, sorted, so that equal sets are one point. A sweep never puts two
        threads on one CPU.
        """
        found = place(self.machine, cpus, threads)
        if len(set(found)) < len(found):
            raise BadArgument(f"{len(found)} threads on {len(set(found))} CPUs", "fewer threads")
        return tuple(sorted(found))

    @cache
    def loading(self, cpus: str | None, where: str) -> tuple[int, ...]:
        """As placement.loading(), sorted."""
        return tuple(sorted(loading(self.machine, cpus, where)))

    @cache
    def chaser(self, cpus: tuple[int, ...], where: str) -> int | None:
        return chaser(self.machine, cpus, where)

    def refuse_unknown(self, cpus: str | None) -> None:
        """Refuse text that is neither a list of CPUs nor a word for CPUs of this machine."""
        known = (*PLACES, *words_of(self.machine))
        if cpus and not cpus[0].isdigit() and cpus not in known:
            raise unknown_word("cpus", cpus, known)

    @cache
    def far(self, cpus: tuple[int, ...]) -> int:
        return far_bytes(self.machine, cpus)

    @cache
    def level_bytes(self, cpus: tuple[int, ...], level: int) -> int | None:
        """The size of all caches of a level that serve these CPUs; None unless it is known for
        every CPU.
        """
        found = levels(self.machine, cpus).get(level, ())
        served = {cpu for cache in found for cpu in cache.cpus}
        return sum(cache.size for cache in found) if set(cpus) <= served else None

    @cache
    def closed(self, cpus: tuple[int, ...]) -> str:
        """Why no footprint tests L3 on these CPUs; empty if one does."""
        return suggestion(self.machine, cpus)

    @cache
    def scaled(self, dtype: str) -> bool:
        """Whether a dtype has separate scales. Only then the dtype of the scales matters."""
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
        """Whether a scale belongs to a block of elements, and lies in their row."""
        return dtype != NONE and block_of(dtype, self.library)[0] > 1

    @cache
    def has_scales(self, dtype: str) -> bool:
        return self.scaled(dtype) or self.scales_blocks(dtype)

    @cache
    def paged(self, layout: str) -> bool:
        return layout != NONE and Cache.is_paged(layout, self.library)


def kernels_of(library: Library) -> list[Kernel]:
    """The kernels that points may use: the library's own, and those of whole steps."""
    return [*library.kernels(), *(_steps(library) if library.takes_series else ())]


def _steps(library: Library) -> list[Kernel]:
    """The kernels of whole steps. A step appends and decodes, so it has the kernels that both ops
    have. Plug-ins have none.
    """
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
    """All axes of a grid for one op: "all" becomes a list, "best" a name, and axes that the grid
    leaves out have their defaults.
    """
    found = {axis: axes.get(axis, (DEFAULTS[axis],)) for axis in AXES} | {"op": (op,)}
    found |= {axis: axes.get(axis, (None,)) for axis in MODEL_SAYS}  # None: the model's value
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
    """The threads to ask for: an op that runs on one thread has one by default."""
    return 1 if op in ALONE and asked == DEFAULTS["threads"] else asked


def _named(axes: Axes, site: Site) -> dict[str, tuple[Any, ...]]:
    """The values that "best", "nodes" and "powers" mean, for the axes that are given. Unknown words
    for CPUs are refused.
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
    """The values of a skip that are compared. An axis of words that has "all" matches any value."""
    axes = {
        axis: values for axis, values in table.items() if axis == "threads" or ALL not in values
    }
    return axes | _named(axes, site)
