"""The history of every machine below a folder, judged."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from kvbench.analysis.names import names as short_names
from kvbench.analysis.trend import Accepted, Past, Ran, Series, Trend, trends
from kvbench.errors import BadArgument
from kvbench.history.accepted import accepted
from kvbench.history.index import Index, RunRow
from kvbench.store import keep, point
from kvbench.store.run import RunDirectory

_Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class History:
    """`pasts`: of each machine, the one with most runs first. `notes`: what was left out, and why."""

    root: Path
    pasts: tuple[Past, ...]
    notes: tuple[str, ...]

    def only(self, pattern: str | None, machine: str | None) -> "History":
        """Of these points and this machine: all were judged together, so that no choice changes what is said of one."""
        kept = self._of(machine) if machine else self.pasts
        if pattern:
            kept = [replace(past, trends=tuple(t for t in past.trends if named(past, t, pattern))) for past in kept]
            if self.pasts and not any(past.trends for past in kept):
                raise BadArgument(
                    f"--point: no point of these runs is named {pattern!r}",
                    "patterns are as of a shell, such as 'decode.*.i8.*'; kvbench history show lists the points",
                )
        return replace(self, pasts=tuple(kept))

    def _of(self, machine: str) -> list[Past]:
        if kept := [past for past in self.pasts if past.fingerprint.startswith(machine)]:
            return kept
        known = ", ".join(past.fingerprint for past in self.pasts) or "none"
        raise BadArgument(f"--machine: no run is of machine {machine!r}", f"the fingerprints here: {known}")


def named(past: Past, trend: Trend, pattern: str) -> bool:
    """By its whole name, or by the short one that tables have."""
    name = trend.series.point
    return any(fnmatchcase(each, pattern) for each in (name, past.names[name]))


def load(root: Path, rebuild: bool, tell: _Tell) -> History:
    with Index(root, rebuild) as index:
        index.update(tell)
        said = accepted(root)
        found = [_past(index, *machine, said) for machine in index.machines()]
        judged = iter(trends([series for _, every in found for series in every]))
        pasts = (replace(past, trends=tuple(next(judged) for _ in every)) for past, every in found)
        return History(root, tuple(pasts), tuple(index.notes))


def _past(
    index: Index, machine: int, fingerprint: str, name: str, said: Iterable[Accepted]
) -> tuple[Past, list[Series]]:
    """What is to be judged, and where that will go."""
    runs = index.runs(machine)
    places = {row.id: place for place, row in enumerate(runs)}
    series: dict[str, list[tuple[int, float]]] = {}
    for run, point_name, _, efficiency, *_ in index.results(machine):
        if run in places:
            series.setdefault(point_name, []).append((places[run], efficiency))
    by_run = {row.run: place for place, row in enumerate(runs)}
    steps = {(point_name, by_run[each.run]) for each in said if each.run in by_run for point_name in each.points}
    every = [_series(point_name, sorted(values), steps) for point_name, values in series.items()]
    own = tuple(each for each in said if each.run in by_run)
    return Past(fingerprint, name, tuple(map(_ran, runs)), (), _short(index, series), own), every


def _series(name: str, values: list[tuple[int, float]], steps: set[tuple[str, int]]) -> Series:
    runs, efficiency = zip(*values, strict=True)
    return Series(name, runs, efficiency, frozenset(run for run in runs if (name, run) in steps))


def _ran(row: RunRow) -> Ran:
    return Ran(row.run, row.created, row.suite, row.build, row.environment, row.path)


def _short(index: Index, names: Iterable[str]) -> dict[str, str]:
    return short_names(point(each) for each in index.points(names).values())


def place(root: Path, run: Path, tell: _Tell) -> tuple[Path, str]:
    """Copy a run below the root: where to, and what it is. A copy of it that is there already is replaced."""
    with RunDirectory.open(run) as found:
        name = found.manifest.run
        found.machine()  # what cannot be read is not copied
    source = Path(os.path.realpath(run))  # resolve() minds links that lead to themselves
    if source.is_relative_to(os.path.realpath(root)):
        return run, name
    root.mkdir(parents=True, exist_ok=True)
    with Index(root) as index:
        index.update(tell)
        there = index.where(name)
    to = there or root / source.name
    if not there and to.exists():
        raise BadArgument(f"{to} holds something else already", f"rename {run}, or take it away")
    keep(run, to)
    return to, name
