"""A sweep in short: as values, and as lines of text: the first screen's answers, or all that a page
says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.analysis.differs.questions import Open
from kvbench.analysis.limits.frames import Noise, known, noise
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import Headline
from kvbench.model.annotated import Printed, about
from kvbench.report.words.headline import badge, machine, tiles, workload
from kvbench.report.words.sentences import Sentence, sentences
from kvbench.texts import WIDTH, wrapped
from kvbench.units import counted, cut

_FEW = 2  # errors that are told in full
_TITLE, _VALUE = 16, 18  # letters of a column


@dataclass(frozen=True, slots=True)
class Place:
    """A point that stands out among its kind."""

    kind: Annotated[str, about("decode, or stores")]
    rank: Annotated[
        str, about("fastest, slowest, most efficient, least efficient, or the only one")
    ]
    name: Annotated[str, about("of the point")]
    short: Annotated[str, about("of the point, for people")]
    gbps: Annotated[float, about("GB/s: compulsory bytes over time")]
    efficiency: Annotated[float | None, about("share of the witness's rate; null if unknown")]
    witness: Annotated[str, about("the program that efficiency is a share of")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept(Printed):
    """A summary of what there is; an interrupted sweep has one, too."""

    run: Annotated[str, about("its name")]
    points: Annotated[int, about("points")]
    launches: Annotated[int, about("of which there are records")]
    failed: Annotated[int, about("points that lack a launch or more")]
    errors: Annotated[tuple[str, ...], about("of the first points that failed")]
    headline: Annotated[Headline, about("the run in five answers")]
    places: Annotated[tuple[Place, ...], about("points that stand out")]
    verdicts: Annotated[tuple[str, ...], about("the sentences of the diagnosis")]
    diagnosis: Annotated[tuple[Sentence, ...], about("what the run says of the machine")]
    open: Annotated[tuple[Open, ...], about("questions that more launches may decide")]
    noise: Annotated[Noise, about("how far the launches lie apart")]
    path: Annotated[str, about("its directory")]
    report: Annotated[str, about("the page that --report wrote; else empty")]


def summary(found: Findings, path: str = "", report: str = "") -> Swept:
    points, said = found.points, sentences(found)
    failed = points[points["error"] != ""]
    return Swept(
        run=found.run,
        points=len(points),
        launches=found.launches,
        failed=len(failed),
        errors=tuple(f"{row.short}: {row.error}" for row in failed.head(_FEW).itertuples()),
        headline=found.headline,
        places=tuple(_places(points)),
        verdicts=tuple(sentence.text for sentence in said),
        diagnosis=said,
        open=found.open,
        noise=noise(points),
        path=path,
        report=report,
    )


def _places(points: pd.DataFrame) -> Iterator[Place]:
    """Best and worst, of decodes and of stores."""
    decodes = points["op"] == "decode"
    for kind, rows in (("decode", points[decodes]), ("stores", points[~decodes])):
        rates, shares = rows["gbps"].dropna(), rows["efficiency"].dropna()
        ranks = {}
        if len(rates) == 1:
            ranks = {"the only one": rates.index[0]}
        elif len(rates):
            ranks = {"fastest": rates.idxmax(), "slowest": rates.idxmin()}
            ranks |= (
                {"most efficient": shares.idxmax(), "least efficient": shares.idxmin()}
                if len(shares)
                else {}
            )
        for rank, at in ranks.items():
            row = rows.loc[at]
            numbers = float(row["gbps"]), known(row["efficiency"]), row["witness"]
            yield Place(kind, rank, row["name"], row["short"], *numbers)


def short(summary: Swept) -> list[str]:
    """Ten lines at most, and one for each error that is told."""
    found = summary.headline
    lines = [_cut(f"{machine(found)} · {workload(found)}"), ""]
    for tile in tiles(found):
        lines += wrapped(
            [f"{tile.title:<{_TITLE}}{tile.value:<{_VALUE}}{tile.detail}"], hanging=_TITLE + _VALUE
        )
    grade, reason = badge(found.quality)
    lines += ["", *wrapped([f"{grade}: {reason}"], indent="", hanging=0)]
    return [*lines, *(_heading(summary) if summary.failed else ())]


def text(summary: Swept) -> list[str]:
    return [*_heading(summary), "", *wrapped(summary.verdicts)]


def _heading(summary: Swept) -> Iterator[str]:
    failed = f"; {summary.failed} with errors" if summary.failed else ""
    yield f"{counted(summary.points, 'point')}, {counted(summary.launches, 'launch')}{failed}"
    for error in summary.errors:
        yield f"  {_cut(error)}"
    if summary.failed > len(summary.errors):
        yield f"  and {summary.failed - len(summary.errors)} more"


def _cut(line: str) -> str:
    return cut(" ".join(line.splitlines()), WIDTH - 2)
