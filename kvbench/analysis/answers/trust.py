"""How far to trust a run: the scatter of launches, its share between visits, and suspects.

Scatter is the standard deviation of what launches measured, as a share of a point's time; of all
points it is the root of the mean square, which is what two points that are compared meet. It is
made unbiased for small numbers: more launches tell it better, and make it neither larger nor
smaller. The grade is made of it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Annotated

import numpy as np

from kvbench.analysis.answers.suspects import Suspect, suspects
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.measured.rates import by_launch, by_point
from kvbench.model import Record
from kvbench.model.annotated import about

GOOD, FAIR, POOR = "good", "fair", "poor"
_SCATTER = {GOOD: 0.05, FAIR: 0.20}  # at most
FEWEST = 5  # launches of the typical point: of fewer its scatter is hardly known
_NINE_OF_TEN = 0.9
_SIDES = 1.96  # standard deviations on both sides, that hold 95 % of what is normal


class Because(StrEnum):
    """Why a grade is no better."""

    NOTHING = ""
    LAUNCHES = "too few launches"
    FAILED = "points failed"
    SCATTER = "scatter"
    SUSPECTS = "suspects without an explanation"


@dataclass(frozen=True, slots=True)
class Trust:
    """The grade is made of scatter, and does not depend on how many launches there are."""

    grade: Annotated[str, about("good, fair or poor")]
    because: Annotated[Because, about("why it is no better, as a word; else empty")]
    scatter: Annotated[
        float | None, about("share of a point's time: deviation of launches, over all points")
    ]
    most: Annotated[float | None, about("share of a point's time: the same of nine points in ten")]
    between: Annotated[
        float | None, about("share of the variance: between visits, the rest is within them")
    ]
    noise: Annotated[
        float | None, about("share: differences below it are noise, unless timed side by side")
    ]
    launches: Annotated[int, about("of the run")]
    typical: Annotated[int, about("launches of the typical point")]
    fewest: Annotated[int, about("launches of the point with fewest")]
    points: Annotated[int, about("points")]
    failed: Annotated[int, about("points that lack a launch or more")]
    unstable: Annotated[int, about("points whose launches lie far apart")]
    doubted: Annotated[int, about("points whose level rests on a cache size that is in doubt")]
    slow: Annotated[int, about("visits in which the cores were slow")]
    set_aside: Annotated[int, about("visits of these that no number rests on")]
    disturbed: Annotated[float | None, about("share of the samples that met other work")]
    suspects: Annotated[tuple[Suspect, ...], about("without an explanation first")]


def trust(tables: Tables) -> Trust:
    points, exceed = tables.points, suspects(tables.points)
    measured = points[points["seconds"].notna()]
    launches = {name: list(own.values()) for name, own in by_launch(tables.records).items()}
    deviations = [deviation(np.log(own)) for own in launches.values() if len(own) > 1]
    counts = list(map(len, launches.values()))
    typical, failed = int(median(counts or [0])), int((points["error"] != "").sum())
    scatter = float(np.sqrt(np.mean(np.square(deviations)))) if deviations else None
    unexplained = any(not each.explained for each in exceed)
    grade, because = _grade(scatter, typical, failed, unexplained)
    return Trust(
        grade=grade,
        because=because,
        scatter=scatter,
        most=float(np.quantile(deviations, _NINE_OF_TEN)) if deviations else None,
        between=_between(tables.records),
        noise=None if scatter is None else noise(scatter, typical),
        launches=len({record.launch for record in tables.records}),
        typical=typical,
        fewest=min(counts, default=0),
        points=len(points),
        failed=failed,
        unstable=int(measured["unstable"].fillna(False).sum()),
        doubted=int((measured["regime_confidence"] == "low").sum()),
        slow=int(measured["slow"].fillna(0).sum()),
        set_aside=int(measured["set_aside"].fillna(0).sum()),
        disturbed=float(measured["disturbed"].mean()) if len(measured) else None,
        suspects=exceed,
    )


def deviation(values: np.ndarray) -> float:
    """Standard: of values that are normal it is right on average, however few."""
    count = len(values)
    lacks = math.lgamma(count / 2) - math.lgamma((count - 1) / 2)
    return float(np.std(values, ddof=1) / (math.sqrt(2 / (count - 1)) * math.exp(lacks)))


def noise(scatter: float, launches: int) -> float:
    """What 95 % of the differences come to, at most, between two points that are alike, each
    measured in visits of its own. The median of n launches of deviation s has a variance of about
    pi / 2 * s^2 / n; the difference of two has twice that.
    """
    return math.expm1(_SIDES * math.sqrt(math.pi / launches) * scatter)


def _grade(
    scatter: float | None, launches: int, failed: int, unexplained: bool
) -> tuple[str, Because]:
    if scatter is None or launches < FEWEST:
        return POOR, Because.LAUNCHES
    if failed:
        return POOR, Because.FAILED
    grade = next((each for each, most in _SCATTER.items() if scatter <= most), POOR)
    if grade == GOOD:
        return (FAIR, Because.SUSPECTS) if unexplained else (GOOD, Because.NOTHING)
    return grade, Because.SCATTER


def _between(records: Iterable[Record]) -> float | None:
    """Of the typical point."""
    shares = list[float]()
    for visits in by_point(records).values():
        times = [
            np.log([s.each for s in visit.samples if s.program == "point"]) for visit in visits
        ]
        share = between(times)
        shares += [] if share is None else [share]
    return median(shares) if shares else None


def between(groups: Sequence[np.ndarray]) -> float | None:
    """Share of the variance that lies between the groups: components of a one-way analysis. None
    where there are too few values.
    """
    sizes = np.array(list(map(len, groups)))
    count, every = len(groups), int(sizes.sum())
    if count < 2 or every <= count:
        return None
    means = np.array([each.mean() for each in groups])
    middle = float(sizes @ means) / every
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in groups) / (every - count)
    among = float(sizes @ (means - middle) ** 2) / (count - 1)
    size = (every - float(sizes @ sizes) / every) / (count - 1)
    own = max(0.0, (among - within) / size)
    return own / (own + within) if own + within else None
