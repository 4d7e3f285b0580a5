"""Histories of made-up runs. Of each there is its summary; its journal is empty, so that a thousand
are soon there.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from kvbench.model import Point
from kvbench.store.manifest import to_json
from kvbench.store.summary import Result, Summary, stamp, write_summary
from tests.report.made import decodes
from tests.store.made import manifest

IDENTITY = {"suite": "s1", "build": "b1", "machine": "f00dcafe", "environment": "e1"}
BEGAN = datetime(2026, 1, 1, 3, 30, tzinfo=UTC)
TWIN = 20.0  # GB/s
LAUNCHES = 3


def points(count: int) -> list[Point]:
    return decodes([1024 * (number + 1) for number in range(count // 24 + 1)])[:count]


def flat(runs: int, points: int, level: float = 0.7) -> np.ndarray:
    """Efficiency of each run and point."""
    return np.full((runs, points), level)


def write(
    root: Path,
    efficiency: np.ndarray,
    noise: float = 0.025,
    seed: int = 1,
    first: int = 0,
    versions: Sequence[dict[str, str]] = (),
    **identity: Sequence[str],
) -> list[Path]:
    """A run directory for each row: one each day. NaN is a point that the run lacks. `noise`: of a
    launch, as a share.
    `versions` and `identity`: for each run.
    """
    chance = np.random.default_rng(seed)
    measured = points(efficiency.shape[1])
    asked = manifest(measured, LAUNCHES, 1, skips=())
    known, found = to_json(asked), []
    for number, shares in enumerate(efficiency):
        name, created = (
            f"run-{first + number:04}",
            (BEGAN + timedelta(days=first + number)).isoformat(),
        )
        facts = {"run": name, "created": created}
        facts |= {"versions": versions[number]} if versions else {}
        facts |= {"identity": IDENTITY | {key: values[number] for key, values in identity.items()}}
        path = root / name
        path.mkdir(parents=True)
        (path / "manifest.json").write_text(json.dumps(known | facts))
        (path / "journal.jsonl").touch()
        met = np.sort(shares * np.exp(chance.normal(0, noise, (LAUNCHES, len(shares)))), axis=0)
        results = (
            _result(point, *own)
            for point, own in zip(measured, met.T.tolist(), strict=True)
            if own[0] > 0
        )
        write_summary(path, Summary.of(replace(asked, **facts), stamp(path), results))
        found.append(path)
    return found


def _result(point: Point, low: float, share: float, high: float) -> Result:
    return Result(point, LAUNCHES, share, low, high, 0.001 / share, share * TWIN, "twin")


# Of stepped(): how many runs and points, and the places of points that step at run AT.
RUNS, POINTS, AT, FELL, ROSE = 30, 10, 20, 6, 2
STEPPED = f"run-{AT:04}"


def stepped(root: Path) -> None:
    """Runs with a step down and one up, at which the build changed."""
    shares = flat(RUNS, POINTS)
    shares[AT:, FELL] *= 0.9
    shares[AT:, ROSE] *= 1.1
    build, environment = ["b1"] * AT + ["b2"] * (RUNS - AT), ["e1"] * 25 + ["e2"] * (RUNS - 25)
    write(root, shares, build=build, environment=environment)
