"""All that is found out about a run, once: what every form of a report shows."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from kvbench.analysis import frames
from kvbench.analysis.breakeven import breakeven
from kvbench.analysis.ceilings import ceilings
from kvbench.analysis.contrasts import FACTORS, contrasts, overall
from kvbench.analysis.diagnosis import Sentence, diagnosis
from kvbench.analysis.models import Geometry, fits, tokens
from kvbench.analysis.names import short_names
from kvbench.analysis.saturation import saturation
from kvbench.analysis.scaling import scaling
from kvbench.model import Ceiling, Check, Machine, Record
from kvbench.units import cpu_text


@dataclass(frozen=True, slots=True)
class Findings:
    """`points` has a short name for each of its rows, and their numbers are what figures know points by."""

    run: str
    launches: int  # of which there are records
    machine: Machine
    cpu_sets: dict[str, tuple[int, ...]]  # by what the tables have
    checks: tuple[Check, ...]
    ceilings: tuple[Ceiling, ...]
    points: pd.DataFrame
    samples: pd.DataFrame
    scaling: pd.DataFrame
    contrasts: pd.DataFrame  # of every factor
    overall: pd.DataFrame
    saturation: pd.DataFrame
    tokens: pd.DataFrame
    fits: pd.DataFrame
    breakeven: pd.DataFrame
    diagnosis: tuple[Sentence, ...]


def findings(
    run: str,
    records: Sequence[Record],
    machine: Machine,
    checks: Sequence[Check] = (),
    models: Sequence[Geometry] = (),
) -> Findings:
    """`records`: those of one run. `models`: those whose shapes points may have."""
    own = ceilings(records, machine)
    cpu_sets = {cpu_text(cpus): cpus for cpus in {record.point.cpus for record in records}}
    points = frames.points(records, machine, own)
    points = points.assign(short=short_names(points))
    pairs = pd.concat([contrasts(records, points, factor) for factor in FACTORS], ignore_index=True)
    lines = scaling(records, points)
    tables = {
        "scaling": lines,
        "overall": overall(pairs),
        "saturation": saturation(points),
        "tokens": tokens(points, models),
        "fits": fits(points, machine, models, cpu_sets),
        "breakeven": breakeven(points, lines),
    }
    return Findings(
        run=run,
        launches=len({record.launch for record in records}),
        machine=machine,
        cpu_sets=cpu_sets,
        checks=tuple(checks),
        ceilings=own,
        points=points,
        samples=frames.samples(records),
        contrasts=pairs,
        **tables,
        diagnosis=diagnosis(points, machine, checks, **tables),
    )
