"""Runs of several machines side by side: what each machine gave."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from kvbench.analysis.columns import table
from kvbench.analysis.findings import Findings

# Read ceilings are the best of a level on the largest CPU set; `share` is of the DRAM read ceiling of the same threads.
MACHINES = {"run": "str", "fingerprint": "str", "threads": "Int64", "isa": "str", "points": "Int64"}
MACHINES |= dict.fromkeys(("l1_gbps", "l2_gbps", "l3_gbps", "dram_gbps", "fma_gflops", "best_gbps", "share"), "float64")
MACHINES |= {"best": "str"}


def machines(studies: Sequence[Findings]) -> pd.DataFrame:
    """A row for each run."""
    return table((_machine(found) for found in studies), MACHINES)


def _machine(found: Findings) -> dict[str, Any]:
    most = max((c.probe.cpus for c in found.ceilings), key=len, default=())
    own = [c for c in found.ceilings if c.probe.cpus == most]
    row: dict[str, Any] = {"run": found.run, "fingerprint": found.machine.fingerprint, "threads": len(most)}
    row |= {"points": len(found.points), "isa": own[0].probe.isa if own else ""}
    for level in ("L1", "L2", "L3", "DRAM"):
        rates = [c.median for c in own if c.probe.op == "read" and c.level == level]
        row[f"{level.lower()}_gbps"] = max(rates, default=None)
    row["fma_gflops"] = max((c.median for c in own if c.probe.op == "flops"), default=None)
    points = found.points
    far = points[(points["op"] == "decode") & (points["regime"] == "DRAM") & points["gbps"].notna()]
    if len(far):
        best = far.loc[far["gbps"].idxmax()]
        row |= {"best": best["short"], "best_gbps": best["gbps"], "share": best["gbps"] / best["dram_gbps"]}
    return row
