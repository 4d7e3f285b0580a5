"""What it costs to store tokens, and whether a layout that is dearer to store is worth it."""

from dataclasses import dataclass
from enum import StrEnum

import pandas as pd

from kvbench.analysis.means.breakeven import NEVER, PAYS
from kvbench.analysis.means.diagnosis.values import Interval


@dataclass(frozen=True, slots=True)
class StoreRate:
    """The fastest point of an op. `seconds`: of a token and layer. `share`: of the rate of its `witness`, if it has one."""

    op: str
    name: str
    regime: str
    gbps: float
    seconds: float
    witness: str
    share: float


class Pays(StrEnum):
    """When a dearer layout pays."""

    BY_TOKENS = "after tokens"  # decoded ones
    BY_CONTEXT = "from a context on"  # its appends; tokens
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Payback:
    """At the longest context that says anything beyond noise."""

    dearer: str
    cheaper: str
    context: int
    when: Pays
    tokens: Interval | None


@dataclass(frozen=True, slots=True)
class Stores:
    """`paybacks`: whether there are layouts to hold side by side; `payback` is None where all is lost in noise."""

    rates: tuple[StoreRate, ...]
    paybacks: bool = False
    payback: Payback | None = None


def stores(points: pd.DataFrame, breakeven: pd.DataFrame) -> Stores | None:
    good, rates = points[points["gbps"].notna() & (points["op"] != "decode")], []
    for op, rows in good.groupby("op"):
        row = rows.loc[rows["gbps"].idxmax()]
        seconds = float(row["seconds"] / (row["batch"] * (row["context"] if op == "bulk" else 1)))
        facts = str(op), row["short"], row["regime"], float(row["gbps"]), seconds
        rates.append(StoreRate(*facts, row["witness"], float(row["efficiency"])))
    return Stores(tuple(rates), not breakeven.empty, _payback(breakeven)) if rates else None


def _payback(breakeven: pd.DataFrame) -> Payback | None:
    said = breakeven[breakeven["word"].isin([PAYS, NEVER])]
    if said.empty:
        return None
    row = said.sort_values(["context", "dtype", "dearer", "cheaper"]).iloc[-1]
    facts = row["dearer"], row["cheaper"], int(row["context"])
    if row["word"] == PAYS:
        return Payback(*facts, Pays.BY_TOKENS, Interval.of(row, "tokens"))
    if pd.isna(row["even"]):
        return Payback(*facts, Pays.NEVER, None)
    return Payback(*facts, Pays.BY_CONTEXT, Interval.of(row, "even"))
