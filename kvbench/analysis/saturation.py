"""What more threads bring: points that differ in nothing but their CPUs, side by side."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from kvbench.analysis.columns import POINT, count, ends, flag, number, table, text
from kvbench.analysis.names import names_without

COLUMNS = {
    "series": text("for people"),
    "name": text("all that it is, in one word: what runs are joined by"),
    "threads": count("how many"),
    "cpus": text("of the threads, as a list such as 0-3,8"),
    "regime": text("what feeds it"),
    "gbps": number("GB/s: compulsory bytes over time"),
    **ends("gbps", "GB/s"),
    "twin_gbps": number("GB/s: the same reads and nothing else"),
    "ceiling_gbps": number("GB/s: plain reads of this footprint"),
    "fraction_of_best": number("share of the fastest of its series"),
    "best": flag("whether it is that"),
    "knee": flag("whether it has the fewest threads that come near the best"),
}
KNEE = 0.90

_VARIED = ("name", "threads", "cpus")
_RATES = ("regime", "gbps", "gbps_low", "gbps_high", "twin_gbps", "ceiling_gbps")
_TAKEN = (*_VARIED, *_RATES)


def saturation(points: pd.DataFrame) -> pd.DataFrame:
    """`points`: the table of that name. Series with two numbers of threads or more, each from few threads to many."""
    return table(_rows(points[points["gbps"].notna()]), COLUMNS)


def _rows(points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    points = points.assign(series=names_without(points, ("threads", "cpus")))[["series", *POINT, *_RATES]]
    alike = [name for name in POINT if name not in _VARIED]
    for _, series in points.groupby(alike, dropna=False, sort=False):
        if series["threads"].nunique() > 1:
            yield from _series(series.sort_values(["threads", "gbps"], ascending=[True, False]))


def _series(series: pd.DataFrame) -> Iterator[dict[str, Any]]:
    rows = series[["series", *_TAKEN]].to_dict("records")
    most = max(row["gbps"] for row in rows)
    fractions = [row["gbps"] / most for row in rows]
    best = fractions.index(1.0)  # the first ones: of the fewest threads
    knee = next(place for place, fraction in enumerate(fractions) if fraction >= KNEE)
    for place, row in enumerate(rows):
        yield row | {"fraction_of_best": fractions[place], "best": place == best, "knee": place == knee}
