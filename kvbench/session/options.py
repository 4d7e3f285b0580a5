"""The options of a sweep, and which of them may change when it is resumed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from kvbench.errors import BadArgument, BadRun, refuse_beyond
from kvbench.model import several
from kvbench.native import Library, library_of
from kvbench.peers.builds import Build, absolute_path, builds, engine_of
from kvbench.peers.known import entries
from kvbench.store.evidence import OFF
from kvbench.store.values import read
from kvbench.suite import Suite, find
from kvbench.suite.axes import absolute, from_options
from kvbench.suite.values import LIMITS

_AXES = ("cpus", "pages", "schedule")  # options that set the axis of the same name
# These say when to stop, not what to measure.
_LATER = {"launches", "budget", "target_ci", "until_decided", "patience"}
_LIMITS = LIMITS | {
    "seed": (0, 1 << 62),
    "budget": (1e-9, 1e9),
    "target_ci": (1e-6, 1.0),
    "patience": (0.1, 1e6),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What a sweep is asked for. None leaves a choice to the suite or the machine. Times are in
    seconds.

    axes: "context=1k,8k" replaces the suite's axis. only: patterns for names of points.
    target_ci: add launches until every point's interval reaches no further than this share from its
        median.
    until_decided: add launches while questions are open, for a time set by the suite or the budget.
        By default the suite decides, unless launches or target_ci is given.
    budget: a launch starts only if it should finish in time. One always runs.
    tuning: the file that keeps the tuner's measurements, by default in the user's cache folder; or
        off.
    neighbour: also time points while other cores stream memory.
    peers: which of the suite's peers to measure; "ggml=/opt/libggml.so" takes another library.
    pythons: "vllm=/opt/vllm/bin/python" takes another interpreter. Two builds of an engine are two
        rows.
    commit: the revision that is measured, for a history; by default git's, here.
    """

    suite: str = "quick"
    axes: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    launches: int | None = None
    samples: int | None = None
    sample_time: float | None = None
    seed: int = 1
    cpus: str | None = None
    isa: str | None = None
    pages: str | None = None
    library: str | None = None
    plugin: tuple[str, ...] | str = ()
    schedule: str | None = None
    tuning: str | None = None
    budget: float | None = None
    target_ci: float | None = None
    until_decided: bool | None = None
    patience: float | None = None
    neighbour: bool | None = None
    peers: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    commit: str | None = None

    def __post_init__(self) -> None:
        for name in ("axes", "only", "peers", "pythons"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        # A run may be resumed from another folder.
        object.__setattr__(self, "axes", tuple(map(absolute, self.axes)))
        for name in ("peers", "pythons"):
            object.__setattr__(self, name, tuple(map(absolute_path, getattr(self, name))))
        for name in ("suite", "library"):
            path = getattr(self, name) or ""
            if path.endswith((".toml", ".so")):
                object.__setattr__(self, name, str(Path(path).absolute()))
        plugins = tuple(str(Path(path).absolute()) for path in several(self.plugin))
        object.__setattr__(self, "plugin", plugins)
        if path := str(self.tuning or ""):
            object.__setattr__(self, "tuning", path if path == OFF else str(Path(path).absolute()))
        for name, limits in _LIMITS.items():
            if (value := getattr(self, name)) is not None:
                refuse_beyond(name, value, limits)
        for name in {axis.partition("=")[0].strip() for axis in self.axes} & set(_AXES):
            if getattr(self, name) is not None:
                raise BadArgument(f"{name} is also given as an axis", "leave one of them out")
        if self.target_ci and not self.budget:
            raise BadArgument(
                "target_ci without a budget might never end", "give a budget too, such as 10m"
            )
        if self.target_ci and self.until_decided:
            raise BadArgument(
                "target_ci and until_decided both say when to stop", "leave one of them out"
            )

    @property
    def builds(self) -> dict[str, Build]:
        """Builds of peers by word; empty if all peers of the suite are measured as they are."""
        if not self.peers and not self.pythons:
            return {}
        named = [each for each in self.peers if "=" in each]
        engines = dict.fromkeys(map(engine_of, self.peers or entries()))
        return builds(engines, named, self.pythons)

    @property
    def kernels(self) -> Library:
        """The library to measure, with the plug-ins."""
        return library_of(self.library, self.plugin)

    @property
    def asked_suite(self) -> Suite:
        """The suite, with everything that the options replace."""
        asked = {name: getattr(self, name) for name in LIMITS if getattr(self, name) is not None}
        own = (f"{name}={value}" for name in _AXES if (value := getattr(self, name)) is not None)
        axes = from_options((*self.axes, *own), self.kernels)
        return replace(find(self.suite, self.kernels), **asked).with_axes(axes)

    def settled(self, suite: Suite) -> Self:
        """Fill in until_decided from the suite if no option settles it."""
        by_hand = self.launches or self.target_ci
        on = (
            bool(suite.until_decided) and not by_hand
            if self.until_decided is None
            else self.until_decided
        )
        return replace(self, until_decided=on)

    @classmethod
    def kept(cls, facts: Mapping[str, Any], source: str) -> Self:
        """Read the options from a manifest. `source`: its name in messages."""
        try:
            return read(cls, facts)
        except ValueError as error:
            raise BadRun(f"{source}: options: {error}", "begin another run") from None

    def resumed(self, asked: Mapping[str, Any], source: str) -> Self:
        """Apply the options `asked` for a resumption. What is measured must stay the same."""
        by_hand = (
            {} if asked.keys().isdisjoint({"launches", "target_ci"}) else {"until_decided": False}
        )
        found = replace(self, **by_hand | dict(asked))
        for name in asked.keys() - _LATER:
            then, now = getattr(self, name), getattr(found, name)
            if then != now:
                raise BadArgument(
                    f"{source} was begun with {name} {then}, not {now}",
                    "resume it as it was begun, or start another run with another --out",
                )
        return found
