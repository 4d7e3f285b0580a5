"""What a history needs of a run directory, read as fast as can be: of a line of the journal only what a rate is formed
with is looked at, and that as strictly as anywhere."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvbench.analysis.launches import Measured, Visit, of_visits
from kvbench.model import Point, Probe
from kvbench.store import Manifest
from kvbench.store.files import read_json, reading, short
from kvbench.store.journal import lines
from kvbench.store.manifest import from_json
from kvbench.store.run import FILES
from kvbench.store.values import ERROR, SECONDS

MANIFEST, JOURNAL = FILES[:2]
try:
    from orjson import loads  # which takes a quarter of the time: a year of runs is gigabytes
except ImportError:
    from json import loads

_CORE = "core"  # the program that no efficiency is a share of


@dataclass(frozen=True, slots=True)
class Result:
    """A point in a run. `efficiency`: its GB/s over its witness's, and two launches' that enclose it; `seconds`: of a
    pass. Medians of the launches."""

    point: Point
    launches: int
    efficiency: float
    low: float
    high: float
    seconds: float
    gbps: float
    witness: str


@dataclass(frozen=True, slots=True)
class Reading:
    manifest: Manifest
    results: tuple[Result, ...]


def read(path: Path) -> Reading:
    """A run directory, finished or not. BadRun where it is none."""
    with reading(path / MANIFEST):
        manifest = from_json(read_json(path / MANIFEST))
    points = {point.name: point for point in manifest.plan.points}
    with reading(path / JOURNAL):
        found = _measured(path / JOURNAL, points, manifest)
    return Reading(manifest, tuple(_results(points, found)))


def _results(points: Mapping[str, Point | Probe], found: Mapping[str, Measured]) -> Iterator[Result]:
    for name, each in found.items():
        if witness := each.witness:
            share, seconds = each.shares[witness], each.seconds["point"]
            facts = (share.median, share.low, share.high, seconds.median, each.rates["point"].median, witness)
            yield Result(points[name], share.launches, *facts)


# ---- the journal -----------------------------------------------------------------------------------------------------


def _measured(journal: Path, points: Mapping[str, Point | Probe], manifest: Manifest) -> dict[str, Measured]:
    """By the names of points. Probes and visits that failed are nothing here."""
    moved: dict[str, dict[str, float]] = {}
    visits: dict[str, list[tuple[int, Visit]]] = {}
    seen: set[tuple[int, str]] = set()
    for number, line in enumerate(lines(journal), 1):
        try:
            facts = loads(line)
            manifest.refuse_foreign(facts)
            name, launch = facts["point"], facts["launch"]
            if name not in points or (launch, name) in seen:
                raise ValueError(f"{str(name)[:60]!r} is no point of the run, or was visited before")
            seen.add((launch, name))
            if isinstance(points[name], Probe) or facts.get("error"):
                continue
            if not 0 <= facts["max_abs_err"] <= ERROR:
                raise ValueError(f"max_abs_err is {facts['max_abs_err']}")
            if "point" in (visit := _visit(facts["samples"])):
                visits.setdefault(name, []).append((launch, visit))
                moved.setdefault(name, _moved(facts["traffic"], visit))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"line {number} is no record: {type(error).__name__}: {short(error)}") from None
    return {name: of_visits(moved[name], own) for name, own in visits.items()}


def _visit(samples: list[dict[str, Any]]) -> Visit:
    found: Visit = {}
    for sample in samples:
        if (program := sample["program"]) == _CORE:
            continue
        seconds, passes = sample["seconds"], sample["passes"]
        if not (passes >= 1 and SECONDS[0] <= seconds <= SECONDS[1]):
            raise ValueError(f"a sample of {passes} passes in {seconds} s")
        found.setdefault(program, {})[sample["round"]] = seconds / passes
    return found


def _moved(traffic: dict[str, dict[str, float]], visit: Visit) -> dict[str, float]:
    """Compulsory bytes of a pass, by program."""
    found = {program: traffic[program]["compulsory"] for program in visit}
    if not all(0 < count < float("inf") for count in found.values()):
        raise ValueError("a program moves no byte")
    return found
