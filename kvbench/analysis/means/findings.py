"""Compute everything that any form of a report shows about a run, once."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from kvbench.analysis.answers import Answers, answers
from kvbench.analysis.answers.pairs import pairs
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import workload
from kvbench.analysis.differs.questions import Open, questions
from kvbench.analysis.limits import frames
from kvbench.analysis.means.beside import Beside, beside
from kvbench.analysis.means.models import tokens
from kvbench.analysis.means.numa import Placed, matrix
from kvbench.analysis.means.peers import peers
from kvbench.analysis.measured.ceilings import ceilings
from kvbench.analysis.measured.columns import short_names
from kvbench.analysis.measured.families import alone
from kvbench.analysis.measured.scaling import saturation
from kvbench.analysis.measured.schedules import schedules
from kvbench.model import OURS, Ceiling, Check, Engine, Machine, Record
from kvbench.model.geometry import Geometry


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was found about a run. `points` has a short name for each row; figures
    identify points by row numbers.
    """

    run: str
    launches: int  # launches that have records
    machine: Machine
    cpus: dict[str, tuple[int, ...]]  # by the name of a point
    checks: tuple[Check, ...]
    ceilings: tuple[Ceiling, ...]
    points: pd.DataFrame
    samples: pd.DataFrame
    contrasts: pd.DataFrame  # all pairs that were timed in the same rounds
    saturation: pd.DataFrame
    tokens: pd.DataFrame
    schedules: pd.DataFrame
    placed: tuple[Placed, ...]
    # empty without peers. Only points, samples and peers include peers; all else is ours alone
    peers: pd.DataFrame
    beside: Beside  # the summary of peers
    open: tuple[Open, ...]
    answers: Answers


def findings(
    run: str,
    records: Sequence[Record],
    machine: Machine,
    checks: Sequence[Check] = (),
    models: Sequence[Geometry] = (),
    most: int = 0,
    engines: Sequence[Engine] = (),
) -> Findings:
    """Compute the findings of a run.

    records: of one run. models: whose shapes points may have. most: launches that the run can have,
    if launches are added until questions are decided; else 0. engines: whose kernels it measured.
    """
    own = ceilings(records, machine)
    cpus = {record.point.name: record.point.cpus for record in records}
    points = frames.points(records, machine, own, most=most)
    points = points.assign(short=short_names(points))
    every, points = points, points[points["engine"] == OURS]
    said, records = (
        records,
        [record for record in records if getattr(record.point, "engine", OURS) == OURS],
    )
    rates = tokens(points, models)
    asked = pairs(records, points, most, workload(rates, points))
    all_rates = rates if len(every) == len(points) else tokens(every, models)
    launches = len({record.launch for record in records})
    others = peers(every, all_rates, said, engines, models)
    tables = Tables(
        records=records,
        machine=machine,
        ceilings=own,
        models=models,
        points=points,
        tokens=rates,
        contrasts=asked,
        cpus=cpus,
        most=most,
    )
    return Findings(
        run=run,
        launches=launches,
        machine=machine,
        cpus=cpus,
        checks=tuple(checks),
        ceilings=own,
        points=every,
        samples=frames.samples(said),
        peers=others,
        beside=beside(others, said, [each.name for each in engines]),
        contrasts=asked,
        saturation=saturation(alone(points)),
        tokens=rates,
        schedules=schedules(tuned for record in records for tuned in record.tuned),
        placed=matrix(points, cpus, machine),
        open=questions(points, asked),
        answers=answers(tables),
    )
