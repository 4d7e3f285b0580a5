"""What a run says in short: its extremes, its diagnosis, and how large the noise was."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated

import pandas as pd

from kvbench.analysis.diagnosis import Sentence
from kvbench.analysis.findings import Findings
from kvbench.analysis.noise import Noise, known, noise
from kvbench.model.annotated import Printed, about

_FEW = 2  # errors that are told in full


@dataclass(frozen=True, slots=True)
class Place:
    """A point that stands out among its kind."""

    kind: Annotated[str, about("decode, or stores")]
    rank: Annotated[str, about("fastest, slowest, most efficient, least efficient, or the only one")]
    name: Annotated[str, about("of the point")]
    short: Annotated[str, about("of the point, for people")]
    gbps: Annotated[float, about("GB/s: compulsory bytes over time")]
    efficiency: Annotated[float | None, about("share of the witness's rate; null if unknown")]
    witness: Annotated[str, about("the program that efficiency is a share of")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Printed):
    """What a run says in short."""

    run: Annotated[str, about("its name")]
    points: Annotated[int, about("points")]
    launches: Annotated[int, about("of which there are records")]
    failed: Annotated[int, about("points that lack a launch or more")]
    errors: Annotated[tuple[str, ...], about("of the first points that failed")]
    places: Annotated[tuple[Place, ...], about("points that stand out")]
    verdicts: Annotated[tuple[str, ...], about("the sentences of the diagnosis")]
    diagnosis: Annotated[tuple[Sentence, ...], about("what the run says of the machine")]
    noise: Annotated[Noise, about("how far the launches lie apart")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept(Summary):
    """A summary of what there is; an interrupted sweep has one, too."""

    path: Annotated[str, about("its directory")]
    report: Annotated[str, about("the page that --report wrote; else empty")]


def swept(summary: Summary, path: str, report: str) -> Swept:
    return Swept(**{field.name: getattr(summary, field.name) for field in fields(summary)}, path=path, report=report)


def summary(found: Findings) -> Summary:
    points = found.points
    failed = points[points["error"] != ""]
    return Summary(
        run=found.run,
        points=len(points),
        launches=found.launches,
        failed=len(failed),
        errors=tuple(f"{row.short}: {row.error}" for row in failed.head(_FEW).itertuples()),
        places=tuple(_places(points)),
        verdicts=tuple(sentence.text for sentence in found.diagnosis),
        diagnosis=found.diagnosis,
        noise=noise(points),
    )


def _places(points: pd.DataFrame) -> Iterator[Place]:
    """Best and worst, of decodes and of stores."""
    decodes = points["op"] == "decode"
    for kind, rows in (("decode", points[decodes]), ("stores", points[~decodes])):
        rates, shares = rows["gbps"].dropna(), rows["efficiency"].dropna()
        if len(rates) == 1:
            yield _place(kind, "the only one", rows.loc[rates.idxmax()])
        elif len(rates):
            yield _place(kind, "fastest", rows.loc[rates.idxmax()])
            yield _place(kind, "slowest", rows.loc[rates.idxmin()])
            if len(shares):
                yield _place(kind, "most efficient", rows.loc[shares.idxmax()])
                yield _place(kind, "least efficient", rows.loc[shares.idxmin()])


def _place(kind: str, rank: str, row: pd.Series) -> Place:
    return Place(kind, rank, row["name"], row["short"], float(row["gbps"]), known(row["efficiency"]), row["witness"])
