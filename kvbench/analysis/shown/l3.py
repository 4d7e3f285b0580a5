"""What a decode gains from L3: the middle layout of each dtype and group, with the other
layouts.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.l3 import Gain
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.families import alone
from kvbench.analysis.shown.usual import enclosed, places

_GAIN = ("gain", "gain_low", "gain_high")
COLUMNS = {
    "line": "Int64",  # of the figure
    "row": "Int64",
    **dict.fromkeys(("dtype", "layout", "model", "limit", "state"), "str"),
    **dict.fromkeys(("group", "context", "threads"), "Int64"),
    "middle": "bool",  # whether the answer is about it
    **dict.fromkeys(_GAIN, "float64"),
}


def l3(found: Findings) -> pd.DataFrame:
    rows = [
        row for line, gain in enumerate(found.answers.l3.gains) for row in _rows(found, gain, line)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _rows(found: Findings, gain: Gain, line: int) -> Iterator[dict[str, Any]]:
    points = found.points
    alike = ("dtype", "group", "threads")
    same = {name: getattr(gain, name) for name in alike} | {"line": line, "model": gain.model}
    yield {
        **same,
        "row": places(points)[gain.gain.subject[0]],
        "layout": gain.layout,
        "context": gain.context,
        "middle": True,
        "limit": gain.limit.reason,
        "state": gain.gain.state,
        **enclosed("gain", gain.gain),
    }
    others = alone(points[points["l3_gain"].notna()])
    others = others[~others["name"].isin(gain.gain.subject)]
    for name in alike:
        others = others[others[name] == same[name]]
    for row, point in others.sort_values("l3_gain").iterrows():
        own = {f"gain{end}": point[f"l3_gain{end}"] for end in ("", "_low", "_high")}
        rest = {"limit": "", "state": "", "middle": False, "row": row}
        yield {**same, **rest, "layout": point["layout"], "context": point["context"], **own}
