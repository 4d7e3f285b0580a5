"""Bencher Metric Format: a benchmark's name → measure → value, of head. The testbed is to be the machine.

Without bounds of the values: the interval is that of the change."""

import json

from kvbench.model import Comparison
from kvbench.model.verdict import CONTAMINATED, NOT_COMPARABLE
from kvbench.units import GB

_IGNORED = "-bencher-ignore"  # at a name's end, from which Bencher takes it: no alert for this value


def bencher(comparison: Comparison) -> str:
    """Bencher's own measure of time is in nanoseconds; `bandwidth` is in bytes per second."""
    results = {}
    for one in comparison.points:
        values = {"latency": (one.head_seconds, 1e9), "bandwidth": (one.head_gbps, GB)}
        if measures := {name: {"value": own * unit} for name, (own, unit) in values.items() if own is not None}:
            results[one.name + _IGNORED * (one.verdict in (CONTAMINATED, NOT_COMPARABLE))] = measures
    return json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
