"""A sweep in short: as values, and as lines of text: the first screen's answers, or all that a page can hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Annotated

import pandas as pd

from kvbench.analysis.differs.questions import Open
from kvbench.analysis.limits.frames import Noise, known, noise
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import Headline
from kvbench.model import Role
from kvbench.model.annotated import Printed, about
from kvbench.report.ruled import Column, ruled
from kvbench.report.words import Sentence, sentences
from kvbench.report.words.headline import badge, machine, tiles, workload
from kvbench.report.words.phrases import WITNESS
from kvbench.texts import WIDTH, wrapped
from kvbench.units import counted, cut

_FEW = 2  # errors that are told in full
_LEGEND = {"read": "read: of the same rows, and nothing else", "copy": "copy: of as many bytes as are stored"}


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
class RunSummary(Printed):
    """What a run says in short."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept(RunSummary):
    """A summary of what there is; an interrupted sweep has one, too."""

    path: Annotated[str, about("its directory")]
    report: Annotated[str, about("the page that --report wrote; else empty")]


def swept(summary: RunSummary, path: str, report: str) -> Swept:
    return Swept(**{field.name: getattr(summary, field.name) for field in fields(summary)}, path=path, report=report)


def summary(found: Findings) -> RunSummary:
    points, said = found.points, sentences(found)
    failed = points[points["error"] != ""]
    return RunSummary(
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


# ---- as text ---------------------------------------------------------------------------------------------------------


_TITLE, _VALUE = 16, 18  # letters of a column


def short(summary: RunSummary) -> list[str]:
    """Ten lines at most, and one for each error that is told."""
    found = summary.headline
    lines = [_cut(f"{machine(found)} · {workload(found)}"), ""]
    for tile in tiles(found):
        lines += wrapped([f"{tile.title:<{_TITLE}}{tile.value:<{_VALUE}}{tile.detail}"], hanging=_TITLE + _VALUE)
    grade, reason = badge(found.quality)
    lines += ["", *wrapped([f"{grade}: {reason}"], indent="", hanging=0)]
    return [*lines, *(_heading(summary) if summary.failed else ())]


def text(summary: RunSummary) -> list[str]:
    parts = (_heading(summary), _table(summary.places), wrapped(sentence.text for sentence in summary.diagnosis))
    return [line for part in map(list, parts) if part for line in ("", *part)][1:]


def _heading(summary: RunSummary) -> Iterator[str]:
    failed = f"; {summary.failed} with errors" if summary.failed else ""
    yield f"{counted(summary.points, 'point')}, {counted(summary.launches, 'launch')}{failed}"
    for error in summary.errors:
        yield f"  {_cut(error)}"
    if summary.failed > len(summary.errors):
        yield f"  and {summary.failed - len(summary.errors)} more"


def _cut(line: str) -> str:
    return cut(" ".join(line.splitlines()), WIDTH - 2)


def _table(places: Sequence[Place]) -> list[str]:
    """A point has one line, whatever it stands out in."""
    rows: dict[str, dict[str, object]] = {}
    for place in places:
        form = WITNESS.get(Role.of(place.witness).kind, "")
        share = "" if place.efficiency is None else f"{place.efficiency:.0%} of a {form}"
        label = f"{rows[place.name]['label']}, {place.rank}" if place.name in rows else f"{place.kind}, {place.rank}"
        rows[place.name] = {"label": label, "gbps": place.gbps, "share": share, "short": place.short}
    columns = (
        Column("label", ""),
        Column("gbps", "GB/s", "{:.3g}".format),
        Column("share", ""),
        Column("short", ""),
    )
    lines = ruled(pd.DataFrame(rows.values()), columns) if rows else []
    said = "; ".join(_LEGEND[form] for form in _LEGEND if any(f"of a {form}" in line for line in lines))
    return [f"  {_cut(line)}" for line in filter(None, (*lines, said))]
