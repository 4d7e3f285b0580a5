"""A plug-in's kernels, each in a process of its own, so that none of them can end the check of another."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from kvbench.apart import Ended, apart
from kvbench.errors import KvbenchError
from kvbench.model import Kernel
from kvbench.native import Library, library_of
from kvbench.verify.faults import Fault, plant
from kvbench.verify.kernels import Checked, check

_PATIENCE = 120.0  # seconds that one kernel may take

_Found = tuple[list[Checked], list[Fault]]


def check_plugin(library: Library, isa: str | None = None, quick: bool = False) -> _Found:
    """As check() and plant() do, of the plug-in's kernels alone."""
    every = [_apart(library, kernel, quick) for kernel in library.plugin.kernels if isa in (None, kernel.isa)]
    return [result for results, _ in every for result in results], list(_together(f for _, f in every))


def _apart(library: Library, kernel: Kernel, quick: bool) -> _Found:
    if not kernel.runnable:
        return [], []
    try:
        return apart(_found, str(library.plugin.path), kernel, quick, patience=_PATIENCE)
    except Ended as end:
        return [Checked.of(kernel, inf, f"its process {end.how}")], []
    except KvbenchError as error:
        return [Checked.of(kernel, inf, error.args[0])], []


def _found(plugin: str, kernel: Kernel, quick: bool) -> _Found:
    library = library_of(None, plugin)
    results = list(check(library, [kernel], quick))
    return results, list(plant(library, [kernel])) if results[0].passed else []


def _together(every: Iterator[list[Fault]]) -> Iterator[Fault]:
    """Faults of one name as one, of those that could be planted."""
    found: dict[str, Fault] = {}
    for fault in (fault for faults in every for fault in faults):
        old = found.get(fault.name, replace(fault, planted=0, caught=0))
        known = [margin for margin in (old.margin, fault.margin) if margin is not None]
        counts = {"planted": old.planted + fault.planted, "caught": old.caught + fault.caught}
        found[fault.name] = replace(old, margin=min(known, default=None), **counts)
    yield from (fault for fault in found.values() if fault.planted)
