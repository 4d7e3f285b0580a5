"""The part of L3's gain that remains, over the bytes that are read between passes."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.between import Family
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import enclosed, places
from kvbench.units import counted

FEWEST = 3  # numbers of bytes: with fewer, a figure shows no more than a sentence
_SAME = ("dtype", "layout", "model", "group", "context", "threads")
COLUMNS = {
    "line": "str",  # of the figure
    "row": "Int64",
    **dict.fromkeys(("dtype", "layout", "model", "kept"), "str"),
    **dict.fromkeys(("group", "context", "threads", "bytes"), "Int64"),
    **dict.fromkeys(("share", "gain", "gain_low", "gain_high"), "float64"),  # share: of L3
}


def between(found: Findings) -> pd.DataFrame:
    """Families with enough values, each from 0 bytes on."""
    rows = [
        row
        for family in found.answers.l3.families
        if len(own := list(_rows(found, family))) >= FEWEST
        for row in own
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _rows(found: Findings, family: Family) -> Iterator[dict[str, Any]]:
    row = places(found.points)
    heads = f"{family.model or counted(family.group, 'query head')}, {family.context:,} tokens"
    threads = counted(family.threads, "thread")
    same = {name: getattr(family, name) for name in _SAME}
    same["line"] = f"{family.dtype} {family.layout} ({heads}, {threads})"
    nothing = {"bytes": 0, "share": 0.0, "kept": "", "row": row[family.point]}
    if family.gain.tested:
        yield same | nothing | enclosed("gain", family.gain)
    for each in family.left:
        if each.gain.tested and each.share is not None:
            own = {name: getattr(each, name) for name in ("bytes", "share", "kept")}
            yield same | own | {"row": row[each.point]} | enclosed("gain", each.gain)
