"""Other engines beside ours: as values, and as lines of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.peers import PEERS, Cell, cells, mean_times
from kvbench.analysis.measured.columns import row
from kvbench.model import Skip
from kvbench.model.annotated import Printed, about
from kvbench.report.data import rows_of
from kvbench.report.ruled import Column, ruled
from kvbench.report.words import paragraphs, said
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
    Column("error", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Printed):
    """Other engines beside ours."""

    run: Annotated[str, about("its name")]
    path: Annotated[str, about("its directory")]
    report: Annotated[str, about("the page that --report wrote; else empty")]
    cells: Annotated[tuple[Cell, ...], about("what is compared, with the fastest of both")]
    times: Annotated[float | None, about("ratio: geometric mean of the cells; null if unknown")]
    rows: Annotated[list[row("PeerRow", PEERS)], about("every engine of every cell, as the report's table peers")]
    absent: Annotated[tuple[str, ...], about("peers and formats that were left out, and why")]


def compared(found: Findings, skips: Sequence[Skip], path: str, page: str) -> Compared:
    own, absent = tuple(cells(found.peers)), tuple(skip.detail for skip in skips)
    facts = {"run": found.run, "path": path, "report": page, "absent": absent}
    return Compared(cells=own, times=mean_times(own), rows=rows_of(found.peers), **facts)


def text(found: Findings) -> list[str]:
    lines, own = [], cells(found.peers)
    for each, (_, part) in zip(own, found.peers.groupby("cell", sort=False), strict=True):
        lines += [said("peers", "cell", each), *(f"  {line}" for line in ruled(part, _COLUMNS)), ""]
    return [*lines, *wrapped(paragraphs("peers", "summary", own, mean_times(own)))]
