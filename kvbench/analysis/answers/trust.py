"""How far to trust a run: the scatter of launches, its share between visits, and suspects."""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.tables import Tables
from kvbench.model.annotated import about

GOOD, FAIR, POOR = "good", "fair", "poor"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A point that is faster than what should limit it. `explained`: for a known reason."""

    point: Annotated[str, about("its name")]
    short: Annotated[str, about("its name for people")]
    roof: Annotated[str, about("what it exceeds")]
    reason: Annotated[str, about("why, as a word")]
    explained: Annotated[bool, about("whether that explains it")]


@dataclass(frozen=True, slots=True)
class Trust:
    """The grade is made of scatter, and does not depend on how many launches there are."""

    grade: Annotated[str, about("good, fair or poor")]
    scatter: Annotated[
        float | None, about("share of a point's time: deviation of launches, of half of the points")
    ]
    most: Annotated[float | None, about("share of a point's time: the same of nine points in ten")]
    between: Annotated[
        float | None, about("share of the variance: between visits, the rest is within them")
    ]
    noise: Annotated[
        float | None, about("share: differences below it are noise, unless timed side by side")
    ]
    launches: Annotated[int, about("of the run")]
    fewest: Annotated[int, about("launches of the point with fewest")]
    points: Annotated[int, about("points")]
    failed: Annotated[int, about("points that lack a launch or more")]
    unstable: Annotated[int, about("points whose launches lie far apart")]
    disturbed: Annotated[float | None, about("share of the samples that met other work")]
    suspects: Annotated[tuple[Suspect, ...], about("without an explanation first")]


def trust(tables: Tables) -> Trust:
    launches = len({record.launch for record in tables.records})
    return Trust(POOR, None, None, None, None, launches, 0, len(tables.points), 0, 0, None, ())
