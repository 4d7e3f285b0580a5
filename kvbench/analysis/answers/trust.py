"""How far to trust a run: the scatter of launches, its share between visits, and suspects.

Scatter is the standard deviation over launches, as a share of a point's time; over all points it is
the root mean square, which is the noise of a comparison of two points. It is unbiased for small
numbers: more launches make it more certain, but neither larger nor smaller. The grade follows from
it.
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
_SCATTER = {GOOD: 0.05, FAIR: 0.20}  # the most scatter of each grade
FEWEST = 5  # launches of the typical point: with fewer its scatter is hardly known
_NINE_OF_TEN = 0.9
_SIDES = 1.96  # standard deviations on both sides that hold 95 % of a normal distribution


class Because(StrEnum):
    """Why a grade is not better."""

    NOTHING = ""
    LAUNCHES = "too few launches"
    FAILED = "points failed"
    SCATTER = "scatter"
    SUSPECTS = "suspects without an explanation"


@dataclass(frozen=True, slots=True)
class Trust:
    """How far to trust the run. The grade follows from the scatter, and does not depend on the
    number of launches.
    """

    grade: Annotated[str, about("good, fair or poor")]
    because: Annotated[Because, about("why the grade is not better, as a word; else empty")]
    scatter: Annotated[
        float | None,
        about("share of a point's time: standard deviation over launches, for all points"),
    ]
    most: Annotated[
        float | None,
        about("share of a point's time: standard deviation that nine points in ten do not exceed"),
    ]
    between: Annotated[
        float | None,
        about("share of the variance that lies between visits; the rest lies within them"),
    ]
    noise: Annotated[
        float | None, about("share: differences below it are noise, unless timed side by side")
    ]
    launches: Annotated[int, about("launches of the run")]
    typical: Annotated[int, about("launches of the typical point")]
    fewest: Annotated[int, about("launches of the point with fewest")]
    points: Annotated[int, about("number of points")]
    failed: Annotated[int, about("points that failed in some launch")]
    unstable: Annotated[int, about("points whose launches lie far apart")]
    doubted: Annotated[int, about("points whose level depends on a doubtful cache size")]
    slow: Annotated[int, about("visits in which the cores were slow")]
    set_aside: Annotated[int, about("slow visits that are left out of all numbers")]
    disturbed: Annotated[float | None, about("share of the samples during which other work ran")]
    suspects: Annotated[tuple[Suspect, ...], about("those without an explanation first")]


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
    """The standard deviation, unbiased for normal values however few they are."""
    count = len(values)
    lacks = math.lgamma(count / 2) - math.lgamma((count - 1) / 2)
    return float(np.std(values, ddof=1) / (math.sqrt(2 / (count - 1)) * math.exp(lacks)))


def noise(scatter: float, launches: int) -> float:
    """The difference that 95 % of the comparisons of two equal points do not exceed, if each is
    measured in visits of its own.

    The median of n launches with deviation s has a variance of about pi / 2 * s^2 / n. The
    difference of two medians has twice that.
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
    """The share of variance between visits, for the typical point."""
    shares = list[float]()
    for visits in by_point(records).values():
        times = [
            np.log([s.each for s in visit.samples if s.program == "point"]) for visit in visits
        ]
        share = between(times)
        shares += [] if share is None else [share]
    return median(shares) if shares else None


def between(groups: Sequence[np.ndarray]) -> float | None:
    """The share of the variance that lies between groups, from a one-way analysis of variance
    components; None if there are too few values.
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
