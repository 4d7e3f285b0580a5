"""Time against context, from memory: what a pass costs before its first token, and what each token
adds.

The slope says what a long walk comes to, free of everything that a pass does only once; the
intercept is that: starting and joining the threads, and the softmax's ends. And rate against
threads: what more of them bring.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.measured.columns import (
    POINT,
    band,
    count,
    flag,
    names_without,
    number,
    table,
    text,
)
from kvbench.analysis.measured.estimates import Estimate, enclosed
from kvbench.analysis.measured.rates import by_launch
from kvbench.model import Record
from kvbench.units import GB

FAR = "DRAM"  # nearer memory has no single speed
CONTEXTS = 3  # at least, of a line: two fit whatever the truth is
_EXACT = 1e-12  # of a fit
_UNEVEN = 0.01  # of the bytes, by which they may miss a straight line: page tables come in steps

_ALONG = frozenset({"name", "context", "capacity"})  # what varies within a series

SCALING = {
    **{name: kind for name, kind in POINT.items() if name not in _ALONG},
    "contexts": count("on the line"),
    "context_low": count("tokens: the shortest"),
    "context_high": count("tokens: the longest"),
    **band("fixed_seconds", "seconds: of a pass before its first token"),
    **band("token_seconds", "seconds: that each token adds"),
    **band("gbps", "GB/s: compulsory bytes of a token over its seconds"),
    "misfit": number("share of a median time by which it is off the line, at most"),
    "launches": count("that gave a line"),
}


def scaling(records: Sequence[Record], points: pd.DataFrame) -> pd.DataFrame:
    """A row for each series of `points` from memory that differ in nothing but the context and the
    room for it: the median of a line through the times of each launch. It is fitted to the
    logarithms of ratios, so that long contexts do not drown short ones. A rate is NaN where the
    interval's end has no slope. Series whose bytes do not grow evenly with the context have no row:
    a window ends the growth, and an append never grows.
    """
    seconds = by_launch(records)
    far = points[(points["regime"] == FAR) & points["seconds"].notna()]
    alike = [name for name in POINT if name not in _ALONG]
    rows = []
    for key, series in far.groupby(alike, dropna=False, sort=False) if len(far) else ():
        if line := _line(series, seconds):
            rows.append(dict(zip(alike, key, strict=True)) | line)
    return table(rows, SCALING)


def _line(series: pd.DataFrame, seconds: dict[str, dict[int, float]]) -> dict[str, Any]:
    """Empty where there is no line."""
    contexts = series["context"].to_numpy(float)
    token_bytes = _token_bytes(contexts, series["bytes_compulsory"].to_numpy(float))
    lines = _lines(contexts, [seconds.get(name, {}) for name in series["name"]])
    if token_bytes is None or not lines:
        return {}
    fixed, token = (Estimate.of(values) for values in zip(*lines, strict=True))
    times = series["seconds"].to_numpy(float)
    gbps, low, high = (
        token_bytes / GB / s if s > 0 else float("nan")
        for s in (token.median, token.high, token.low)
    )
    return {
        "contexts": len(np.unique(contexts)),
        "context_low": int(contexts.min()),
        "context_high": int(contexts.max()),
        **enclosed("fixed_seconds", fixed),
        **enclosed("token_seconds", token),
        **enclosed("gbps", Estimate(gbps, low, high, ())),
        "misfit": float(np.abs((fixed.median + token.median * contexts) / times - 1).max()),
        "launches": token.launches,
    }


def _token_bytes(contexts: np.ndarray, compulsory: np.ndarray) -> float | None:
    """Bytes that each token adds; None where there are too few contexts, or they do not grow
    evenly.
    """
    if len(np.unique(contexts)) < CONTEXTS:
        return None
    fixed, token = _fit(contexts, compulsory)
    misses = np.abs((fixed + token * contexts) / compulsory - 1).max()
    return token if misses <= _UNEVEN and token * contexts.max() > compulsory.max() / 2 else None


def _lines(contexts: np.ndarray, seconds: Sequence[dict[int, float]]) -> list[tuple[float, float]]:
    """Seconds at no token, and for each: of every launch that visited enough contexts."""
    found = []
    for _, times in sorted(pd.DataFrame(list(seconds)).items()):
        there = times.notna()
        if len(np.unique(contexts[there])) >= CONTEXTS:
            found.append(_fit(contexts[there], times[there].to_numpy()))
    return found


def _fit(contexts: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Where a straight line begins, and how it rises: least squares of the logarithms of its ratios
    to the values.

    Sought by its height at both ends, which is above nothing.
    """
    from scipy.optimize import least_squares  # slow to load

    first, last = contexts.argmin(), contexts.argmax()
    away = contexts[last] - contexts[first]
    along = (contexts - contexts[first]) / away

    def ratios(ends: np.ndarray) -> np.ndarray:
        low, high = np.exp(ends)
        return np.asarray(np.log((low + (high - low) * along) / values))

    found = least_squares(
        ratios, np.log(values[[first, last]]), xtol=_EXACT, ftol=_EXACT, gtol=_EXACT
    )
    low, high = np.exp(found.x)
    rises = (high - low) / away
    return float(low - rises * contexts[first]), float(rises)


SATURATION = {
    "series": text("for people"),
    **{name: POINT[name] for name in ("name", "threads")},
    "cpus": text("of the threads, as a list such as 0-3,8"),
    "regime": text("what feeds it"),
    **band("gbps", "GB/s: compulsory bytes over time"),
    "twin_gbps": number("GB/s: the same reads and nothing else"),
    "ceiling_gbps": number("GB/s: the best reads of this footprint, by as many threads or fewer"),
    "fraction_of_best": number("share of the fastest of its series"),
    "best": flag("whether it is that"),
    "knee": flag("whether it has the fewest threads that come near the best"),
}
KNEE = 0.90

_VARIED = ("name", "threads", "cpus")
_RATES = ("regime", "gbps", "gbps_low", "gbps_high", "twin_gbps", "ceiling_gbps")
_TAKEN = (*_VARIED, *_RATES)


def saturation(points: pd.DataFrame) -> pd.DataFrame:
    """`points`: the table of that name. Series with two numbers of threads or more, each from few
    threads to many.
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
            # the first ones: of the fewest threads
            best, knee = shares.idxmax(), (shares >= KNEE).idxmax()
            found.append(
                rows.assign(
                    fraction_of_best=shares, best=rows.index == best, knee=rows.index == knee
                )
            )
    return table((row for rows in found for row in rows.to_dict("records")), SATURATION)
