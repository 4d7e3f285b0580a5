"""How much longer attention takes for several queries in a step, over their number."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.speculate import Line
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import enclosed, places

_SAME = ("dtype", "layout", "variant", "mask", "model", "group", "context", "threads")
COLUMNS = {
    "line": "str",  # of the figure
    "row": "Int64",
    **dict.fromkeys(("dtype", "layout", "variant", "mask", "model", "limit", "worth"), "str"),
    **dict.fromkeys(("group", "context", "threads", "queries", "drafts"), "Int64"),
    **dict.fromkeys(("times", "times_low", "times_high"), "float64"),
    **dict.fromkeys(("core", "core_low", "core_high"), "float64"),
}


def speculate(found: Findings) -> pd.DataFrame:
    """The lines with the threads, the batch and the mask of the first line. The ratio for one query
    is 1.
    """
    every = found.answers.speculation.lines
    own = [line for line in every if _setting(line) == _setting(every[0])]
    known = places(found.points)
    alike = [(line.place, line.dtype) for line in own]
    several = {dtype for place, dtype in alike if alike.count((place, dtype)) > 1}
    rows = [
        row | {"row": known[row.pop("point")]}
        for line in own
        for row in _rows(line, line.dtype in several)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _setting(line: Line) -> tuple[object, ...]:
    return line.threads, line.batch, line.mask


def _rows(line: Line, several: bool) -> Iterator[dict[str, Any]]:
    """The rows of a line. `several`: whether its dtype has several kernels anywhere."""
    same = {name: getattr(line, name) for name in _SAME}
    same["line"] = f"{line.dtype} {line.variant} {line.layout}" if several else line.dtype
    one = {"queries": 1, "drafts": 0, "limit": line.limit.reason, "worth": ""}
    yield (
        same | one | {"point": line.point} | dict.fromkeys(("times", "times_low", "times_high"), 1)
    )
    for step in line.steps:
        if step.times.tested:
            own = {name: getattr(step, name) for name in ("queries", "drafts", "point", "worth")}
            own |= enclosed("times", step.times) | enclosed("core", step.core)
            yield same | own | {"limit": step.limit.reason}
