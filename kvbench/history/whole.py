"""The judged history of every machine below a folder."""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from kvbench.analysis.differs.trend import (
    LIMITS,
    Accepted,
    Past,
    Ran,
    Series,
    refuse_without_ruptures,
    trends,
)
from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.analysis.judge import groups, of_family
from kvbench.analysis.measured.columns import names as short_names
from kvbench.errors import BadArgument, Unwritable
from kvbench.grouping import grouped
from kvbench.history.accepted import PATTERNS, accepted
from kvbench.history.reading import Tell, below, summaries, summarized
from kvbench.model import Point
from kvbench.store import RunDirectory, keep
from kvbench.store.files import within, writing
from kvbench.store.locks import locked
from kvbench.store.manifest import COMMIT
from kvbench.store.summary import Summary, read_summary, write_summary
from kvbench.texts import csv_text
from kvbench.units import GB

_AGAIN = "then add it again"
_WHO = ("run", "created", "suite", "build", "environment")


@dataclass(frozen=True, slots=True)
class History:
    """The histories of all machines. `pasts`: one for each machine, most runs first. `notes`: what
    was left out, and why. `summaries`: of the runs, by folder below the root.
    """

    root: Path
    pasts: tuple[Past, ...]
    notes: tuple[str, ...]
    summaries: Mapping[str, Summary]

    def only(self, pattern: str | None, machine: str | None) -> "History":
        """The history of these points and this machine only. All were judged together before, so
        the choice changes no verdict.
        """
        kept = [past for past in self.pasts if past.fingerprint.startswith(machine or "")]
        if machine and not kept:
            known = ", ".join(past.fingerprint for past in self.pasts) or "none"
            raise BadArgument(
                f"--machine: no run is of machine {machine!r}", f"the fingerprints here: {known}"
            )
        if pattern:
            kept = [past.only(pattern) for past in kept]
            if self.pasts and not any(past.trends for past in kept):
                raise BadArgument(f"--point: no point of these runs is named {pattern!r}", PATTERNS)
        return replace(self, pasts=tuple(kept))


def load(root: Path, tell: Tell) -> History:
    if sum(1 for _ in below(root)) >= 2 * LIMITS.least:  # fewer runs cannot show a step
        refuse_without_ruptures()
    found, notes = summaries(root, tell)
    said = accepted(root)
    machines = grouped((summary.machine, (summary, path)) for path, summary in found.items())
    ordered = sorted(machines.values(), key=lambda runs: (-len(runs), runs[0][0].machine))
    pasts = [
        _past(sorted(runs, key=lambda run: (run[0].began, run[0].run)), said) for runs in ordered
    ]
    points = iter(trends([series for _, own, _ in pasts for series in own]))
    families = iter(trends([series for _, _, own in pasts for series in own]))
    judged = (
        replace(
            past,
            trends=tuple(next(points) for _ in each),
            families=tuple(next(families) for _ in wider),
        )
        for past, each, wider in pasts
    )
    return History(root, tuple(judged), tuple(notes), found)


def _past(
    runs: Sequence[tuple[Summary, str]], said: Iterable[Accepted]
) -> tuple[Past, list[Series], list[Series]]:
    """One machine's runs in order of time, and its series to judge: points, and families."""
    points: dict[str, Point] = {}
    values: dict[str, list[tuple[int, float, str]]] = {}
    for place, (summary, _) in enumerate(runs):
        for result in summary.results:
            name = result.point.name
            points.setdefault(name, result.point)
            values.setdefault(name, []).append((place, result.efficiency, result.ran))
    places = {summary.run: place for place, (summary, _) in enumerate(runs)}
    own = tuple(each for each in said if each.run in places)
    steps = {(name, places[each.run]) for each in own for name in each.points}
    ran = tuple(
        Ran(path=path, **{name: getattr(s, name) for name in (*_WHO, *COMMIT)}) for s, path in runs
    )
    latest = runs[-1][0]
    series = []
    for name in sorted(values):
        runs, efficiency, schedules = zip(*values[name], strict=True)
        of_point = frozenset(run for run in runs if (name, run) in steps)
        series.append(Series(name, runs, efficiency, of_point, schedules))
    members = grouped((name, each) for each in series for name in groups(points[each.point]))
    # fewer have no median
    wide = {name: own for name, own in members.items() if len(own) >= JUDGED.members}
    families = [each for name, own in wide.items() if (each := _together(name, own, steps)).runs]
    names = short_names(points.values()) | {each.point: each.point for each in families}
    return Past(latest.machine, latest.name, ran, (), names, points, own), series, families


def _together(name: str, members: Sequence[Series], steps: Container[tuple[str, int]]) -> Series:
    """The series of a family: in each run that has most of its members, the median of their
    efficiency over their usual efficiency.
    """
    usual = [median(each.efficiency) for each in members]
    shares = [
        dict(zip(e.runs, (own / u for own in e.efficiency), strict=True))
        for e, u in zip(members, usual, strict=True)
    ]
    found = {run: share * median(usual) for run, share in sorted(of_family(shares).items())}
    accepted = frozenset(run for run in found if (name, run) in steps)
    return Series(
        name,
        tuple(found),
        tuple(found.values()),
        accepted,
        smallest=LIMITS.family,
        members=tuple(members),
    )


def place(root: Path, run: Path, tell: Tell) -> tuple[Path, str]:
    """Copy a run below the root, replacing an older copy. Returns the folder, and what the run
    is.
    """
    with RunDirectory.open(run) as found:
        name = found.manifest.run
        found.machine()  # an unreadable run is not copied
    to, source = run, Path(os.path.realpath(run))  # resolve() fails on a link to itself
    if not source.is_relative_to(os.path.realpath(root)):
        # two runs in folders of the same name never take the same place
        with writing(root, _AGAIN), within(root), locked(root):
            to = _copied(root, run, source.name, name, tell)
    if not read_summary(to):
        with suppress(Unwritable):  # without a summary, its journal is read each time
            write_summary(to, summarized(to))
    return to, name


def _copied(root: Path, run: Path, folder: str, name: str, tell: Tell) -> Path:
    """Copy a run. `folder`: its name below the root, unless a copy of the run exists there
    already.
    """
    there = next(
        (root / path for path, own in summaries(root, tell)[0].items() if own.run == name), None
    )
    to = there or root / folder
    if not there and to.exists():
        raise BadArgument(f"{to} holds something else already", f"rename {run}, or remove {to}")
    keep(run, to, _AGAIN)
    return to


_NUMBERS = ("launches", "efficiency", "low", "high", "seconds")


def exported(history: History) -> str:
    """All results as CSV, a row each. `efficiency`: the point's rate over its witness's. `seconds`:
    of a pass.
    """
    rows = []
    for past in history.pasts:
        wanted = {trend.series.point for trend in past.trends}
        for summary in (history.summaries[ran.path] for ran in past.runs):
            who = (past.fingerprint, *(getattr(summary, name) for name in _WHO))
            for each in sorted(summary.results, key=lambda each: each.point.name):
                if (name := each.point.name) in wanted:
                    numbers = (getattr(each, column) for column in _NUMBERS)
                    rows.append(
                        (summary.began, (*who, name, *numbers, each.gbps * GB, each.witness))
                    )
    rows.sort(key=lambda row: row[0])  # by time over all machines; then by name
    heads = ("machine", *_WHO, "point", *_NUMBERS, "bytes_per_second", "witness")
    return csv_text([heads, *(cells for _, cells in rows)])
