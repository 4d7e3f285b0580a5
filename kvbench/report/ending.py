"""A sweep in short, as values and as lines of text: the first screen's answers, or all that a page
says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import pandas as pd

from kvbench.analysis.answers import Answers
from kvbench.analysis.answers.decodes import Decode
from kvbench.analysis.answers.latency import Latency
from kvbench.analysis.answers.mixed import Mixed, Other
from kvbench.analysis.answers.serving import Batch, Way
from kvbench.analysis.answers.speculate import Speculation
from kvbench.analysis.answers.step import Step
from kvbench.analysis.differs.questions import Open
from kvbench.analysis.means.findings import Findings
from kvbench.model.annotated import about
from kvbench.report.ruled import Column, ruled
from kvbench.report.words import said
from kvbench.report.words.findings import sentences
from kvbench.report.words.first import badge, hardware, machine, tiles, workload
from kvbench.report.words.phrases import bare, narrow
from kvbench.texts import WIDTH, wrapped
from kvbench.units import counted, cut, size

_FEW = 2  # errors shown in full
_TITLE, _VALUE = 16, 18  # characters of a column
_SHARES = {"memory": "% of memory", "rows": "% of rows", "core": "% of core"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A summary of a sweep; an interrupted sweep has one, too."""

    version: Annotated[
        Literal[2],
        about(
            "of this format, 2: `answers` have what `headline`, `diagnosis`, `verdicts`, `places`"
            " and `noise` had; keys may be added, none is renamed or dropped"
        ),
    ] = 2
    run: Annotated[str, about("name of the run")]
    points: Annotated[int, about("number of points")]
    launches: Annotated[int, about("number of launches that have records")]
    failed: Annotated[int, about("number of points that failed in a launch")]
    errors: Annotated[tuple[str, ...], about("errors of the first points that failed")]
    answers: Annotated[Answers, about("the answer of the run to each question")]
    open: Annotated[tuple[Open, ...], about("questions that more launches may decide")]
    path: Annotated[str, about("the run directory")]
    report: Annotated[str, about("the page that --report wrote; else empty")]


def summary(found: Findings, path: str = "", report: str = "") -> Swept:
    failed = found.points[found.points["error"] != ""]
    return Swept(
        run=found.run,
        points=len(found.points),
        launches=found.launches,
        failed=len(failed),
        errors=tuple(f"{row.short}: {row.error}" for row in failed.head(_FEW).itertuples()),
        answers=found.answers,
        open=found.open,
        path=path,
        report=report,
    )


def short(found: Findings, whole: bool = True) -> list[str]:
    """Lines of the first screen: machine, workload, grade, main answers and their tables. If not
    `whole`, without the answers and without the text below tables.
    """
    own = found.answers
    grade, reason = badge(own)
    lines = [
        *wrapped([f"{machine(own)} · {hardware(found.machine, found.checks)}"], "", 2),
        *wrapped([f"Workload: {workload(own)}"], "", 2),
        "",
        *wrapped([f"{grade:<{_TITLE}}{reason}"], hanging=_TITLE),
        "",
    ]
    for tile in tiles(own) if whole else ():
        told = f"{tile.title:<{_TITLE}}{tile.value + '  ':<{_VALUE}}{tile.detail}"
        lines += wrapped([told], hanging=_TITLE + _VALUE)
    for each in tables(own):
        lines += [*([""] if whole else ()), *each.lines]
        if each.rule and whole:
            lines += wrapped([each.rule])
    if own.decodes.rows and not whole:
        lines += wrapped([said("first", "beside", own.decodes.fastest)])
    failed = summary(found)
    return [*lines, *(["", *_heading(failed)] if failed.failed else ())]


@dataclass(frozen=True, slots=True)
class Told:
    """A table of the first screen, as lines. `topic`: its answer. `rule`: the text below it."""

    topic: str
    lines: list[str]
    rule: str


def tables(own: Answers) -> list[Told]:
    """The tables of the first screen."""
    return [
        Told(topic, [f"  {cut(line, WIDTH - 2)}" for line in table], rule)
        for topic, table, rule in _tables(own)
    ]


def _tables(own: Answers) -> Iterator[tuple[str, list[str], str]]:
    """The topic of each table, its lines, and the text below it."""
    if own.decodes.rows:
        yield "decodes", _dtypes(own.decodes.rows), said("first", "rule", own.decodes.fastest)
    if own.mixed.formats:
        yield "mixed", _formats(own.mixed), said("mixed", "rule", own.mixed)
    if drafted := own.speculation.page:
        yield "speculate", _drafting(own.speculation), said("speculate", "rule", drafted[0])
    if own.latency.places:
        yield "latency", _chased(own.latency), said("latency", "rule", own.latency)
    if own.steps.rows:
        yield "step", _steps(own.steps.rows), ""
    if own.serving.batches:
        yield "serve", _served(own.serving.batches), ""


def _dtypes(found: tuple[Decode, ...]) -> list[str]:
    """The table of dtypes, narrow."""
    rows = [
        {
            "kernel": f"{row.dtype} {row.variant}, {row.layout}",
            "tokens/s": narrow(row.speed.figure),
            "GB/s": bare(row.rate.figure),
            **{
                head: narrow(getattr(row, name).figure).replace("%", "")
                for name, head in _SHARES.items()
            },
            "limit": said("first", "limit", row.limit),
        }
        for row in found
    ]
    return ruled(pd.DataFrame(rows), [Column(name, name) for name in rows[0]])


def _formats(found: Mixed) -> list[str]:
    """The table of formats of K and V, narrow."""
    rows = [
        {
            "format": said("mixed", "label", each),
            "bytes": size(each.bytes),
            "tokens/s": narrow(each.speed.figure),
            **{
                f"{own.keys} keys": f"{said('mixed', 'percent', own.error)} {own.place}"
                for own in each.placed
            },
            "over K's": narrow(own.times.figure) if (own := each.over(Other.K)) else "",
        }
        for each in found.formats
    ]
    return ruled(pd.DataFrame(rows), [Column(name, name) for name in rows[0]])


def _drafting(found: Speculation) -> list[str]:
    """A table for the page's workload: how many times as long as one query a step takes."""
    steps = {count: [line.at(count) for line in found.page] for count in found.counts}
    columns = {
        counted(count, "query"): [narrow(step.times.figure) if step else "" for step in own]
        for count, own in steps.items()
    }
    names = [f"{line.dtype} {line.variant}, {line.layout}" for line in found.page]
    table = pd.DataFrame({"kernel": names} | columns)
    return ruled(table, [Column(name, name) for name in table.columns])


def _chased(found: Latency) -> list[str]:
    """A table of ns at GB/s, by load and share. Plain reads and copies are shown once for each
    place of the chase, from the rounds of its first point.
    """
    first = {place.chase: place.point for place in reversed(found.places)}
    rows = [
        {"load, at % of its rate": said("latency", "beside", found, place, curve)}
        | {f"{step.share}%": f"{bare(step.ns)} at {bare(step.gbps)}" for step in curve.steps}
        for place in found.places
        for curve in place.curves
        if curve.load == place.op or place.point == first[place.chase]
    ]
    return ruled(pd.DataFrame(rows), [Column(name, name) for name in rows[0]])


def _steps(found: tuple[Step, ...]) -> list[str]:
    """The table of whole steps, narrow."""
    rows = [
        {
            "step": f"{row.model} {row.dtype}".strip(),
            "context": row.context,
            "batch": row.batch,
            "weights": size(row.weights) if row.weights else "",
            "time": bare(row.seconds.figure),
            "tokens/s": bare(row.tokens.figure),
            "% of memory": narrow(row.memory.figure).replace("%", ""),
            "over parts": narrow(row.whole.figure),
        }
        for row in found
    ]
    return ruled(pd.DataFrame(rows), [Column(name, name) for name in rows[0]])


_HEADS = ("requests", "cache", *Way, "times as long", "tokens/s")


def _served(found: tuple[Batch, ...]) -> list[str]:
    """The table of real requests, narrow: the time of a step each way, and tokens/s of all requests
    together without padding.
    """
    rows = [
        {
            "requests": each.batch,
            "cache": f"{each.dtype}, {each.layout}",
            **{way.way: bare(way.step.figure) for way in each.ways},
            "times as long": narrow(each.padding.figure),
            **{"tokens/s": bare(w.whole.figure) for w in each.ways if w.way == Way.AS_THEY_ARE},
        }
        for each in found
    ]
    table = pd.DataFrame(rows, columns=list(_HEADS))
    return ruled(table, [Column(name, name) for name in _HEADS])


def text(found: Findings) -> list[str]:
    """Lines of the first screen, and all other sentences of a page."""
    return [*short(found), "", *wrapped(each.text for each in sentences(found))]


def _heading(summary: Swept) -> Iterator[str]:
    points, launches = counted(summary.points, "point"), counted(summary.launches, "launch")
    yield f"{points}, {launches}; {summary.failed} with errors"
    for error in summary.errors:
        yield f"  {_cut(error)}"
    if rest := summary.failed - len(summary.errors):
        yield f"  and {rest} more"


def _cut(line: str) -> str:
    return cut(" ".join(line.splitlines()), WIDTH - 2)
