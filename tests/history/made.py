"""Histories of made-up runs: what a journal says is text with times put in, so that a thousand runs are soon there."""

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from kvbench.model import Point, Record
from kvbench.store.manifest import to_json
from kvbench.store.values import line
from tests.made_run import visit
from tests.report.made import decodes
from tests.store.made import manifest

PROGRAMS = ("point", "twin", "twin_ahead", "core")
IDENTITY = {"suite": "s1", "build": "b1", "machine": "f00dcafe", "environment": "e1"}
BEGAN = datetime(2026, 1, 1, 3, 30, tzinfo=UTC)
TWIN = 20.0  # GB/s
_FIELDS = [field.name for field in fields(Record) if field.name != "run"]
MARK = 123456.789  # seconds, in whose place others are put


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
    launches: int = 3,
    rounds: int = 3,
    first: int = 0,
    **identity: Sequence[str],
) -> list[Path]:
    """A run directory for each row: one each day. `noise`: of a launch, as a share. `identity`: for each run."""
    chance = np.random.default_rng(seed)
    measured = points(efficiency.shape[1])
    parts = [[_parts(point, launch, rounds) for point in measured] for launch in range(launches)]
    known = to_json(manifest(measured, launches, rounds, skips=()))
    found = []
    for number, shares in enumerate(efficiency):
        name = f"run-{first + number:04}"
        own = {key: values[number] for key, values in identity.items()}
        created = (BEGAN + timedelta(days=first + number)).isoformat()
        path = root / name
        path.mkdir(parents=True)
        facts = known | {"run": name, "created": created, "identity": IDENTITY | own}
        (path / "manifest.json").write_text(json.dumps(facts))
        met = shares * np.exp(chance.normal(0, noise, (launches, len(shares)))) if noise else [shares] * launches
        lines = (
            _line(name, part, share, rounds)
            for own, of in zip(parts, met, strict=True)
            for part, share in zip(own, of, strict=True)
        )
        (path / "journal.jsonl").write_text("".join(lines))
        found.append(path)
    return found


def _parts(point: Point, launch: int, rounds: int) -> list[str]:
    """The line of a visit, cut where the times of its samples go; and after each cut the seconds of 1 GB/s."""
    record = visit(
        launch, {program: [1.0] * rounds for program in PROGRAMS}, point, memory={"resident_bytes": 1, "huge_bytes": 0}
    )
    seconds = [sample.seconds for sample in record.samples]
    marked = replace(record, samples=tuple(replace(sample, seconds=MARK) for sample in record.samples))
    facts = {name: getattr(marked, name) for name in _FIELDS} | {"point": point.name}
    return [*line(facts).split(repr(MARK)), seconds]


def _line(run: str, parts: list, share: float, rounds: int) -> str:
    share = float(share)
    rates = [share * TWIN] * rounds + [TWIN] * rounds + [0.9 * TWIN] * rounds + [2.0 * TWIN] * rounds
    *texts, seconds = parts
    times = [repr(each / rate) for each, rate in zip(seconds, rates, strict=True)]
    text = "".join(text + time for text, time in zip(texts, [*times, "\n"], strict=True))
    return f'{{"run":{json.dumps(run)},{text[1:]}'
