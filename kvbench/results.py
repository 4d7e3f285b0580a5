"""A measured run, as tidy tables and figures."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from kvbench.analysis.limits import frames
from kvbench.analysis.means.findings import Findings, findings
from kvbench.analysis.means.models import tokens
from kvbench.analysis.measured.machines import ceiling_row
from kvbench.errors import BadRun, unknown_word
from kvbench.model import OURS, Check, Engine, Machine, Point, Record
from kvbench.model.geometry import Geometry
from kvbench.store import Manifest, RunDirectory, read
from kvbench.suite.models import model as geometry
from kvbench.suite.models import models
from kvbench.texts import resume_command
from kvbench.units import counted, cpu_text

_FRAMES = ("points", "samples", "ceilings", "contrasts")


@dataclass(frozen=True, repr=False)
class Run:
    """A measured run. `path`: the run directory. `records`: one for each visit. `checks`: the
    preflight before the first visit.

    Tables: points, samples, ceilings, contrasts, tokens(). Figures: plot("hero"), plot("roofline"),
    ...
    """

    path: Path
    manifest: Manifest
    machine: Machine
    records: tuple[Record, ...]
    checks: tuple[Check, ...] = ()

    def frame(self, name: str) -> pd.DataFrame:
        """The table with this name."""
        if name not in _FRAMES:
            raise unknown_word("table", name, _FRAMES)
        return getattr(self, name)

    @cached_property
    def points(self) -> pd.DataFrame:
        """A row for each point, with all that is known of it."""
        return frames.points(self.records, self.machine, most=self.manifest.looks)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """A row for each sample of every program."""
        return frames.samples(self.records)

    @cached_property
    def ceilings(self) -> pd.DataFrame:
        """A row for each rate of the machine itself that the run measured: read, write, copy or
        FLOP.
        """
        rows = (asdict(ceiling_row(each)) for each in self.findings().ceilings)
        return pd.DataFrame(row | {"cpus": cpu_text(row["cpus"])} for row in rows).drop(
            columns="samples"
        )

    @cached_property
    def contrasts(self) -> pd.DataFrame:
        """A row for each pair of points that differ in one thing, with the ratio of their times."""
        return self.findings().contrasts

    def tokens(self, model: str | None = None) -> pd.DataFrame:
        """Tokens per second by layout, dtype and context, as if a step only read the cache: for the
        run's models, or for this model.
        """
        if model is None:
            return self.findings().tokens
        geometry(model)  # raises for an unknown model
        return tokens(self.points, geometries([model]))

    def plot(self, name: str) -> Any:
        """The Matplotlib axes of a figure of the report, the first if it has several. Their
        `figure` has all.
        """
        from kvbench.report.figures import every

        figures = {figure.name: figure for figure in every(self.findings())}
        if name not in figures:
            raise unknown_word("figure", name, figures)
        if figures[name].missing:
            raise BadRun(
                f"{self.path} has no {name}: {figures[name].missing}", "plot another figure"
            )
        return figures[name].canvas().axes[0]

    def findings(self) -> Findings:
        """All that a report shows."""
        return self._findings

    @cached_property
    def _findings(self) -> Findings:
        known, models = self.manifest, geometries(self.manifest.models)
        own = Engine(OURS, known.versions.get("kvbench", ""), known.plan.library, "")
        return findings(
            known.run,
            self.records,
            self.machine,
            self.checks,
            models,
            known.looks,
            (own, *known.engines),
        )

    def __repr__(self) -> str:
        points = {record.point for record in self.records if isinstance(record.point, Point)}
        launches = {record.launch for record in self.records}
        what = f"{counted(len(points), 'point')} in {counted(len(launches), 'launch')}"
        return f"<kvbench run {self.manifest.run} of {self.manifest.suite}: {what}, {self.path}>"


def load(path: Path | str) -> Run:
    """Load a run directory, finished or not. Another process may still be measuring into it."""
    with RunDirectory.open(path) as directory:
        facts = directory.machine()
        if facts is None:
            raise BadRun(
                f"{path} has no machine.json yet",
                f"resume the run: {resume_command('sweep', path)}",
            )
        try:
            found = read(Machine, facts.get("topology"))
        except ValueError as error:
            raise BadRun(
                f"{path}/machine.json: {error}", "the file was damaged; --resume writes it again"
            ) from None
        return Run(
            Path(path),
            directory.manifest,
            found,
            tuple(directory.records),
            _checks(facts.get("preflight")),
        )


def geometries(asked: Iterable[str]) -> tuple[Geometry, ...]:
    """The shapes of published models, by name."""
    known = models()
    return tuple(known[name] for name in asked if name in known)


def _checks(lines: Any) -> tuple[Check, ...]:
    """The preflight's checks; empty if they cannot be read, because a run is useful without
    them.
    """
    try:
        return read(tuple[Check, ...], lines)
    except ValueError:
        return ()
