"""A run that was measured, as tables."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from kvbench.analysis import frames
from kvbench.analysis.summary import Summary, summary
from kvbench.errors import BadArgument, BadRun
from kvbench.model import Machine, Record
from kvbench.store import Manifest, RunDirectory, machine

_FRAMES = ("points", "samples")


@dataclass(frozen=True, slots=True)
class Run:
    """`path` is the run directory. `records`: one for each visit."""

    path: Path
    manifest: Manifest
    machine: Machine
    records: tuple[Record, ...]

    def frame(self, name: str) -> pd.DataFrame:
        """ "points", a row for each, or "samples", a row for every sample of every program."""
        if name not in _FRAMES:
            raise BadArgument(f"there is no table {name!r}", f"one of: {', '.join(_FRAMES)}")
        return frames.points(self.records, self.machine) if name == "points" else frames.samples(self.records)

    def summary(self) -> Summary:
        launches = len({record.launch for record in self.records})
        return summary(self.frame("points"), self.machine, self.manifest.run, launches)


def load(path: Path | str) -> Run:
    """A run directory, finished or not. A run may still be measuring into it."""
    with RunDirectory.open(path) as directory:
        facts = directory.machine()
        if facts is None:
            raise BadRun(f"{path} has no machine.json yet", "resume the run: kvbench sweep --resume")
        try:
            found = machine(facts.get("topology"))
        except ValueError as error:
            raise BadRun(f"{path}/machine.json: {error}", "the file was damaged; --resume writes it anew") from None
        return Run(Path(path), directory.manifest, found, tuple(directory.records))
