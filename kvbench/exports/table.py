"""All of a comparison as CSV: a row for each family and point, and for each that is missing."""

from kvbench.model import Comparison, Judged
from kvbench.texts import csv_text
from kvbench.units import GB

# An effect is a share of base's time by which head takes longer: 0.08 is 8 % of it. An unknown number is an empty cell.
_WHOLE = ("command", "base", "head", "machine", "created")
_ONE = ("level", "name", "family", "verdict", "note")
_SHARES = ("effect", "low", "high", "detectable")
_COLUMNS = (
    *_WHOLE,
    "comparison_verdict",
    *_ONE,
    *(f"{share}_of_base_seconds" for share in _SHARES),
    *("p", "q", "base_seconds", "head_seconds", "base_bytes_per_second", "head_bytes_per_second"),
    *("base_launches", "head_launches"),
)


def table(comparison: Comparison) -> str:
    whole = [*(getattr(comparison, name) for name in _WHOLE), comparison.verdict]
    levels = {"family": comparison.families, "point": comparison.points}
    rows = [[*whole, level, *_cells(one)] for level, judged in levels.items() for one in judged]
    rest = [""] * (len(_COLUMNS) - len(whole) - 5)
    rows += [[*whole, "missing", "", "", "", reason, *rest] for reason in comparison.missing]
    return csv_text([_COLUMNS, *rows])


def _cells(judged: Judged) -> list[str | float | int | None]:
    rates = (judged.base_gbps, judged.head_gbps)
    return [
        *(getattr(judged, name) for name in _ONE[1:]),
        *(getattr(judged, name) for name in _SHARES),
        *(judged.p, judged.q, judged.base_seconds, judged.head_seconds),
        *(None if rate is None else rate * GB for rate in rates),
        *judged.launches,
    ]
