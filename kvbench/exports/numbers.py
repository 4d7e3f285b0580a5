"""The numbers of a comparison as other tools take them: JSON for github-action-benchmark and for
Bencher, and CSV.

The known interval is that of the change, not of a value, so neither JSON has an interval.
github-action-benchmark compares with the last entry of the suite `name` in its own settings. Put
the machine into that name, as into Bencher's testbed.
"""

import json
from operator import attrgetter
from typing import Any

from kvbench.exports.wording import sentence, sides
from kvbench.model import Comparison
from kvbench.model.verdict import CONTAMINATED, NOT_COMPARABLE
from kvbench.texts import csv_text
from kvbench.units import GB

# Suffix of a name from which Bencher takes it that this value raises no alert.
_IGNORED = "-bencher-ignore"

# An effect is the share of base's time by which head takes longer: 0.08 is 8 %. An unknown number
# is an empty cell.
_WHOLE = ("command", "base", "head", "machine", "created")
_SHARES = ("effect", "low", "high", "detectable")
_NUMBERS = ("p", "q", "base_seconds", "head_seconds")
_HEAD = [
    *(*_WHOLE, "comparison_verdict", "level", "name", "family", "verdict", "note"),
    *(f"{share}_of_base_seconds" for share in _SHARES),
    *_NUMBERS,
    *("base_bytes_per_second", "head_bytes_per_second", "base_launches", "head_launches"),
]
_one = attrgetter("name", "family", "verdict", "note", *_SHARES, *_NUMBERS)


def github(comparison: Comparison, unit: str, name: str, times: float) -> str:
    """Head's numbers as JSON. A file has one direction: rates are better when bigger, times when
    smaller.
    """
    about = sides(comparison)
    entries = [
        {
            "name": one.name,
            "unit": unit,
            "value": value * times,
            "extra": f"{one.verdict}: {sentence(one)}\n{about}",
        }
        for one in comparison.points
        if (value := getattr(one, name)) is not None
    ]
    return _json(entries)


def bencher(comparison: Comparison) -> str:
    """Head's numbers in Bencher Metric Format: benchmark → measure → value. Bencher's own measure
    of time is in nanoseconds; `bandwidth` is in bytes per second.
    """
    results = {}
    for one in comparison.points:
        values = {"latency": (one.head_seconds, 1e9), "bandwidth": (one.head_gbps, GB)}
        if measures := {
            name: {"value": own * unit} for name, (own, unit) in values.items() if own is not None
        }:
            results[one.name + _IGNORED * (one.verdict in (CONTAMINATED, NOT_COMPARABLE))] = (
                measures
            )
    return _json(results)


def table(comparison: Comparison) -> str:
    """The full comparison as CSV: a row for each family, point and missing point."""
    whole, rows = [*attrgetter(*_WHOLE)(comparison), comparison.verdict], list[Any]([_HEAD])
    for level, judged in (("family", comparison.families), ("point", comparison.points)):
        for one in judged:
            rates = (None if rate is None else rate * GB for rate in (one.base_gbps, one.head_gbps))
            rows.append([*whole, level, *_one(one), *rates, *one.launches])
    rows += [
        [*whole, "missing", "", "", "", why, *[""] * (len(_HEAD) - 11)]
        for why in comparison.missing
    ]
    return csv_text(rows)


def _json(facts: Any) -> str:
    return json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
