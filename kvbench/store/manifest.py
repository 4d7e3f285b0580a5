"""What a run is: what was asked, what it measures, and what must still be the same when it is resumed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from kvbench.model import Plan, Skip
from kvbench.store.typed import as_object, read
from kvbench.store.values import as_json, checked, plain

FORMAT = 1  # of a run directory; names of points, by which records refer to them, are part of it


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of it is known before anything is measured, and never changes.

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
    forecast: dict[str, float]

    @property
    def zone(self) -> tzinfo | None:
        return datetime.fromisoformat(self.created).tzinfo


def to_json(manifest: Manifest) -> dict[str, Any]:
    """The plan's `run` is left to the manifest's own."""
    facts = plain(replace(manifest, skips=(), options={}))
    del facts["plan"]["run"]
    skips = [{"facts": as_json(skip.facts), "reason": skip.reason, "detail": skip.detail} for skip in manifest.skips]
    return {"format": FORMAT} | facts | {"skips": skips, "options": as_json(manifest.options)}


def from_json(facts: Any) -> Manifest:
    """ValueError where it is none, or nothing could be measured with it."""
    found = as_object(facts).get("format")
    if type(found) is not int or found != FORMAT:
        raise ValueError(f"format is {str(found)[:20]}, and this version of kvbench reads format {FORMAT}")
    manifest = read(Manifest, {key: value for key, value in facts.items() if key != "format"})
    _check(manifest)
    return replace(manifest, plan=replace(manifest.plan, run=manifest.run))


def _check(manifest: Manifest) -> None:
    plan = manifest.plan
    if not manifest.run:
        raise ValueError("run is empty")
    try:
        zoned = manifest.zone is not None
    except ValueError:
        zoned = False
    if not zoned:
        raise ValueError(f"created: {manifest.created[:40]!r} is no time with its zone")
    for name in ("launches", "samples", "seconds", "patience"):
        if not getattr(plan, name) > 0:
            raise ValueError(f"plan.{name} is not above 0")
    for index, point in enumerate(plan.points):
        try:
            checked(point)
        except ValueError as error:
            raise ValueError(f"plan.points[{index}].{error}") from None
    _check_names(point.name for point in plan.points)


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"plan.points: {name} is there twice")
        seen.add(name)
