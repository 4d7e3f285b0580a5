"""What a gate measures: two builds, the points that both have, and which of them run the same code on both sides."""

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kvbench.errors import KvbenchError, NotComparable
from kvbench.gate.builds import Build, refuse_no_library
from kvbench.gate.code import digests
from kvbench.machine import available_memory, describe
from kvbench.model import SIDES, Kernel, Machine, Plan, Point
from kvbench.native import Cache, Library, is_plugin, library_of, library_path
from kvbench.plan import Site, expand, refuse_too_large
from kvbench.runner import new_run
from kvbench.suite import find

CONTROLS = 3  # points of unchanged code that are measured all the same
_PATIENCE = 120.0  # seconds without a sign of life after which a visit has hung
_LIBRARY, _INTERFACE, _PLUGIN = "libkvbench.so", "abi.h", "plugin.so"


@dataclass(frozen=True, slots=True)
class Asked:
    """every: measure and judge also what runs the same machine code on both sides, as if it might not."""

    suite: str = "gate"
    only: tuple[str, ...] = ()
    seed: int | None = None
    isa: str | None = None
    plugin: str = ""
    every: bool = False


@dataclass(frozen=True, slots=True)
class Rivals:
    """`plan`: what is measured. By name, points whose machine code is the `same` on both sides, of which those that are
    `unmeasured` are left out. `missing`: points that one side lacks, each with the reason."""

    machine: Machine
    plan: Plan
    same: tuple[str, ...]
    unmeasured: tuple[str, ...]
    missing: tuple[str, ...]


def rivals(base: Build, head: Build, asked: Asked, folder: Path) -> Rivals:
    """Both are copied into `folder`, where they must stay: one file would be one library, though it is opened twice."""
    paths = {side: _copied(build, folder / side, asked) for side, build in zip(SIDES, (base, head), strict=True)}
    opened = {side: _driven(side, *map(str, files)) for side, files in paths.items()}
    machine = describe()
    suite = find(asked.suite, opened["base"])
    site = Site(machine, available_memory(), asked.isa, library=opened["base"])
    found = expand(suite, site, only=asked.only)
    refuse_too_large(found)
    points, missing = _common(found.points, opened)
    if not points:
        raise NotComparable(f"{found.suite.source} has no point here that both builds have", "name another --suite")
    same = () if asked.every else _same(base, head, points, opened)
    measured = [point for point in points if point not in same]
    measured += same[:CONTROLS] if measured else ()
    return Rivals(
        machine=machine,
        plan=replace(
            found.plan,
            points=tuple(measured),
            seed=secrets.randbits(31) if asked.seed is None else asked.seed,
            run=new_run(),
            patience=_PATIENCE,
            library=str(paths["base"][0]),
            plugin=paths["base"][1],
            against=str(paths["head"][0]),
            against_plugin=paths["head"][1],
            foreign=opened["base"].foreign_variants,
        ),
        same=tuple(point.name for point in same),
        unmeasured=tuple(point.name for point in points if point not in measured),
        missing=tuple(missing),
    )


def _copied(build: Build, to: Path, asked: Asked) -> tuple[Path, str]:
    """A library and its plug-in, "" where it has none. A side that is a plug-in itself stands on the installed library."""
    foreign = is_plugin(build.library)
    library = library_path() if foreign else build.library
    to.mkdir(parents=True)
    shutil.copy(library, to / _LIBRARY)
    shutil.copy(library.with_name(_INTERFACE) if foreign else build.interface, to / _INTERFACE)
    plugin = build.library if foreign else asked.plugin
    if plugin:
        refuse_no_library(Path(plugin))
    return to / _LIBRARY, str(shutil.copy(plugin, to / _PLUGIN)) if plugin else ""


def _driven(side: str, path: str, plugin: str) -> Library:
    """A build of another interface may lack what is asked of it here, or mean something else by it."""
    ones = np.ones((1, 1, 1, 16), dtype=np.float32)
    try:
        library = library_of(path, plugin)
        with Cache(1, 16, 1, library=library) as cache:
            cache.bulk(ones, ones)
            right = np.allclose(cache.decode(ones[0]), 1.0)
        library.prefetch  # noqa: B018  # an older one lacks it
    except (KvbenchError, AttributeError, TypeError) as error:  # the latter two are cffi's
        why = error.args[0] if error.args else type(error).__name__
        raise NotComparable(f"{side} has another interface than this kvbench: {why}", _OLD) from None
    if not right:
        raise NotComparable(f"{side} does not answer as its interface says", _OLD)
    return library


_OLD = "compare builds of a nearer version; or let each measure itself, and use kvbench compare"


def _common(points: Sequence[Point], opened: Mapping[str, Library]) -> tuple[list[Point], list[str]]:
    there = {kernel.id for kernel in opened["head"].kernels()}
    kept = [point for point in points if point.kernel in there]
    return kept, [f"{point.name}: only base has this kernel" for point in points if point.kernel not in there]


def _same(base: Build, head: Build, points: Sequence[Point], opened: Mapping[str, Library]) -> list[Point]:
    """What a plug-in brings is known to be the same where its file is, and so is a whole library."""
    asked = {point.kernel for point in points}
    if base.digest == head.digest:
        return list(points)
    kernels = [kernel for kernel in opened["base"].kernels() if kernel.id in asked]
    ours, theirs = (dict(_digests(build, kernels)) for build in (base, head))
    return [p for p in points if p.kernel in ours and ours[p.kernel] == theirs.get(p.kernel)]


def _digests(build: Build, kernels: Sequence[Kernel]) -> Iterator[tuple[str, str]]:
    """Those that are known. A plug-in's file tells nothing, but what it does not bring is the installed library's."""
    if is_plugin(build.library):
        brought = {kernel.id for kernel in library_of(None, str(build.library)).kernels()} - {
            kernel.id for kernel in library_of(None).kernels()
        }
        yield from ((kernel.id, "installed") for kernel in kernels if kernel.id not in brought)
    else:
        yield from (digests(build.library, kernels) or {}).items()
