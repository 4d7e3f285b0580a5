"""Everything that a run found, as JSON."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pandas as pd
from msgspec import Meta

from kvbench.analysis.answers import Answers
from kvbench.analysis.answers.l3 import Fits
from kvbench.analysis.differs.contrasts import CONTRAST
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.models import TOKENS
from kvbench.analysis.measured.columns import FOUND, POINT, row, text
from kvbench.analysis.measured.machines import CeilingRow, ceiling_row
from kvbench.analysis.measured.scaling import SATURATION
from kvbench.analysis.measured.schedules import SCHEDULES
from kvbench.model import Check, Machine, Skip
from kvbench.model.annotated import about
from kvbench.report.words.gaps import gaps
from kvbench.store import Manifest
from kvbench.texts import table_csv

PointFacts: Any = row("PointFacts", POINT | FOUND | {"short": text("its name for people")})
Pair: Any = row("Pair", CONTRAST)
ThreadsStep: Any = row("ThreadsStep", SATURATION)
Tokens: Any = row("Tokens", TOKENS)
ScheduleRow: Any = row("ScheduleRow", SCHEDULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of a run."""

    version: Annotated[
        Literal[3],
        about(
            "of this format, 3: `answers` have what `diagnosis` and `overall` had; no list"
            " `scaling`; `fits` are of one model, by arithmetic; since 2 no list `breakeven`, no"
            " `distance` of a ceiling; of points `order`, was `shuffle`, `slices` in rotation,"
            " `layers` as asked for, and `bytes_compulsory`, `bytes_issued`, `bytes_line`; keys may"
            " be added, none is dropped"
        ),
    ] = 3
    run: Annotated[str, about("name of the run")]
    suite: Annotated[str, about("name of the suite")]
    created: Annotated[str, about("when the run began, ISO 8601")]
    command: Annotated[str, about("the command that measured the run")]
    seed: Annotated[int, about("seed of the order of the visits")]
    identity: Annotated[dict[str, str], about("digests that must be equal to resume the run")]
    versions: Annotated[
        dict[str, str], about("versions of kvbench, its library, Python and the system")
    ]
    missing: Annotated[tuple[str, ...], about("what was not measured, and why")]
    answers: Annotated[Answers, about("the answer of the run to each question")]
    fingerprint: Annotated[str, about("digest of the hardware")]
    environment: Annotated[str, about("digest of settings that an administrator can change")]
    topology: Annotated[Machine, about("description of the machine")]
    preflight: Annotated[tuple[Check, ...], about("the checks of kvbench doctor, before the run")]
    ceilings: Annotated[tuple[CeilingRow, ...], about("rates that the run's probes reached")]
    points: Annotated[list[PointFacts], about("all facts on each point")]
    contrasts: Annotated[list[Pair], about("points compared in the same rounds")]
    saturation: Annotated[list[ThreadsStep], about("rates by number of threads")]
    tokens: Annotated[list[Tokens], about("tokens per second at most, from memory")]
    fits: Annotated[tuple[Fits, ...], about("how many tokens fit in L3, by dtype")]
    schedules: Annotated[
        list[ScheduleRow], about("schedules chosen by measurement, by class of points")
    ]
    skips: Annotated[tuple[Skip, ...], about("combinations of the suite that were not measured")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """The results of several runs."""

    version: Annotated[Literal[3], about("version of this format, and of each of `runs`")] = 3
    runs: Annotated[
        tuple[Report, ...], about("the runs, in the order they were named"), Meta(min_length=2)
    ]


_MANIFEST = ("suite", "created", "command", "identity", "versions", "skips")
_TABLES = (
    "points",
    "contrasts",
    "saturation",
    "tokens",
    "schedules",
)


def report(found: Findings, manifest: Manifest) -> Report:
    """The results of a run. Unknown values are None."""
    return Report(
        run=found.run,
        **{name: getattr(manifest, name) for name in _MANIFEST}
        | {name: rows_of(getattr(found, name)) for name in _TABLES},
        seed=manifest.plan.seed,
        missing=tuple(gaps(found, manifest)),
        answers=found.answers,
        fits=found.answers.l3.fits,
        fingerprint=found.machine.fingerprint,
        environment=found.machine.environment,
        topology=found.machine,
        preflight=found.checks,
        ceilings=tuple(map(ceiling_row, found.ceilings)),
    )


def points(studies: Sequence[Findings]) -> str:
    """The points of all runs, as CSV."""
    tables = [found.points.assign(run=found.run) for found in studies]
    table = pd.concat(tables, ignore_index=True)
    return table_csv(table[["run", *table.columns.drop("run")]])


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A dictionary for each row. Numbers keep all digits. Unknown and infinite values are None."""
    names = list(map(str, table.columns))
    columns = [[_value(each) for each in table[name].tolist()] for name in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _value(each: Any) -> Any:
    if isinstance(each, float):
        return float(each) if math.isfinite(each) else None
    return None if each is pd.NA or each is pd.NaT else each
