"""What a run's points say of the machine, in sentences: numbers, and what each share is a share of."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from kvbench.analysis.l3 import NOT_TESTABLE
from kvbench.model import Machine
from kvbench.regime import suggestion
from kvbench.units import counted, duration

_WITNESSES = {"copy": "a copy with ordinary stores", "copy_nt": "a copy with non-temporal stores"}


def verdicts(points: pd.DataFrame, machine: Machine) -> Iterator[str]:
    """`points`: the table of that name, with the short names of its points as `short`."""
    good = points[points["gbps"].notna()]
    decodes = good[good["op"] == "decode"]
    if len(decodes):
        yield _dram(decodes)
        yield _l3(decodes, machine)
    for op, stores in good[good["op"] != "decode"].groupby("op"):
        yield _stores(str(op), stores)


def _dram(decodes: pd.DataFrame) -> str:
    """How much of the machine's read bandwidth a decode gets."""
    far = decodes[decodes["regime"] == "DRAM"]
    if far.empty:
        unknown = (decodes["regime"] == "unknown").all()
        why = "unknown: no cache size is known" if unknown else "not tested: no point leaves the caches behind"
        return f"Decode from DRAM: {why}"
    held = far[far["dram_gbps"].notna()]
    row = _fastest(far if held.empty else held)
    rate = f"Decode from DRAM: {row['gbps']:.3g} GB/s"
    if held.empty:
        return f"{rate} ({row['short']}); the share of read bandwidth is unknown: {row['ceiling_note']}"
    suspect = ", more than there should be: suspect" if row["gbps_low"] > row["dram_high"] else ""
    share = f"{row['gbps'] / row['dram_gbps']:.0%} of the same threads' read ceiling of {row['dram_gbps']:.3g} GB/s"
    return f"{rate}, {share}{suspect} ({row['short']})"


def _l3(decodes: pd.DataFrame, machine: Machine) -> str:
    """Whether slices that fit L3 are faster than DRAM: all that were tested, and the clearest of the usual case."""
    question = "Faster than DRAM where slices fit L3"
    inside = decodes[decodes["regime"] == "L3"]
    if inside.empty:
        unknown = (decodes["regime"] == "unknown").all()
        why = "no cache size is known" if unknown else suggestion(machine, machine.allowed) or "no point lies in L3"
        return f"{question}: not tested: {why}"
    counts = inside["l3"].value_counts()
    usual = inside[inside["l3"] == counts.index[0]]
    clear = np.log(usual["gbps"] / usual["dram_gbps"]).abs().fillna(0)
    row = usual.loc[clear.idxmax()]
    doubt = "; the size of L3 is in doubt" if (inside["regime_confidence"] != "high").any() else ""
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    example = f"{'such as' if row['l3'] == NOT_TESTABLE else 'clearest'} {row['short']}: {row['l3_reason']}"
    return f"{question}: of {counted(len(inside), 'point')}, {said}{doubt}; {example}"


def _stores(op: str, stores: pd.DataFrame) -> str:
    row = _fastest(stores)
    tokens = row["batch"] * (row["context"] if op == "bulk" else 1)
    rate = f"Stores, {op}: {row['gbps']:.3g} GB/s, {duration(row['seconds'] / tokens)} for a token"
    if not row["witness"]:
        return f"{rate} ({row['short']})"
    return f"{rate}, {row['efficiency']:.0%} of {_WITNESSES[row['witness']]} ({row['short']})"


def _fastest(points: pd.DataFrame) -> pd.Series:
    return points.loc[points["gbps"].idxmax()]
