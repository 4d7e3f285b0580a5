"""Points that are faster than their limits: one list for everything that shows suspects."""

from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Suspect:
    """A point that is faster than a limit. `explained`: whether a reason is known. A point without
    explanation is left out of answers.
    """

    point: Annotated[str, about("its name")]
    short: Annotated[str, about("its short name")]
    roof: Annotated[str, about("the roof that it exceeds")]
    reason: Annotated[str, about("the cause, as a word")]
    explained: Annotated[bool, about("whether the cause explains the excess")]


def suspects(points: pd.DataFrame) -> tuple[Suspect, ...]:
    """All such points, those without an explanation first."""
    found = points[points["above"] != ""].sort_values("suspect", ascending=False, kind="stable")
    return tuple(
        Suspect(row["name"], row["short"], row["above"], row["above_reason"], not row["suspect"])
        for row in found.to_dict("records")
    )
