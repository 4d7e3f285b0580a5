"""Other engines beside ours: as values, and as lines of text."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Annotated, Any, Literal

import pandas as pd

from kvbench.analysis.answers.trust import Trust
from kvbench.analysis.means.beside import Builds, Rule, Together, TookPart, WorkloadRatio
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.peers import PEERS
from kvbench.analysis.measured.columns import row
from kvbench.analysis.measured.estimates import enough
from kvbench.model import AGAIN, Skip
from kvbench.model.annotated import about
from kvbench.report.data import rows_of
from kvbench.report.ruled import Column, ruled
from kvbench.report.words import paragraphs, said
from kvbench.report.words.first import badge
from kvbench.report.words.phrases import number
from kvbench.texts import wrapped

_COLUMNS = (
    Column("engine", "engine"),
    Column("layout", "layout"),
    Column("variant", ""),
    Column("gbps", "GB/s", number),
    Column("tokens_per_second", "tokens/s", number),
    Column("share", "% of read", "{:.0%}".format),
    Column("max_abs_err", "error", "{:.0e}".format),
    Column("overhead", "% overhead", "{:.1%}".format),
    Column("times", "times ours", "{:.2f}".format),
    Column("within", "interval"),
    Column("queries_times", "times 1 query", "{:.2f}".format),
    Column("queries_within", "interval"),
    Column("word", ""),
)
# columns shown only in cells with one query a step, and only in cells with several
_ONE, _SEVERAL = ("tokens_per_second",), ("queries_times", "queries_within")


PeerRow: Any = row("PeerRow", PEERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The result of a run of kvbench peers."""

    version: Annotated[
        Literal[2],
        about(
            "of this format, 2: `trust` instead of `quality`; keys may be added, none is dropped"
        ),
    ] = 2
    run: Annotated[str, about("name of the run")]
    path: Annotated[str, about("the run directory")]
    report: Annotated[str, about("the page that --report wrote; else empty")]
    cells: Annotated[
        tuple[WorkloadRatio, ...], about("workloads, each with our fastest and the fastest peer")
    ]
    times: Annotated[float | None, about("ratio: geometric mean over the cells; null if unknown")]
    together: Annotated[Together, about("all cells, with the interval of that mean")]
    rule: Annotated[
        Rule, about("the lead that ours should have in each cell, and in how many they have it")
    ]
    builds: Annotated[tuple[Builds, ...], about("builds of one engine beside each other")]
    engines: Annotated[tuple[TookPart, ...], about("engines that took part beside ours")]
    trust: Annotated[Trust, about("how far to trust the run")]
    rows: Annotated[
        list[PeerRow],
        about("every engine of every cell, as in the report's table peers"),
    ]
    absent: Annotated[tuple[str, ...], about("engines and formats that were left out, and why")]


def compared(found: Findings, skips: Sequence[Skip], path: str, page: str) -> Compared:
    return Compared(
        run=found.run,
        path=path,
        report=page,
        cells=found.beside.cells,
        times=found.beside.together.times,
        together=found.beside.together,
        rule=found.beside.rule,
        builds=found.beside.builds,
        engines=found.beside.engines,
        trust=found.answers.trust,
        rows=rows_of(found.peers),
        absent=tuple(skip.detail for skip in skips),
    )


def text(found: Findings) -> list[str]:
    beside, lines = found.beside, []
    for each, (_, part) in zip(beside.cells, found.peers.groupby("cell", sort=False), strict=True):
        several = each.q_len != 1
        columns = [own for own in _COLUMNS if own.name not in (_ONE if several else _SEVERAL)]
        shown = part.assign(within=_within(part, "times"))
        table = ruled(shown.assign(queries_within=_within(part, "queries_times")), columns)
        lines += [said("peers", "cell", each), *(f"  {line}" for line in table)]
        lines += [*wrapped(_notes(part, beside.builds)), ""]
    lines += wrapped(paragraphs("peers", "summary", beside))
    grade, reason = badge(found.answers)
    graded = wrapped([f"{grade}: {reason}"], indent="", hanging=0)
    took_part = wrapped([said("peers", "took_part", beside.engines)], indent="", hanging=0)
    return [*lines, "", *graded, "", *took_part]


def _notes(part: pd.DataFrame, builds: Sequence[Builds]) -> Iterator[str]:
    """Lines below a cell: engines without a number, and builds of one engine."""
    failed = part[(part["error"] != "") & (part["engine"] != AGAIN)]
    for row_of in failed.itertuples():
        yield said("peers", "refused", row_of)
    for pair in builds:
        own = (each for each in pair.cells if each.cell == part["cell"].iloc[0])
        yield from (said("peers", "build", each, pair) for each in own)


def _within(part: pd.DataFrame, ratio: str) -> list[str]:
    """The intervals of a column of ratios; an unknown interval is an empty text."""
    ends = zip(part[f"{ratio}_low"], part[f"{ratio}_high"], strict=True)
    return ["" if isnan(low) else f"{low:.2f} to {high:.2f}" for low, high in ends]


def launches(count: int) -> str:
    """What a run with this many launches can decide."""
    fewest = next(number for number in itertools.count(1) if enough(number))
    return said("peers", "launches", count, fewest, enough(count))
