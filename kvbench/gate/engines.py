"""Two builds of another engine as rivals: libraries of ggml, interpreters with vLLM. The points
have the layout in which the engine keeps its cache.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from kvbench.errors import NotComparable, Refused
from kvbench.gate.builds import refuse_no_library
from kvbench.gate.rivals import Rivals, planned
from kvbench.machine import available_memory, describe
from kvbench.model import SIDES
from kvbench.peers.builds import AT, Build, build_at
from kvbench.peers.known import Known, digest, known
from kvbench.plan import Site, expand, refuse_too_large
from kvbench.plan.expansion import refuse_empty, refuse_without_peer
from kvbench.suite import find
from kvbench.suite.axes import from_options
from kvbench.units import counted

SUITE = "engine"


@dataclass(frozen=True, slots=True)
class EngineSide:
    """A build of an engine. `text`, for people: "libggml.so (0.9.4, sha256 ab12cd34)". `code`:
    equal for equal sides. `library`: the file with its kernels, with its digest; "" if unknown.
    """

    text: str
    build: Build
    code: str
    library: str = ""
    sha256: str = ""

    @property
    def changed(self) -> bool:
        """Whether its library has changed since, or is gone."""
        return digest(self.library) != self.sha256


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """What a gate of engines measures. `axes`: "context=1k,8k" replaces the suite's axis. every: as
    in Request.
    """

    engine: str
    suite: str = SUITE
    axes: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    seed: int | None = None
    every: bool = False


def engine_side(engine: str, asked: str, text: str = "", code: str = "") -> EngineSide:
    """Look up a build. `asked`: a library, or an interpreter that has the engine. `text` and
    `code`: for a library built from a checkout.
    """
    hint = "name a file; for revisions give --source, the checkout that has them"
    build = build_at(asked, hint)
    found = known(f"{engine}{AT}{asked}", build.path, build.python)
    if found.lacking:
        raise Refused(f"{asked}: {found.lacking}", "name a build that runs here")
    if build.path:
        refuse_no_library(Path(found.library))
    sha256 = digest(found.library)
    own = text or _text(asked, found, sha256), build, code or _place(build)
    return EngineSide(*own, found.library, sha256)


def _place(build: Build) -> str:
    """The real path of a build. The last link of an interpreter is not followed, because its folder
    decides which packages it has.
    """
    if build.path:
        return os.path.realpath(build.path)
    folder, name = os.path.split(build.python)
    return os.path.join(os.path.realpath(folder), name)


def _text(asked: str, found: Known, sha256: str) -> str:
    """The build's name, its version, and the first digits of its library's digest."""
    words = [found.version, sha256 and f"sha256 {sha256[:8]}"]
    said = ", ".join(filter(None, words))
    name = asked if found.python else Path(asked).name
    return f"{name} ({said})" if said else name


def rivals(base: EngineSide, head: EngineSide, asked: EngineRequest) -> Rivals:
    sides = dict(zip(SIDES, (base, head), strict=True))
    builds = {f"{asked.engine}{AT}{side}": own.build for side, own in sides.items()}
    machine = describe()
    site = Site(machine, available_memory(), peers=builds)
    kept = known(asked.engine).kind.kept
    suite = find(asked.suite, site.library)
    suite = suite.with_axes(from_options((f"layout={kept}", *asked.axes), site.library))
    found = expand(suite, site, only=asked.only)
    refuse_too_large(found)
    refuse_empty(found, site, asked.only)
    refuse_without_peer(found, site)
    points = dict.fromkeys(
        replace(point, engine=asked.engine) for point in found.points if point.engine in builds
    )
    if not points:
        raise NotComparable(
            f"{found.suite.source} has no point for {asked.engine} here", "name another --suite"
        )
    same = _same(base, head) if not asked.every else ""
    plan = planned(
        found.plan,
        () if same else tuple(points),
        asked.seed,
        contest=True,
        peers={word: build.path for word, build in builds.items()},
        pythons={word: build.python for word, build in builds.items()},
    )
    return Rivals(
        machine=machine,
        plan=plan,
        base=base.text,
        head=head.text,
        how="each in its own process, with its memory placed anew in every launch",
        unmeasured=same and f"{counted(len(points), 'point')} not measured: {same}",
        changed=lambda: " and ".join(side for side, own in sides.items() if own.changed),
    )


def _same(base: EngineSide, head: EngineSide) -> str:
    """Why nothing need be measured; "" if the sides may differ."""
    return "base and head are the same build" if base.code == head.code else ""
