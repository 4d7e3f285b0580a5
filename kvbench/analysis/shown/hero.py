"""The fastest kernel of each dtype: its tokens per second, what memory allows, and its accuracy."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.answer import Answer, Basis
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import enclosed, places

_RATE = "tokens_per_second"
COLUMNS = {
    "row": "Int64",
    **dict.fromkeys(("dtype", "layout", "variant", "point", "basis", "limit"), "str"),
    **dict.fromkeys((_RATE, f"{_RATE}_low", f"{_RATE}_high", "gbps"), "float64"),
    # its tokens per second over its share of plain reads of memory, from the same rounds
    "memory_allows": "float64",
    **dict.fromkeys(("lead", "lead_low", "lead_high"), "float64"),  # lead of the fastest
    "format_error": "float64",  # share of the output that the format loses, normal keys
    "kernel_error": "float64",
}
_KEYS = "normal"


def hero(found: Findings) -> pd.DataFrame:
    rows = list(_rows(found))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _rows(found: Findings) -> Iterator[dict[str, Any]]:
    row = places(found.points)
    for each in found.answers.decodes.rows:
        same = {name: getattr(each, name) for name in ("dtype", "layout", "variant", "point")}
        yield {
            **same,
            "row": row[each.point],
            "basis": each.speed.basis,
            "limit": each.limit.reason,
            **enclosed(_RATE, each.speed),
            "gbps": each.rate.figure and each.rate.figure.value,
            "memory_allows": allowed(each.speed, each.memory),
            **(enclosed("lead", each.lead) if each.lead.basis is Basis.ROUNDS else {}),
            "format_error": each.format_errors.get(_KEYS),
            "kernel_error": each.kernel_error,
        }


def allowed(rate: Answer, share: Answer) -> float | None:
    """The rate that a limit allows, from a rate and its share of that limit in the same rounds."""
    return rate.figure.value / share.figure.value if rate.figure and share.figure else None
