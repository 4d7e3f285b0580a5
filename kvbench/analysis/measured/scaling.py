"""Rate over threads: what more threads bring, and how many are enough."""

import pandas as pd

from kvbench.analysis.measured.columns import (
    POINT,
    band,
    flag,
    names_without,
    number,
    table,
    text,
)

SATURATION = {
    "series": text("short name of the series"),
    **{name: POINT[name] for name in ("name", "threads")},
    "cpus": text("CPUs of the threads, as a list such as 0-3,8"),
    "regime": text("level that feeds it"),
    **band("gbps", "GB/s: compulsory bytes over time"),
    "twin_gbps": number("GB/s: the same reads without the decode"),
    "ceiling_gbps": number("GB/s: the fastest reads of this footprint by as many threads or fewer"),
    "fraction_of_best": number("share of the fastest rate of its series"),
    "best": flag("whether it is the fastest of its series"),
    "knee": flag("whether it has the fewest threads with a rate near the best"),
}
KNEE = 0.90

_VARIED = ("name", "threads", "cpus")
_RATES = ("regime", "gbps", "gbps_low", "gbps_high", "twin_gbps", "ceiling_gbps")
_TAKEN = (*_VARIED, *_RATES)


def saturation(points: pd.DataFrame) -> pd.DataFrame:
    """All series with at least two numbers of threads, each from few threads to many. `points`: the
    table of points.
    """
    points = points[points["gbps"].notna()]
    points = points.assign(series=names_without(points, ("threads", "cpus")))[
        ["series", *POINT, *_RATES]
    ]
    found, alike = [], [name for name in POINT if name not in _VARIED]
    for _, series in points.groupby(alike, dropna=False, sort=False):
        if series["threads"].nunique() > 1:
            rows = series.sort_values(["threads", "gbps"], ascending=[True, False])[
                ["series", *_TAKEN]
            ]
            shares = rows["gbps"] / rows["gbps"].max()
            # the first ones have the fewest threads
            best, knee = shares.idxmax(), (shares >= KNEE).idxmax()
            found.append(
                rows.assign(
                    fraction_of_best=shares, best=rows.index == best, knee=rows.index == knee
                )
            )
    return table((row for rows in found for row in rows.to_dict("records")), SATURATION)
