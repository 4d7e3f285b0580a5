"""Percentiles of passes that were timed one by one: 50 % and 99 %."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from kvbench.analysis.measured.estimates import Estimate, enclosed
from kvbench.model import MANY, STEP, Tail, most
from kvbench.units import duration


def tailed(tails: Sequence[Tail], name: str) -> dict[str, float]:
    """The p50 and p99 of passes as columns, as medians of the launches with their intervals. If
    most launches have too few passes for a p99, it is that of all launches together, without an
    interval.
    """
    if not tails:
        return {}
    row = enclosed(f"{name}_p50", Estimate.of([tail.p50 for tail in tails]))
    whole = [tail.p99 for tail in tails if tail.p99 is not None]
    if 2 * len(whole) > len(tails):
        return row | enclosed(f"{name}_p99", Estimate.of(whole))
    together = most([second for tail in tails for second in tail.seconds])
    return row | ({f"{name}_p99": together} if together else {})


def untold(tails: Sequence[Tail], seconds: float) -> str:
    """Why p50 or p99 is missing, or a remark on it; else empty. `seconds`: of a pass."""
    if not tails:
        short = f"a pass takes less than {duration(STEP)}: too short to be timed one by one"
        return short if seconds < STEP else "no pass was timed alone"
    if any(tail.p99 is not None for tail in tails):
        return ""
    passes = sum(tail.passes for tail in tails)
    return (
        "p99: of all launches together"
        if passes >= MANY
        else f"{passes} passes are too few for a p99"
    )


def stretched(row: Mapping[str, Any], name: str) -> float | None:
    """How many times as long as a point's usual passes its slowest take. `name`: pass or
    neighbour.
    """
    slow, usual = row[f"{name}_p99"], row[f"{name}_p50"]
    return None if pd.isna(slow) or pd.isna(usual) else float(slow / usual)
