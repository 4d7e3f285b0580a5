"""Tokens per second of formats of K and V over the error of the output, by kind of keys."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.mixed import Format
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import enclosed, places

_SAME = ("dtype", "k_scale", "variant", "layout")
_PLACED = ("keys", "error", "format_error", "place")
COLUMNS = {
    "row": "Int64",
    **dict.fromkeys(("keys", "dtype", "k_scale", "variant", "layout", "place"), "str"),
    "pair": "bool",
    **dict.fromkeys(("error", "format_error", "bytes"), "float64"),
    **dict.fromkeys((f"tokens_per_second{end}" for end in ("", "_low", "_high")), "float64"),
}


def mixed(found: Findings) -> pd.DataFrame:
    """The variants of each format that are worth drawing, the fastest first."""
    known = places(found.points)
    rows = [
        row | {"row": known[each.point]}
        for each in found.answers.mixed.formats
        if each.drawn
        for row in _rows(each)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _rows(own: Format) -> Iterator[dict[str, Any]]:
    same = {name: getattr(own, name) for name in (*_SAME, "pair", "bytes")}
    same |= enclosed("tokens_per_second", own.speed)
    for placed in own.placed:
        yield same | {name: getattr(placed, name) for name in _PLACED}
