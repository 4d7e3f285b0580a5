"""List the questions of a run that are open, and that more launches can decide: whether a slice in
L3 is read faster than memory, which of two points of a set is faster, and whether a step takes as
long as the sum of its parts.
A line of kernels is left out: its number of launches is fixed by the plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.analysis.answers.answer import Answer, State
from kvbench.analysis.answers.factors import THREADS, choices
from kvbench.analysis.answers.pairs import RESIDENCY, WHOLE, answer, pairs
from kvbench.analysis.differs.betweens import FAR
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.limits import frames
from kvbench.analysis.limits.claims import UNSTABLE
from kvbench.analysis.looks import needs
from kvbench.analysis.measured.columns import short_names
from kvbench.model import Machine, Record
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Open:
    """A question that more launches can decide: how many times as fast one point is as another."""

    question: Annotated[
        str,
        about(
            "the factor in which they differ; or l3_reads, l3_decode: compared with reads of memory"
        ),
    ]
    op: Annotated[str, about("decode, append or bulk")]
    regime: Annotated[str, about("level that feeds them")]
    one: Annotated[str, about("value of the factor of the one")]
    other: Annotated[str, about("value of the factor of the other")]
    point: Annotated[str, about("short name of the one")]
    ratio: Annotated[float, about("ratio: as known now")]
    low: Annotated[float, about("ratio: low end of its interval")]
    high: Annotated[float, about("ratio: high end of its interval")]
    launches: Annotated[int, about("launches so far")]
    needs: Annotated[
        int, about("launches: a rough estimate of how many decide it, used to plan launches")
    ]
    points: Annotated[
        tuple[str, ...], about("names of the points or sets that a launch must visit for it")
    ]


def questions(points: pd.DataFrame, pairs: pd.DataFrame) -> tuple[Open, ...]:
    """The open questions, from the tables of points, with short names, and of all pairs."""
    return (*_of_l3(points), *_of_pairs(pairs, dict(zip(points["name"], points["short"]))))


def open_questions(records: Sequence[Record], machine: Machine, most: int) -> tuple[Open, ...]:
    """The open questions, from records. `most`: launches that the run can have."""
    points = frames.points(records, machine, most=most)
    named = points.assign(short=short_names(points))
    return questions(named, pairs(records, points, most))


def _of_l3(points: pd.DataFrame) -> Iterator[Open]:
    for row in points[points["l3_needs"].notna()].to_dict("records"):
        which = "l3_decode" if row["l3"] == UNSTABLE else "l3_reads"
        yield Open(
            question=which,
            op=row["op"],
            regime=row["regime"],
            one=row["regime"],
            other=FAR,
            point=row["short"],
            ratio=float(row[which]),
            low=float(row[f"{which}_low"]),
            high=float(row[f"{which}_high"]),
            launches=int(row["launches"]),
            needs=int(row["l3_needs"]),
            points=(row["name"],),
        )


def _of_pairs(pairs: pd.DataFrame, short: Mapping[str, str]) -> Iterator[Open]:
    """Open questions about sets, about L3 and threads, and about steps and their parts."""
    for visit, choice in choices(pairs).items():
        about = {"question": choice.factor, "op": choice.op, "regime": choice.regime}
        about |= {"one": choice.values[0]}
        for lead in choice.leads:
            yield from _open(about | {"other": lead.of}, visit, lead, short)
    for row in pairs[pairs["factor"].isin([RESIDENCY, THREADS, WHOLE])].to_dict("records"):
        about = {"question": row["factor"], "one": row["other"], "other": row["base"]}
        about |= {name: row[name] for name in ("op", "regime")}
        yield from _open(about, row["visit"], answer(row, ""), short)


def _open(about: Row, visit: str, found: Answer, short: Mapping[str, str]) -> Iterator[Open]:
    if found.state is not State.OPEN or not (figure := found.figure):
        return
    if wanted := needs(figure.value, figure.low, figure.high, found.launches):
        yield Open(
            **about,
            point=short[found.subject[0]],
            ratio=figure.value,
            low=figure.low,
            high=figure.high,
            launches=found.launches,
            needs=wanted,
            points=(visit,),
        )
