"""What a run leaves open, of what more launches can decide: whether a slice in L3 is read faster
than memory, and which of two points of a set is faster. A line of kernels has as many launches as
were planned.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.analysis.answers.answer import Answer, State
from kvbench.analysis.answers.factors import THREADS, choices
from kvbench.analysis.answers.pairs import RESIDENCY, answer, pairs
from kvbench.analysis.limits import frames
from kvbench.analysis.limits.claims import UNSTABLE
from kvbench.analysis.looks import needs
from kvbench.analysis.measured.columns import short_names
from kvbench.model import Machine, Record
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Open:
    """A question that more launches may decide."""

    question: Annotated[str, about("which ratio of what")]
    ratio: Annotated[float, about("ratio: as it is now")]
    low: Annotated[float, about("ratio: low end of its interval")]
    high: Annotated[float, about("ratio: high end of its interval")]
    launches: Annotated[int, about("launches that it has")]
    needs: Annotated[int, about("launches: a rough guess, by which launches are planned")]
    points: Annotated[tuple[str, ...], about("names of what a launch must visit for it")]


def questions(points: pd.DataFrame, pairs: pd.DataFrame) -> tuple[Open, ...]:
    """From the tables of points, with short names, and of all pairs."""
    return (*_of_l3(points), *_of_pairs(pairs, dict(zip(points["name"], points["short"]))))


def open_questions(records: Sequence[Record], machine: Machine, most: int) -> tuple[Open, ...]:
    """`most`: launches that the run can have."""
    points = frames.points(records, machine, most=most)
    named = points.assign(short=short_names(points))
    return questions(named, pairs(records, points, most))


def _of_l3(points: pd.DataFrame) -> Iterator[Open]:
    for row in points[points["l3_needs"].notna()].to_dict("records"):
        which, what = (
            ("l3_decode", "decodes")
            if row["l3"] == UNSTABLE
            else ("l3_reads", "reads of the slice")
        )
        ratio, low, high = (float(row[which + end]) for end in ("", "_low", "_high"))
        said = f"{what} over reads of memory: {row['short']}"
        launches, needs = int(row["launches"]), int(row["l3_needs"])
        yield Open(said, ratio, low, high, launches, needs, (row["name"],))


def _of_pairs(pairs: pd.DataFrame, short: Mapping[str, str]) -> Iterator[Open]:
    """What the answers of sets leave open, and whether L3 or threads help."""
    for visit, choice in choices(pairs).items():
        for lead in choice.leads:
            what = f"{choice.factor} of {choice.op} from {choice.regime}"
            yield from _open(f"{what}: {choice.values[0]} over {lead.of}", visit, lead)
    for row in pairs[pairs["factor"].isin([RESIDENCY, THREADS])].to_dict("records"):
        what = f"{row['other']} over {row['base']}: {short[row['other_name']]}"
        yield from _open(what, row["visit"], answer(row, ""))


def _open(question: str, visit: str, found: Answer) -> Iterator[Open]:
    if found.state is State.OPEN and (figure := found.figure):
        ends = figure.value, figure.low, figure.high
        if wanted := needs(*ends, found.launches):
            yield Open(question, *ends, found.launches, wanted, (visit,))
