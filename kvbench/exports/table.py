"""All of a comparison as CSV: a row for each family and point, and for each that is missing."""

from operator import attrgetter

from kvbench.model import Comparison
from kvbench.texts import csv_text
from kvbench.units import GB

# An effect is a share of base's time by which head takes longer: 0.08 is 8 % of it. An unknown number is an empty cell.
_WHOLE = ("command", "base", "head", "machine", "created")
_SHARES = ("effect", "low", "high", "detectable")
_NUMBERS = ("p", "q", "base_seconds", "head_seconds")
_HEAD = [*_WHOLE, "comparison_verdict", "level", "name", "family", "verdict", "note"]
_HEAD += [*(f"{share}_of_base_seconds" for share in _SHARES), *_NUMBERS]
_HEAD += ["base_bytes_per_second", "head_bytes_per_second", "base_launches", "head_launches"]
_one = attrgetter("name", "family", "verdict", "note", *_SHARES, *_NUMBERS)


def table(comparison: Comparison) -> str:
    whole, rows = [*attrgetter(*_WHOLE)(comparison), comparison.verdict], [_HEAD]
    for level, judged in (("family", comparison.families), ("point", comparison.points)):
        for one in judged:
            rates = (None if rate is None else rate * GB for rate in (one.base_gbps, one.head_gbps))
            rows.append([*whole, level, *_one(one), *rates, *one.launches])
    rows += [[*whole, "missing", "", "", "", why, *[""] * (len(_HEAD) - 11)] for why in comparison.missing]
    return csv_text(rows)
