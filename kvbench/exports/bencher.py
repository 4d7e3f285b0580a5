"""Bencher Metric Format: a benchmark's name → measure → value, of head. The testbed is to be the machine."""

import json

from kvbench.model import Comparison, Judged
from kvbench.model.verdict import CONTAMINATED, NOT_COMPARABLE
from kvbench.units import GB

_IGNORED = "-bencher-ignore"  # at a name's end, from which Bencher takes it: no alert for this value
_UNFIT = (CONTAMINATED, NOT_COMPARABLE)


def bencher(comparison: Comparison) -> str:
    results = {
        one.name + (_IGNORED if one.verdict in _UNFIT else ""): measures
        for one in comparison.points
        if (measures := _measures(one))
    }
    return json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _measures(judged: Judged) -> dict[str, dict[str, float]]:
    """Bencher's own measure of time is in nanoseconds; `bandwidth` is in bytes per second.

    Without bounds of the values: the interval is that of the change."""
    measures = {}
    if judged.head_seconds is not None:
        measures["latency"] = {"value": judged.head_seconds * 1e9}
    if judged.head_gbps is not None:
        measures["bandwidth"] = {"value": judged.head_gbps * GB}
    return measures
