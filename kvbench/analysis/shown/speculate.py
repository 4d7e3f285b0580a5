"""How much longer attention takes for several queries a step, by their number."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.speculate import Line
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import enclosed, places
from kvbench.model.masks import CHAIN

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
    """Of the threads and the batch of the first line. One query takes as long as itself."""
    every = found.answers.speculation.lines
    first = every[:1]
    own = [line for line in every for one in first if _setting(line) == _setting(one)]
    known = places(found.points)
    alike = [(line.place, line.dtype) for line in own]
    rows = [
        row | {"row": known[row.pop("point")]}
        for line, place in zip(own, alike, strict=True)
        for row in _rows(line, alike.count(place) > 1)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _setting(line: Line) -> tuple[object, ...]:
    return line.threads, line.batch


def _rows(line: Line, several: bool) -> Iterator[dict[str, Any]]:
    """`several`: whether others beside it have its dtype."""
    same = {name: getattr(line, name) for name in _SAME}
    more = (line.variant, line.layout, *([] if line.mask == CHAIN else [line.mask]))
    same["line"] = " ".join((line.dtype, *(more if several else ())))
    one = {"queries": 1, "drafts": 0, "limit": line.limit.reason, "worth": ""}
    yield (
        same | one | {"point": line.point} | dict.fromkeys(("times", "times_low", "times_high"), 1)
    )
    for step in line.steps:
        if step.times.tested:
            own = {name: getattr(step, name) for name in ("queries", "drafts", "point", "worth")}
            own |= enclosed("times", step.times) | enclosed("core", step.core)
            yield same | own | {"limit": step.limit.reason}
