"""Sentences on what it costs to store tokens, and whether a layout that is dearer to store is worth it."""

import pandas as pd

from kvbench.analysis.means.breakeven import NEVER, PAYS
from kvbench.report.words.phrases import between, number
from kvbench.units import duration

_COPIES = {"copy": "an ordinary copy", "copy_nt": "a non-temporal copy"}
_WHAT = {"append": "Storing one token", "bulk": "Storing a prompt"}


def stores(points: pd.DataFrame, breakeven: pd.DataFrame) -> str:
    """The fastest point of each op; and what is known at the longest context that says anything beyond noise."""
    good = points[points["gbps"].notna() & (points["op"] != "decode")]
    said = [_rate(rows.loc[rows["gbps"].idxmax()]) for _, rows in good.groupby("op")]
    known = breakeven[breakeven["word"].isin([PAYS, NEVER])].sort_values(["context", "dtype", "dearer", "cheaper"])
    if said and len(known):
        said.append(_payback(known.iloc[-1]))
    elif said and len(breakeven):
        said.append("No layout saves or costs more than the noise.")
    return " ".join(said)


def _rate(row: pd.Series) -> str:
    seconds = row["seconds"] / (row["batch"] * (row["context"] if row["op"] == "bulk" else 1))
    share = f", {row['efficiency']:.0%} of the speed of {_COPIES[row['witness']]}" if row["witness"] else ""
    each = f"{duration(seconds)} a token and layer"
    return f"{_WHAT.get(row['op'], row['op'])} takes {each} ({row['short']}): {number(row['gbps'])} GB/s{share}."


def _payback(row: pd.Series) -> str:
    said = f"{row['dearer']} costs more to store than {row['cheaper']}"
    if row["word"] == PAYS:
        tokens = f"{number(row['tokens'])} decoded tokens ({between(row['tokens_low'], row['tokens_high'])})"
        return f"{said} and pays off after {tokens} at a context of {row['context']:,}."
    if pd.isna(row["even"]):
        return f"{said} and saves nothing in reading above the noise."
    tokens = f"{number(row['even'])} tokens ({between(row['even_low'], row['even_high'])})"
    return f"{said} and pays off from a context of {tokens}."
