"""The manifest: what was asked, what is measured, and what must stay the same to resume a run.

Names of points, by which records refer to them, are part of the format. So are the fields of plans
and records. A field added after format 6 has a default, and a point's name omits it at that default
(`later`). Only the last format is read.

1  manifest, journal, machine, summary, and a file for pyperf.
2  A line of the journal names its run. Limits of numbers stand at the fields. NaN is null. A
   sample's time is `sample_time` in plans.
3  The axis prefetch is `schedule`: a point has the word that was asked for, a record the word that
   ran.
4  Schedules that nobody asked for are tuned: a plan has the earlier evidence, records the new one.
5  Contrasts are visits of their own. Launches may be added until questions are decided. Memory of
   a node and engines of peers came as later fields. Forms of a probe are programs of one visit.
6  One word for one thing: a record has `slices` in rotation (was `layers`), the schedule that `ran`
   (`schedule`), its `footprint` and `level`, which each reader had computed (`along` was merged);
   a sample the `sample_time` that it was meant to take (`asked`); traffic `bytes_…`; a point the
   `order` of its blocks (`shuffle`). Probes have no `distance`, nor does their name. Plug-ins are a
   list; models and engines are always present. Later: `line` of a manifest, the fastest kernels of
   all dtypes, and `members` of its records; a decode from memory has a program `memory`.
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
MOST_LAUNCHES = 100  # up to which --target-ci adds launches
# keys in `versions`, for the sources around the run if known
COMMIT = ("commit", "branch", "message")
# --until-decided adds up to twice the planned launches, but to at least and at most these numbers
_TWICE = (14, 20)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The facts of a run. All but the line is known before anything is measured. Resuming may
    change the number of launches, and when to stop.

    `versions` also describes the host under pyperf's names, if known: hostname, platform,
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
    models: tuple[str, ...]  # asked for by name
    engines: tuple[Engine, ...]  # with kernels beside ours
    format: int = FORMAT
    # The fastest kernels of all dtypes, timed side by side after the planned launches; or why there
    # is no line. Both are unset until the planned launches are measured.
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
        """The most launches that the run can have, with the line's and those that --target-ci or
        --until-decided adds.
        """
        added = MOST_LAUNCHES if self.options.get("target_ci") else self.looks
        return max(self.plan.launches * (2 if self.line else 1), added)

    @property
    def looks(self) -> int:
        """The most launches if open questions are counted after each launch; else 0. The bounds are
        exact for up to 20 launches.
        """
        least, most = _TWICE
        wanted = min(max(2 * self.plan.launches, least), most)
        return wanted if self.options.get("until_decided") and wanted > self.plan.launches else 0

    def named(self) -> dict[str, Visited]:
        """The points and the line by the names that records use."""
        every = (*self.plan.points, *([self.line] if self.line else []))
        return {point.name: point for point in every}

    def refuse_foreign(self, facts: Mapping[str, Any]) -> None:
        """Raise ValueError if a line of the journal, or another file of the directory, is of
        another run, or of a launch that this run cannot have.
        """
        if (run := facts.get("run")) != self.run:
            raise ValueError(f"it is of run {str(run)[:60]!r}, but this is run {self.run!r}")
        launch = facts.get("launch", 0)
        if type(launch) is not int or not 0 <= launch < self.most_launches:
            raise ValueError(
                f"launch {str(launch)[:60]} is not in this run, which has {self.most_launches}"
                " from 0 on"
            )


def to_json(manifest: Manifest) -> dict[str, Any]:
    """Convert to JSON. The plan's `run` is left out: the manifest has it."""
    facts: dict[str, Any] = plain(manifest)
    del facts["plan"]["run"]
    return {"format": facts.pop("format")} | facts


def from_json(facts: Any) -> Manifest:
    """Read a manifest. Raises ValueError if it is not one, or nothing could be measured with it."""
    found = read(dict[str, Any], facts).get("format")
    if found != FORMAT:
        raise ValueError(
            f"format is {str(found)[:20]}, but this version of kvbench reads format {FORMAT}"
        )
    manifest = read(Manifest, facts)
    if not manifest.run:
        raise ValueError("run is empty")
    try:
        zoned = manifest.zone is not None
    except ValueError:
        zoned = False
    if not zoned:
        raise ValueError(f"created: {manifest.created[:40]!r} is not a time with its zone")
    seen: set[str] = set()
    for index, point in enumerate(manifest.plan.points):
        if {".", "/"} & set("".join(point.words)):  # two points would have the same name
            raise ValueError(
                f"plan.points[{index}]: {point.kernel[:60]!r} has a word with '.' or '/' in it"
            )
        if point.name in seen:
            raise ValueError(f"plan.points: {point.name} occurs twice")
        seen.add(point.name)
    if manifest.line and (unknown := {p.name for p in manifest.line.points} - seen):
        raise ValueError(f"line: {min(unknown)} is not in plan.points")
    return replace(manifest, plan=replace(manifest.plan, run=manifest.run))
