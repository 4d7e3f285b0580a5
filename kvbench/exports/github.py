"""JSON for github-action-benchmark. A file has one direction: rates are better when bigger, times when smaller.

The tool compares with the last entry of the suite `name` in its own settings: the machine belongs into that."""

import json

from kvbench.exports.wording import sentence, sides
from kvbench.model import Comparison


def bigger(comparison: Comparison) -> str:
    """For `customBiggerIsBetter`: GB/s of compulsory bytes, of head."""
    return _entries(comparison, "GB/s", [one.head_gbps for one in comparison.points])


def smaller(comparison: Comparison) -> str:
    """For `customSmallerIsBetter`: nanoseconds per pass, of head."""
    seconds = (one.head_seconds for one in comparison.points)
    return _entries(comparison, "ns", [None if one is None else one * 1e9 for one in seconds])


def _entries(comparison: Comparison, unit: str, values: list[float | None]) -> str:
    """Without `range`: the interval is that of the change, not that of the value."""
    about = sides(comparison)
    entries = [
        {"name": one.name, "unit": unit, "value": value, "extra": f"{one.verdict}: {sentence(one)}\n{about}"}
        for one, value in zip(comparison.points, values, strict=True)
        if value is not None
    ]
    return json.dumps(entries, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
