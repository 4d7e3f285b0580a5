"""What a run is: what was asked, what it measures, and what must still be the same when it is resumed.

Formats of a run directory. Names of points, by which records refer to them, are part of each.

5  A plan may hold contrasts: points that are timed in the same rounds.
4  The plan held what earlier runs have seen of schedules, and a record what was measured to choose one.
3  A point has a schedule, the one that was asked for; a record says which one ran.
2  It had `prefetch` and `distance`, which stood in its name as one. A line of the journal names its run. What a
   resumption asks anew (launches, when to stop) is written here. The plan says sample_time, as suites do.
1  Lines name no run, a resumption left the manifest as it was, and the plan said seconds.

Older ones than the last are read, and no more written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from kvbench.model import Plan, Point, Skip
from kvbench.model.annotated import Number
from kvbench.model.point import Visited
from kvbench.store.values import plain, read

FORMAT = 5
MOST_LAUNCHES = 100  # that --target-ci adds up to
COMMIT = ("commit", "branch", "message")  # in `versions`: of the sources around the run, where these are known
_TWICE = (14, 20)  # launches: --until-decided adds up to twice as many as planned, but to these at least and at most


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of it is known before anything is measured. A resumption may change the launches, and when to stop.

    `versions` also names the host as pyperf does, where it has these keys: hostname, platform, python_version,
    cpu_model_name.
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
    models: tuple[str, ...] | None = None  # that were asked for by name; None: older runs do not say
    format: int = FORMAT

    @property
    def zone(self) -> tzinfo | None:
        return datetime.fromisoformat(self.created).tzinfo

    @property
    def most_launches(self) -> int:
        """That it can have, with those that --target-ci or --until-decided adds. Of format 1 nobody knows whether that
        was asked for."""
        added = self.format == 1 or self.options.get("target_ci")
        return max(self.plan.launches, MOST_LAUNCHES if added else self.looks)

    @property
    def looks(self) -> int:
        """The most launches, where it is looked after each whether questions are open; else 0. Bounds are exact for no more
        than 20."""
        least, most = _TWICE
        wanted = min(max(2 * self.plan.launches, least), most)
        return wanted if self.options.get("until_decided") and wanted > self.plan.launches else 0

    def named(self) -> dict[str, Visited]:
        """The points, by the names that records have for them."""
        called = _name_before_3 if self.format < 3 else lambda point: point.name
        return {called(point): point for point in self.plan.points}

    def refuse_foreign(self, facts: Mapping[str, Any]) -> None:
        """ValueError where a line of the journal, or another file of the directory, is of another run, or of a launch
        that this one cannot have."""
        if (run := facts.get("run", self.run if self.format == 1 else None)) != self.run:
            raise ValueError(f"it is of run {str(run)[:60]!r}, and this is run {self.run!r}")
        launch = facts.get("launch", 0)
        if type(launch) is not int or not 0 <= launch < self.most_launches:
            raise ValueError(f"launch {str(launch)[:60]} is none of this run, which has {self.most_launches} from 0 on")


def to_json(manifest: Manifest) -> dict[str, Any]:
    """The plan's `run` is left to the manifest's own."""
    facts = plain(manifest)
    del facts["plan"]["run"]
    return {"format": facts.pop("format")} | facts


def from_json(facts: Any) -> Manifest:
    """ValueError where it is none, or nothing could be measured with it."""
    found = read(dict[str, Any], facts).get("format")
    if type(found) is not int or not 1 <= found <= FORMAT:
        raise ValueError(f"format is {str(found)[:20]}, and this version of kvbench reads formats 1 to {FORMAT}")
    if found < FORMAT and isinstance(facts.get("plan"), dict):
        facts = facts | {"plan": _newer(facts["plan"])}
    manifest = read(Manifest, facts)
    _check(manifest)
    return replace(manifest, plan=replace(manifest.plan, run=manifest.run))


def _newer(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan of an older format with today's words beside those of then."""
    points = plan.get("points")
    if isinstance(points, list):
        points = [
            point | {"schedule": point["prefetch"]} if isinstance(point, dict) and "prefetch" in point else point
            for point in points
        ]
    return {"sample_time": plan.get("seconds")} | plan | {"points": points}


def _name_before_3(point: Visited) -> str:
    """Its prefetch scheme had the distance behind it, which was 0."""
    return replace(point, schedule=f"{point.schedule}0").name if isinstance(point, Point) else point.name


def _check(manifest: Manifest) -> None:
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
        if point.kernel.count(".") != 4 or "/" in point.kernel:  # two points would have one name
            raise ValueError(f"plan.points[{index}]: {point.kernel[:60]!r} has a word with '.' or '/' in it")
        if point.name in seen:
            raise ValueError(f"plan.points: {point.name} is there twice")
        seen.add(point.name)
