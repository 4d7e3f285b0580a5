"""How much of the memory's bandwidth a decode gets."""

from dataclasses import dataclass

import pandas as pd

from kvbench.analysis.means.diagnosis.values import Untested


@dataclass(frozen=True, slots=True)
class MemoryUntested:
    why: Untested


@dataclass(frozen=True, slots=True)
class BestRead:
    """Of all forms and numbers of threads up to the point's. `share`: the point's rate over it."""

    gbps: float
    form: str
    threads: int
    share: float
    exceeded: bool  # by more than the intervals explain


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """The fastest point of those that plain reads were measured for. `share`: its rate over that of plain reads by as many
    threads; `usual`: the median of that over all `points`."""

    name: str
    gbps: float
    plain_gbps: float
    threads: int
    share: float
    best: BestRead | None
    points: int
    usual: float


@dataclass(frozen=True, slots=True)
class MemoryRate:
    """The fastest decode from memory. Where no plain read was measured, `note` says why."""

    name: str
    gbps: float
    held: MemoryShare | None
    note: str = ""


def memory(points: pd.DataFrame) -> MemoryUntested | MemoryRate:
    decodes = decodes_of(points)
    far = decodes[decodes["regime"] == "DRAM"]
    if far.empty:
        return MemoryUntested(why_not(decodes, Untested.NEARER))
    held, row = far[far["dram_gbps"].notna()], far.loc[far["gbps"].idxmax()]
    if held.empty:
        return MemoryRate(row["short"], float(row["gbps"]), None, row["ceiling_note"])
    return MemoryRate(row["short"], float(row["gbps"]), _share(held))


def _share(held: pd.DataFrame) -> MemoryShare:
    row, shares, best = held.loc[held["gbps"].idxmax()], held["gbps"] / held["dram_gbps"], None
    if pd.notna(row["ceiling_gbps"]):
        by, exceeded = (row["ceiling_form"], int(row["ceiling_threads"])), bool(row["gbps_low"] > row["ceiling_high"])
        best = BestRead(float(row["ceiling_gbps"]), *by, float(row["ceiling_fraction"]), exceeded)
    numbers = float(row["gbps"]), float(row["dram_gbps"]), int(row["threads"]), float(shares[row.name])
    return MemoryShare(row["short"], *numbers, best, len(held), float(shares.median()))


def decodes_of(points: pd.DataFrame) -> pd.DataFrame:
    """Those with a rate, in their places."""
    return points[(points["op"] == "decode") & points["gbps"].notna()]


def why_not(decodes: pd.DataFrame, otherwise: Untested) -> Untested:
    if decodes.empty:
        return Untested.NO_DECODE
    return Untested.UNKNOWN_CACHES if (decodes["regime"] == "unknown").all() else otherwise
