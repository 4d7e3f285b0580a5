"""Other engines beside ours: as values, and as lines of text."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Annotated, Any, Literal

from kvbench.analysis.answers.trust import Trust
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.peers import PEERS, Together, WorkloadRatio
from kvbench.analysis.measured.columns import row
from kvbench.analysis.measured.estimates import enough
from kvbench.model import Skip
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
    Column("word", ""),
    Column("error", ""),
)


PeerRow: Any = row("PeerRow", PEERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Other engines beside ours."""

    version: Annotated[
        Literal[2],
        about(
            "of this format, 2: `trust` instead of `quality`; keys may be added, none is dropped"
        ),
    ] = 2
    run: Annotated[str, about("its name")]
    path: Annotated[str, about("its directory")]
    report: Annotated[str, about("the page that --report wrote; else empty")]
    cells: Annotated[tuple[WorkloadRatio, ...], about("what is compared, with the fastest of both")]
    times: Annotated[float | None, about("ratio: geometric mean of the cells; null if unknown")]
    together: Annotated[Together, about("all cells, with the interval of that mean")]
    trust: Annotated[Trust, about("how far to trust the run")]
    rows: Annotated[
        list[PeerRow],
        about("every engine of every cell, as the report's table peers"),
    ]
    absent: Annotated[tuple[str, ...], about("peers and formats that were left out, and why")]


def compared(found: Findings, skips: Sequence[Skip], path: str, page: str) -> Compared:
    return Compared(
        run=found.run,
        path=path,
        report=page,
        cells=found.beside.cells,
        times=found.beside.together.times,
        together=found.beside.together,
        trust=found.answers.trust,
        rows=rows_of(found.peers),
        absent=tuple(skip.detail for skip in skips),
    )


def text(found: Findings) -> list[str]:
    lines = []
    for each, (_, part) in zip(
        found.beside.cells, found.peers.groupby("cell", sort=False), strict=True
    ):
        part = part.assign(
            within=[
                _within(*ends) for ends in zip(part["times_low"], part["times_high"], strict=True)
            ]
        )
        lines += [said("peers", "cell", each), *(f"  {line}" for line in ruled(part, _COLUMNS)), ""]
    lines += wrapped(paragraphs("peers", "summary", found.beside))
    grade, reason = badge(found.answers)
    return [*lines, "", *wrapped([f"{grade}: {reason}"], indent="", hanging=0)]


def _within(low: float, high: float) -> str:
    return "" if isnan(low) else f"{low:.2f} to {high:.2f}"


def launches(count: int) -> str:
    """What a run of so many can decide."""
    fewest = next(number for number in itertools.count(1) if enough(number))
    return said("peers", "launches", count, fewest, enough(count))
