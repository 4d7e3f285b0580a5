"""Tokens per second per core over bandwidth per core: a line for each dtype, and where lines
cross.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.servers import LEAST, MOST, Line, Servers
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import places

LINE, FASTEST, HERE = "line", "fastest from here on", "this machine"
COLUMNS = {
    "kind": "str",
    "row": "Int64",
    "dtype": "str",
    "bandwidth": "float64",  # GB/s per core
    "tokens_per_second": "float64",  # per core
    "knee": "bool",  # whether the core limits it from there on
}


def servers(found: Findings) -> pd.DataFrame:
    rows = places(found.points)
    own = found.answers.servers
    table = [
        *({"row": rows[line.point]} | each for line in own.lines for each in _line(line)),
        *_fastest(own),
        *([{"kind": HERE, "bandwidth": own.here}] if own.lines and own.here else []),
    ]
    blank = {"row": None, "dtype": "", "tokens_per_second": None, "knee": False}
    rows_of = [blank | each for each in table]
    return pd.DataFrame(rows_of, columns=list(COLUMNS)).astype(COLUMNS)


def lacking(found: Findings) -> list[str]:
    """Dtypes whose core speed was not measured beside their decode."""
    drawn = {line.dtype for line in found.answers.servers.lines}
    return [row.dtype for row in found.answers.decodes.rows if row.dtype not in drawn]


def _line(line: Line) -> Iterator[dict[str, Any]]:
    """The points of a line, which is straight on both sides of its knee."""
    knee = [line.knee] if LEAST < line.knee < MOST else []
    for bandwidth in (LEAST, *knee, MOST):
        yield {
            "kind": LINE,
            "dtype": line.dtype,
            "bandwidth": bandwidth,
            "tokens_per_second": line.at(bandwidth),
            "knee": bandwidth == line.knee,
        }


def _fastest(own: Servers) -> Iterator[dict[str, Any]]:
    lines = {line.dtype: line for line in own.lines}
    for stretch in own.fastest:
        yield {
            "kind": FASTEST,
            "dtype": stretch.dtype,
            "bandwidth": stretch.low,
            "tokens_per_second": lines[stretch.dtype].at(stretch.low),
        }
