"""What it costs to store tokens, and whether a layout that is dearer to store is worth it."""

import pandas as pd

from kvbench.analysis.breakeven import NEVER, PAYS
from kvbench.analysis.diagnosis.phrases import between, number
from kvbench.regime import NO_LEVEL
from kvbench.units import duration

_COPIES = {"copy": "a copy with ordinary stores", "copy_nt": "a copy with non-temporal stores"}
_WHAT = {"append": "one token at a time", "bulk": "a whole prompt"}


def stores(points: pd.DataFrame, breakeven: pd.DataFrame) -> str:
    good = points[points["gbps"].notna() & (points["op"] != "decode")]
    told = [_rate(str(op), rows) for op, rows in good.groupby("op")]
    return f"Storing {'; '.join(told)}{_payback(breakeven)}." if told else ""


def _rate(op: str, points: pd.DataFrame) -> str:
    row = points.loc[points["gbps"].idxmax()]
    tokens = row["batch"] * (row["context"] if op == "bulk" else 1)
    where = "" if row["regime"] in NO_LEVEL else f" to {'memory' if row['regime'] == 'DRAM' else row['regime']}"
    rate = f"{number(row['gbps'])} GB/s{where}, {duration(row['seconds'] / tokens)} a token and layer"
    share = f", {row['efficiency']:.0%} of {_COPIES[row['witness']]}" if row["witness"] else ""
    return f"{_WHAT.get(op, op)}: {rate}{share} ({row['short']})"


def _payback(breakeven: pd.DataFrame) -> str:
    """At the longest context that says anything beyond noise."""
    said = breakeven[breakeven["word"].isin([PAYS, NEVER])]
    if said.empty:
        return "" if breakeven.empty else "; what a layout costs to store, or saves to read, is lost in noise"
    row = said.sort_values(["context", "dtype", "dearer", "cheaper"]).iloc[-1]
    text = f"; {row['dearer']}, dearer to store than {row['cheaper']},"
    if row["word"] == NEVER and pd.isna(row["even"]):
        return f"{text} saves nothing in reading that shows above noise"
    if row["word"] == NEVER:
        interval = between(row["even_low"], row["even_high"])
        return f"{text} pays its appends only from a context of {number(row['even'])} tokens on ({interval})"
    interval = between(row["tokens_low"], row["tokens_high"])
    tokens = f"{number(row['tokens'])} decoded tokens ({interval})"
    return f"{text} pays that back after {tokens} at a context of {row['context']}"
