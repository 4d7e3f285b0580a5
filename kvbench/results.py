"""A run that was measured, as tables."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from kvbench.analysis.limits import frames
from kvbench.analysis.means.findings import Findings, findings
from kvbench.analysis.means.models import Geometry
from kvbench.errors import BadArgument, BadRun
from kvbench.model import Check, Machine, Record
from kvbench.store import Manifest, RunDirectory, read
from kvbench.suite.models import models

_FRAMES = ("points", "samples")


@dataclass(frozen=True, slots=True)
class Run:
    """`path` is the run directory. `records`: one for each visit. `checks`: of the preflight before the first."""

    path: Path
    manifest: Manifest
    machine: Machine
    records: tuple[Record, ...]
    checks: tuple[Check, ...] = ()

    def frame(self, name: str) -> pd.DataFrame:
        """ "points", a row for each, or "samples", a row for every sample of every program."""
        if name not in _FRAMES:
            raise BadArgument(f"there is no table {name!r}", f"one of: {', '.join(_FRAMES)}")
        return (
            frames.points(self.records, self.machine, most=self.manifest.looks)
            if name == "points"
            else frames.samples(self.records)
        )

    def findings(self) -> Findings:
        """All that a report shows."""
        models = geometries(self.manifest.models)
        return findings(self.manifest.run, self.records, self.machine, self.checks, models, self.manifest.looks)


def load(path: Path | str) -> Run:
    """A run directory, finished or not. A run may still be measuring into it."""
    with RunDirectory.open(path) as directory:
        facts = directory.machine()
        if facts is None:
            raise BadRun(f"{path} has no machine.json yet", "resume the run: kvbench sweep --resume")
        try:
            found = read(Machine, facts.get("topology"))
        except ValueError as error:
            raise BadRun(f"{path}/machine.json: {error}", "the file was damaged; --resume writes it anew") from None
        return Run(Path(path), directory.manifest, found, tuple(directory.records), _checks(facts.get("preflight")))


def geometries(asked: Iterable[str] | None) -> tuple[Geometry, ...]:
    """The shapes of these published models; of all where nobody knows which were asked for."""
    keys, known = [field.name for field in fields(Geometry) if field.name != "name"], models()
    own = {name: known[name] for name in (known if asked is None else asked) if name in known}
    return tuple(Geometry(name, **{key: getattr(model, key) for key in keys}) for name, model in own.items())


def _checks(lines: Any) -> tuple[Check, ...]:
    """None where they cannot be read: a run is worth reading without them."""
    try:
        return read(tuple[Check, ...], lines)
    except ValueError:
        return ()
