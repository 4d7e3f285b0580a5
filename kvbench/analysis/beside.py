"""Runs of several machines side by side: what each machine gave, and the points that all of them measured."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import pandas as pd

from kvbench.analysis.columns import POINT, table
from kvbench.analysis.findings import Findings
from kvbench.analysis.names import names_without

# A machine's own words: with any of them equal points would be rare. CPU sets are compared by their place among a
# machine's own: the fewest threads with the fewest, the most with the most.
_OWN = frozenset({"name", "kernel", "isa", "cpus", "threads", "pages", "distance", "prefetch"})
_SHAPE = [name for name in POINT if name not in _OWN]

# Read ceilings are the best of a level on the largest CPU set; `share` is of the DRAM read ceiling of the same threads.
MACHINES = {"run": "str", "fingerprint": "str", "threads": "Int64", "isa": "str", "points": "Int64"}
MACHINES |= dict.fromkeys(("l1_gbps", "l2_gbps", "l3_gbps", "dram_gbps", "fma_gflops", "best_gbps", "share"), "float64")
MACHINES |= {"best": "str"}

# `place` is that of a point among the common ones, `study` that of its run, `row` that in the run's points' table.
COMMON = {"place": "Int64", "point": "str", "study": "Int64", "run": "str", "role": "str", "row": "Int64"}
COMMON |= {"threads": "Int64", "isa": "str", "regime": "str"}
COMMON |= dict.fromkeys(("gbps", "gbps_low", "gbps_high", "ceiling_gbps", "ceiling_fraction"), "float64")


def machines(studies: Sequence[Findings]) -> pd.DataFrame:
    """A row for each run."""
    return table((_machine(found) for found in studies), MACHINES)


def common(studies: Sequence[Findings]) -> pd.DataFrame:
    """A row for each run of each decode or store that all runs have a rate of: where a run has several, of the fastest."""
    measured = [dict(sorted(_measured(found), key=lambda each: each[1]["gbps"])) for found in studies]
    keys = [key for key in measured[0] if all(key in each for each in measured[1:])] if measured else []
    rows = [
        {"place": place, "study": study, "run": found.run, "role": key[-1]} | each[key]
        for place, key in enumerate(keys)
        for study, (found, each) in enumerate(zip(studies, measured, strict=True))
    ]
    return table(rows, COMMON)


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


def _measured(found: Findings) -> Iterator[tuple[tuple[Hashable, ...], dict[str, Any]]]:
    """What of a point can be compared, by what makes it the same on another machine; its role is last."""
    points = found.points[found.points["gbps"].notna()]
    points = points.assign(point=names_without(points, _OWN & set(points)))
    least, most = points["threads"].min(), points["threads"].max()
    names = ["point", "threads", "isa", "regime", "gbps", "gbps_low", "gbps_high", "ceiling_gbps", "ceiling_fraction"]
    shapes = points[_SHAPE].astype(object).where(points[_SHAPE].notna(), None)
    for row, shape, facts in zip(
        points.index, shapes.itertuples(index=False), points[names].to_dict("records"), strict=True
    ):
        if facts["threads"] not in (least, most):
            continue
        role = "most threads" if facts["threads"] == most else "fewest threads"
        yield (*shape, role), facts | {"row": row}
