"""The history of every machine below a folder, judged."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from kvbench.analysis.differs.trend import Accepted, Past, Ran, Series, Trend, trends
from kvbench.analysis.measured.columns import names as short_names
from kvbench.errors import BadArgument, Unwritable
from kvbench.history.accepted import accepted, add, find
from kvbench.history.reading import Tell, summaries, summarized
from kvbench.model import Point
from kvbench.store import RunDirectory, keep
from kvbench.store.summary import Summary, read_summary, write_summary

_PATTERNS = "patterns are as of a shell, such as 'decode.*.i8.*'; kvbench history show lists the points"


@dataclass(frozen=True, slots=True)
class History:
    """`pasts`: of each machine, the one with most runs first. `notes`: what was left out, and why. `summaries`: of the
    runs, by their folders below the root."""

    root: Path
    pasts: tuple[Past, ...]
    notes: tuple[str, ...]
    summaries: Mapping[str, Summary]

    def only(self, pattern: str | None, machine: str | None) -> "History":
        """These points and this machine alone: all were judged together, so no choice changes what is said of one."""
        kept = [past for past in self.pasts if past.fingerprint.startswith(machine or "")]
        if machine and not kept:
            known = ", ".join(past.fingerprint for past in self.pasts) or "none"
            raise BadArgument(f"--machine: no run is of machine {machine!r}", f"the fingerprints here: {known}")
        if pattern:
            kept = [replace(past, trends=named(past, pattern)) for past in kept]
            if self.pasts and not any(past.trends for past in kept):
                raise BadArgument(f"--point: no point of these runs is named {pattern!r}", _PATTERNS)
        return replace(self, pasts=tuple(kept))


def named(past: Past, pattern: str) -> tuple[Trend, ...]:
    """By a point's whole name, or by the short one that tables have."""
    both = {trend: (trend.series.point, past.names[trend.series.point]) for trend in past.trends}
    return tuple(trend for trend, names in both.items() if any(fnmatchcase(name, pattern) for name in names))


def accept(history: History, pattern: str, run: str, reason: str, who: str) -> tuple[Accepted, ...]:
    """The open steps at this run, or next to it, of the points that the pattern names."""
    past, place = find(history.pasts, history.root, run)
    if not (trends := named(past, pattern)):
        raise BadArgument(f"no point of these runs is named {pattern!r}", _PATTERNS)
    none = f"no point named {pattern!r} has an open step at run {run}"
    return add(history.root, past, trends, place, reason, who, none)


def load(root: Path, tell: Tell) -> History:
    found, notes = summaries(root, tell)
    said = accepted(root)
    machines: dict[str, list[tuple[Summary, str]]] = {}
    for path, summary in found.items():
        machines.setdefault(summary.machine, []).append((summary, path))
    ordered = sorted(machines.values(), key=lambda runs: (-len(runs), runs[0][0].machine))
    past = [_past(sorted(runs, key=lambda run: (run[0].began, run[0].run)), said) for runs in ordered]
    judged = iter(trends([series for _, every in past for series in every]))
    pasts = tuple(replace(own, trends=tuple(next(judged) for _ in every)) for own, every in past)
    return History(root, pasts, tuple(notes), found)


def _past(runs: Sequence[tuple[Summary, str]], said: Iterable[Accepted]) -> tuple[Past, list[Series]]:
    """One machine's runs in the order of time: what is to be judged, and where that will go."""
    points: dict[str, Point] = {}
    values: dict[str, list[tuple[int, float, str]]] = {}
    for place, (summary, _) in enumerate(runs):
        for result in summary.results:
            name = result.point.name
            points.setdefault(name, result.point)
            values.setdefault(name, []).append((place, result.efficiency, result.schedule))
    places = {summary.run: place for place, (summary, _) in enumerate(runs)}
    own = tuple(each for each in said if each.run in places)
    steps = {(name, places[each.run]) for each in own for name in each.points}
    ran = tuple(Ran(s.run, s.created, s.suite, s.build, s.environment, path) for s, path in runs)
    latest = runs[-1][0]
    series = []
    for name in sorted(values):
        runs, efficiency, schedules = zip(*values[name], strict=True)
        of_point = frozenset(run for run in runs if (name, run) in steps)
        series.append(Series(name, runs, efficiency, of_point, schedules))
    return Past(latest.machine, latest.name, ran, (), short_names(points.values()), points, own), series


def place(root: Path, run: Path, tell: Tell) -> tuple[Path, str]:
    """Copy a run below the root: where to, and what it is. A copy of it that is there already is replaced."""
    with RunDirectory.open(run) as found:
        name = found.manifest.run
        found.machine()  # what cannot be read is not copied
    to, source = run, Path(os.path.realpath(run))  # resolve() minds links that lead to themselves
    if not source.is_relative_to(os.path.realpath(root)):
        root.mkdir(parents=True, exist_ok=True)
        there = next((root / path for path, own in summaries(root, tell)[0].items() if own.run == name), None)
        to = there or root / source.name
        if not there and to.exists():
            raise BadArgument(f"{to} holds something else already", f"rename {run}, or take it away")
        keep(run, to)
    if not read_summary(to):
        with suppress(Unwritable):  # then its journal is read each time
            write_summary(to, summarized(to))
    return to, name
