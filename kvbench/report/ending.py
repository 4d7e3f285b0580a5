"""A sweep in short: as values, and as lines of text: the first screen's answers, or all that a page can hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Annotated

import pandas as pd

from kvbench.analysis.differs.questions import Open
from kvbench.analysis.limits.frames import Noise, known, noise
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import Headline
from kvbench.model import AHEAD, Role
from kvbench.model.annotated import Printed, about
from kvbench.report.words import Sentence, sentences
from kvbench.report.words.headline import badge, machine, tiles, workload
from kvbench.texts import WIDTH, wrapped
from kvbench.units import counted, cut

_FEW = 2  # errors that are told in full
_LINES = 40  # of the whole summary
_LEGEND = {
    "twin": "twin: the same reads and nothing else",
    "copy": "copy, copy_nt: as many bytes moved by ordinary and by non-temporal stores",
}
# Where there is no room for all: the first of these are left to the report.
_LEFT_OUT = ("overhead", "stores", "tokens", "bound", "threads", "fit", "suspect", "dtype", "layout", "l3", "bandwidth")


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
    points, said = found.points, sentences(found.diagnosis)
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
    """No more than a page: what does not fit is counted."""
    head = [list(part) for part in (_heading(summary), _table(summary.places))]
    kept, taken = list(summary.diagnosis), sum(len(part) + 1 for part in head if part)
    for topic in _LEFT_OUT:
        if taken + len(_sentences(kept, summary)) > _LINES:
            kept = [sentence for sentence in kept if sentence.topic != topic]
    found = [part for part in (*head, _sentences(kept, summary)) if part]
    return [line for part in found for line in ("", *part)][1:]


def _sentences(kept: Sequence[Sentence], summary: RunSummary) -> list[str]:
    lines = list(wrapped(sentence.text for sentence in kept))
    left = len(summary.diagnosis) - len(kept)
    return [*lines, f"  and {counted(left, 'sentence')} more: kvbench report"] if left else lines


def _heading(summary: RunSummary) -> Iterator[str]:
    failed = f"; {summary.failed} with errors" if summary.failed else ""
    yield f"{counted(summary.points, 'point')}, {counted(summary.launches, 'launch')}{failed}"
    for error in summary.errors:
        yield f"  {_cut(error)}"
    if summary.failed > len(summary.errors):
        yield f"  and {summary.failed - len(summary.errors)} more"


def _cut(line: str) -> str:
    return cut(" ".join(line.splitlines()), WIDTH - 2)


def _table(places: Sequence[Place]) -> Iterator[str]:
    if not places:
        return
    labels = _labels(places)
    width = max(map(len, labels.values()))
    yield f"  {'':<{width}}    GB/s"
    for place in {place.name: place for place in places}.values():
        role = Role.of(place.witness)
        form = role.kind if role == AHEAD else role.name
        share = "" if place.efficiency is None else f"{place.efficiency:.0%} of {form}"
        share = "at the reads" if form == "twin" and (place.efficiency or 0) > 1 else share
        yield f"  {_cut(f'{labels[place.name]:<{width}}  {place.gbps:>6.3g}  {share:<16}  {place.short}')}"
    said = {Role.of(place.witness).kind for place in places}
    legend = "; ".join(words for form, words in _LEGEND.items() if form in said)
    if legend:
        yield f"  {legend}"


def _labels(places: Sequence[Place]) -> dict[str, str]:
    """By point: it has one line, whatever it stands out in."""
    found: dict[str, str] = {}
    for place in places:
        found[place.name] = f"{found.get(place.name, place.kind)}, {place.rank}"
    return found
