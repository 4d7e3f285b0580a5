"""All that is found out about a run, once: what every form of a report shows."""

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
    """`points` has a short name for each of its rows, and their numbers are what figures know
    points by.
    """

    run: str
    launches: int  # of which there are records
    machine: Machine
    cpus: dict[str, tuple[int, ...]]  # by the name of a point
    checks: tuple[Check, ...]
    ceilings: tuple[Ceiling, ...]
    points: pd.DataFrame
    samples: pd.DataFrame
    contrasts: pd.DataFrame  # all that were timed in the same rounds
    saturation: pd.DataFrame
    tokens: pd.DataFrame
    schedules: pd.DataFrame
    placed: tuple[Placed, ...]
    # where any was measured; all else but points, samples and tokens is of ours alone
    peers: pd.DataFrame
    beside: Beside  # what these say
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
    """`records`: those of one run. `models`: those whose shapes points may have. `most`: launches
    that the run can have where some are added until questions are decided, else 0. `engines`: whose
    kernels it has measured.
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
