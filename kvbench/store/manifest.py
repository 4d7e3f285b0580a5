"""What a run is: what was asked, what it measures, and what must still be the same when it is
resumed.

Names of points, by which records refer to them, are part of its format. So are the fields of plans
and records: one that comes after format 6 has a default, and a point's is silent in its name where
it has that (`later`). One format is read, the last.

1  manifest, journal, machine, summary, and a file for pyperf.
2  A line of the journal names its run. Limits of numbers stand at the fields, and a number that is
   none is null. A sample's time is `sample_time` in plans.
3  The axis prefetch is `schedule`: a point has the word that was asked for, a record the one that
   ran.
4  Schedules that nobody asked for are tuned: a plan has what was known, records what was seen.
5  Contrasts are visits of their own. Launches may be added until questions are decided; memory of
   a node and engines of peers came as later fields. Forms of a probe are programs of one visit.
6  One word for one thing: a record has `slices` in rotation (was `layers`), the schedule that `ran`
   (`schedule`), its `footprint` and `level`, which were computed anew by each reader (`along` went
   into it); a sample the `sample_time` that it was meant to take (`asked`); traffic `bytes_…`; a
   point the `order` of its blocks (`shuffle`). No probe has a `distance`, nor a name that says it.
   Plug-ins are a list, and models and engines are always there. Later: `line` of a manifest, the
   fastest kernels of all dtypes, and `members` of its records; every decode from memory has a
   program `memory`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from kvbench.model import Contrast, Engine, Plan, Skip
from kvbench.model.annotated import Number
from kvbench.model.contrast import NoLine
from kvbench.model.point import Visited
from kvbench.store.values import plain, read

FORMAT = 6
MOST_LAUNCHES = 100  # that --target-ci adds up to
# in `versions`: of the sources around the run, where these are known
COMMIT = ("commit", "branch", "message")
# launches: --until-decided adds up to twice as many as planned, but to these at least and at most
_TWICE = (14, 20)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of it but the line is known before anything is measured. A resumption may change the
    launches, and when to stop.

    `versions` also names the host as pyperf does, where it has these keys: hostname, platform,
    python_version, cpu_model_name.
    """

    run: str
    created: str  # ISO, with its zone
    suite: str
    question: str
    plan: Plan
    skips: tuple[Skip, ...]
    options: dict[str, Any]  # as asked on the command line
    identity: dict[str, str]  # digests of what must be the same to resume
    versions: dict[str, str]
    command: str
    forecast: dict[str, Number]
    models: tuple[str, ...]  # that were asked for by name
    engines: tuple[Engine, ...]  # whose kernels stand beside ours
    format: int = FORMAT
    # The fastest kernels of all dtypes, timed side by side after the planned launches; or why there
    # are none. Chosen from what these have measured: before, neither is there.
    line: Contrast | None = None
    no_line: NoLine = NoLine.NONE

    @property
    def has_line(self) -> bool:
        """Whether there is a line; before it is chosen, whether one is expected."""
        return bool(self.line or not self.no_line and self.forecast.get("line"))

    @property
    def zone(self) -> tzinfo | None:
        return datetime.fromisoformat(self.created).tzinfo

    @property
    def most_launches(self) -> int:
        """That it can have, with those of the line, and those that --target-ci or --until-decided
        adds.
        """
        added = MOST_LAUNCHES if self.options.get("target_ci") else self.looks
        return max(self.plan.launches * (2 if self.line else 1), added)

    @property
    def looks(self) -> int:
        """The most launches, where it is looked after each whether questions are open; else 0.
        Bounds are exact for no more than 20.
        """
        least, most = _TWICE
        wanted = min(max(2 * self.plan.launches, least), most)
        return wanted if self.options.get("until_decided") and wanted > self.plan.launches else 0

    def named(self) -> dict[str, Visited]:
        """The points, and the line, by the names that records have for them."""
        every = (*self.plan.points, *([self.line] if self.line else []))
        return {point.name: point for point in every}

    def refuse_foreign(self, facts: Mapping[str, Any]) -> None:
        """ValueError where a line of the journal, or another file of the directory, is of another
        run, or of a launch that this one cannot have.
        """
        if (run := facts.get("run")) != self.run:
            raise ValueError(f"it is of run {str(run)[:60]!r}, and this is run {self.run!r}")
        launch = facts.get("launch", 0)
        if type(launch) is not int or not 0 <= launch < self.most_launches:
            raise ValueError(
                f"launch {str(launch)[:60]} is none of this run, which has {self.most_launches}"
                " from 0 on"
            )


def to_json(manifest: Manifest) -> dict[str, Any]:
    """The plan's `run` is left to the manifest's own."""
    facts: dict[str, Any] = plain(manifest)
    del facts["plan"]["run"]
    return {"format": facts.pop("format")} | facts


def from_json(facts: Any) -> Manifest:
    """ValueError where it is none, or nothing could be measured with it."""
    found = read(dict[str, Any], facts).get("format")
    if found != FORMAT:
        raise ValueError(
            f"format is {str(found)[:20]}, and this version of kvbench reads format {FORMAT}"
        )
    manifest = read(Manifest, facts)
    if not manifest.run:
        raise ValueError("run is empty")
    try:
        zoned = manifest.zone is not None
    except ValueError:
        zoned = False
    if not zoned:
        raise ValueError(f"created: {manifest.created[:40]!r} is no time with its zone")
    seen: set[str] = set()
    for index, point in enumerate(manifest.plan.points):
        if {".", "/"} & set("".join(point.words)):  # two points would have one name
            raise ValueError(
                f"plan.points[{index}]: {point.kernel[:60]!r} has a word with '.' or '/' in it"
            )
        if point.name in seen:
            raise ValueError(f"plan.points: {point.name} is there twice")
        seen.add(point.name)
    if manifest.line and (unknown := {p.name for p in manifest.line.points} - seen):
        raise ValueError(f"line: {min(unknown)} is none of plan.points")
    return replace(manifest, plan=replace(manifest.plan, run=manifest.run))
