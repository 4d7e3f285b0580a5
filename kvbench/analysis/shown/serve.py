"""What a batch of real requests costs, in each way of storing it, in the usual layout."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.answers.serving import Batch, Way
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import enclosed, places

_MS = ("step_ms", "step_ms_low", "step_ms_high")
COLUMNS = {
    "row": "Int64",
    **dict.fromkeys(("dtype", "layout", "way", "state"), "str"),
    **dict.fromkeys(("batch", "shortest", "longest", "tokens"), "Int64"),
    "line": "float64",  # position in the figure from the top, with a gap before each batch
    **dict.fromkeys(_MS, "float64"),
    "tokens_per_second": "float64",  # of the batch
    "as_they_are_ms": "float64",  # for padded requests: the step of the same ones without padding
    # for padded requests: ratio to the step without padding, in the same rounds
    **dict.fromkeys(("padding", "padding_low", "padding_high"), "float64"),
}
_GAP = 1.1  # lines before a batch, for its name


def serve(found: Findings) -> pd.DataFrame:
    rows = []
    own, known = found.answers.serving.batches, places(found.points)
    for dtype in dict.fromkeys(each.dtype for each in own):
        line = 0.0
        for batch in (b for b in own if (b.dtype, b.layout) == (dtype, own[0].layout)):
            line += _GAP
            for row in _rows(batch):
                rows.append(row | {"row": known[row.pop("point")], "line": line})
                line += 1
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _rows(batch: Batch) -> Iterator[dict[str, Any]]:
    plain = next((each for each in batch.ways if each.way == Way.AS_THEY_ARE), None)
    for each in batch.ways:
        padded = each.way == Way.PADDED
        yield {
            **{name: getattr(batch, name) for name in ("dtype", "layout", "batch")},
            **{name: getattr(each, name) for name in ("point", "way", "shortest", "longest")},
            "tokens": each.tokens,
            **enclosed("step_ms", each.step, 1e3),
            "tokens_per_second": enclosed("rate", each.whole)["rate"],
            "state": batch.padding.state if padded else "",
            **(enclosed("padding", batch.padding) if padded else {}),
            **(
                {"as_they_are_ms": enclosed("step", plain.step, 1e3)["step"]}
                if padded and plain
                else {}
            ),
        }
