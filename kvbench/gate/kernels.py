"""Two builds of our kernels, or of a plug-in, as rivals on the points that both have. If both are
the same, nothing is measured.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kvbench.errors import KvbenchError, NotComparable, Unsupported
from kvbench.gate.builds import Build, refuse_no_library
from kvbench.gate.missing import missing
from kvbench.gate.rivals import Rivals, planned, refuse_chases
from kvbench.machine import available_memory, describe
from kvbench.model import (
    AUTO,
    DEFAULTS,
    OWN,
    SIDES,
)
from kvbench.native import Cache, Library, is_plugin, library_of, library_path
from kvbench.plan import Site, expand, refuse_too_large
from kvbench.suite import Suite, find
from kvbench.suite.axes import BY_KERNEL
from kvbench.suite.values import ALL
from kvbench.units import counted

_PLUGINS = "plugins"  # a separate folder, because a plug-in may have a library's name
_LIBRARY, _INTERFACE = "libkvbench.so", "abi.h"
_OTHER_ENGINE = (
    "kvbench verify --example shows a plug-in; --engine NAME compares two builds of another engine"
)
_OLD = "use builds of nearer versions; or sweep with each build and use kvbench compare"


@dataclass(frozen=True, slots=True)
class Request:
    """What a gate of kernels measures. every: measure and judge all points even if both sides are
    the same.
    """

    suite: str = "gate"
    only: tuple[str, ...] = ()
    seed: int | None = None
    isa: str | None = None
    plugin: tuple[str, ...] = ()
    every: bool = False


def tiers(asked: Request) -> tuple[str, ...]:
    """The tiers to build: the plainest, and the measured one. Empty, which means all, if the suite
    itself names tiers.
    """
    library = library_of(None, "")
    grids = find(asked.suite, library).grids
    best = DEFAULTS["isa"]
    if any(set(grid.get("isa", (best,))) != {best} for grid in grids):
        return ()
    return tuple(dict.fromkeys((library.isas()[0], library.isa(asked.isa))))


def rivals(base: Build, head: Build, asked: Request, folder: Path) -> Rivals:
    """Prepare the rivals. Both builds are copied into `folder` and must stay there: one file,
    opened twice, would be a single library.
    """
    foreign = _are_plugins(base, head)
    paths = {
        side: _copied(build, folder / side, asked, foreign)
        for side, build in zip(SIDES, (base, head), strict=True)
    }
    opened = {side: _driven(side, str(path), plugins) for side, (path, plugins) in paths.items()}
    machine = describe()
    suite = find(asked.suite, opened["base"])
    if foreign:
        suite = _for_plugin(suite, opened["base"])
    site = Site(machine, available_memory(), asked.isa, library=opened["base"])
    found = expand(suite, site, only=asked.only)
    refuse_too_large(found)
    refuse_chases(found)
    lost = missing(found.points, opened)
    points = [point for point in found.points if point not in lost]
    if not points:
        raise NotComparable(
            f"{found.suite.source} has no point here that both builds have", "name another --suite"
        )
    scheduled = () if foreign else points  # a plug-in reads and prefetches in its own way
    auto = {p.layout: p for p in reversed(scheduled) if p.op == "decode" and p.schedule == AUTO}
    own = [replace(point, schedule=OWN) for point in reversed(auto.values())]
    same = "" if asked.every else _same(base, head, foreign)
    plan = planned(
        found.plan,
        () if same else (*points, *own),
        asked.seed,
        library=str(paths["base"][0]),
        plugin=paths["base"][1],
        against=str(paths["head"][0]),
        against_plugin=paths["head"][1],
        foreign=opened["base"].foreign_variants,
        tuning={},
    )
    return Rivals(
        machine=machine,
        plan=plan,
        base=base.text,
        head=head.text,
        how="in one process on the same memory",
        unmeasured=same and f"{counted(len(points), 'point')} not measured: {same}",
        missing=tuple(f"{point.name}: {why}" for point, why in lost.items()),
        notes=tuple(_lacking(opened)),
    )


def _lacking(opened: dict[str, Library]) -> list[str]:
    """Schedules that only one side has; no point is measured with them."""
    words = {side: library.words("schedule") for side, library in opened.items()}
    return [
        f"schedule {word}: only {side} has it"
        for side, other in (SIDES, SIDES[::-1])
        for word in words[side]
        if word not in words[other]
    ]


def _same(base: Build, head: Build, foreign: bool) -> str:
    """Why nothing need be measured; "" if the sides differ."""
    if base.digest != head.digest:
        return ""
    what = f"the same {'plug-in' if foreign else 'library'}, byte for byte"
    return f"base and head are {'of the same code, comments aside' if base.unbuilt else what}"


def _are_plugins(base: Build, head: Build) -> bool:
    """Whether both files are plug-ins; False: both are libraries. Refuses one of each."""
    base_is, head_is = (is_plugin(build.library, _OTHER_ENGINE) for build in (base, head))
    if base_is != head_is:
        plugin, library = (base, head) if base_is else (head, base)
        raise NotComparable(
            f"{plugin.text} is a plug-in, but {library.text} is a library of kernels",
            "name two plug-ins; or two libraries, wheels or revisions",
        )
    return base_is


def _for_plugin(suite: Suite, library: Library) -> Suite:
    """The suite's decodes with the plug-in's kernels only; all other kernels are the same on both
    sides.
    """
    kernels = [kernel for kernel in library.plugins.kernels if kernel.runnable]
    if not kernels:
        isas = " ".join(sorted({kernel.isa for kernel in library.plugins.kernels}))
        raise Unsupported(
            f"no kernel of base runs here; its kernels are for {isas}", "build it for this CPU"
        )
    own = {
        axis: tuple(dict.fromkeys(getattr(kernel, axis) for kernel in kernels))
        for axis in BY_KERNEL
    }
    decodes = (grid for grid in suite.grids if set(grid.get("op", ("decode",))) & {"decode", ALL})
    return replace(suite, grids=tuple({**grid, "op": ("decode",), **own} for grid in decodes))


def _copied(build: Build, to: Path, asked: Request, foreign: bool) -> tuple[Path, tuple[str, ...]]:
    """Copy a library and its plug-ins. A side that is a plug-in uses the installed library."""
    library = library_path() if foreign else build.library
    to.mkdir(parents=True)
    shutil.copy(library, to / _LIBRARY)
    shutil.copy(library.with_name(_INTERFACE) if foreign else build.interface, to / _INTERFACE)
    plugins = (build.library,) if foreign else asked.plugin
    for plugin in plugins:
        refuse_no_library(Path(plugin))
    (to / _PLUGINS).mkdir()
    return to / _LIBRARY, tuple(str(shutil.copy(plugin, to / _PLUGINS)) for plugin in plugins)


def _driven(side: str, path: str, plugin: tuple[str, ...]) -> Library:
    """Open a side's library. A build with another interface may lack what is asked of it, or give
    it another meaning.
    """
    ones = np.ones((1, 1, 1, 16), dtype=np.float32)
    try:
        library = library_of(path, plugin)
        with Cache(1, 16, 1, library=library) as cache:
            cache.bulk(ones, ones)
            right = np.allclose(cache.decode(ones[0]), 1.0)
        library.schedule(AUTO)  # older libraries lack it
    except (KvbenchError, AttributeError, TypeError) as error:  # the last two come from cffi
        why = error.args[0] if error.args else type(error).__name__
        raise NotComparable(
            f"{side} has another interface than this kvbench: {why}", _OLD
        ) from None
    if not right:
        raise NotComparable(f"{side} does not behave as its interface says", _OLD)
    return library
