"""JSON for github-action-benchmark. A file has one direction: rates are better when bigger, times when smaller.

The tool compares with the last entry of the suite `name` in its own settings: the machine belongs into that. Without
`range`: the interval is that of the change, not that of the value."""

import json

from kvbench.exports.wording import sentence, sides
from kvbench.model import Comparison


def bigger(comparison: Comparison) -> str:
    """For `customBiggerIsBetter`: GB/s of compulsory bytes, of head."""
    return _entries(comparison, "GB/s", "head_gbps", 1.0)


def smaller(comparison: Comparison) -> str:
    """For `customSmallerIsBetter`: nanoseconds per pass, of head."""
    return _entries(comparison, "ns", "head_seconds", 1e9)


def _entries(comparison: Comparison, unit: str, name: str, times: float) -> str:
    about = sides(comparison)
    known = [(one, value * times) for one in comparison.points if (value := getattr(one, name)) is not None]
    entries = [
        {"name": one.name, "unit": unit, "value": value, "extra": f"{one.verdict}: {sentence(one)}\n{about}"}
        for one, value in known
    ]
    return json.dumps(entries, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
